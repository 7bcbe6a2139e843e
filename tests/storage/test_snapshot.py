"""Snapshots: one moment each, and the lists that readers need."""

from __future__ import annotations

import threading

import pytest

from ipamd.core.addresses import Address, parse_address
from ipamd.core.commands import ChangeSettings, DropPool, PutToken, Release, ReplacePool, SetQuarantine
from ipamd.core.intervals import Span, count
from ipamd.core.model import AttachmentState, Role, Token
from ipamd.core.ports import FamilyCounts, ReservationFilter, Snapshot, State
from ipamd.core.values import replace
from ipamd.storage import listing
from ipamd.storage.snapshot import KEPT_READERS
from ipamd.storage.spans import read_spans
from tests.core.world import ORIGIN, definition, range_of
from tests.storage.driver import WALL_MS, Driver
from tests.storage.pods import add, delete, pool

ANY = ReservationFilter()


def test_it_is_what_the_use_cases_read_from(driver: Driver) -> None:
    state: State = driver.state
    with state.snapshot() as snapshot:
        seen: Snapshot = snapshot
        assert (seen.applied_index, seen.log_ms, seen.last_id, seen.last_event) == (1, 0, 0, 0)


def test_a_snapshot_stays_at_its_moment(driver: Driver) -> None:
    driver.run(pool("p", "192.0.2.0/29"), add("t/a"))
    with driver.state.snapshot() as before:
        driver.run(add("t/b"), ReplacePool(ORIGIN, definition("p", "192.0.2.0/28", hold_s=9)))
        with driver.state.snapshot() as after:
            for snapshot, pods, index, hold_s in ((before, ["t/a"], 2, 0), (after, ["t/a", "t/b"], 3, 9)):
                assert snapshot.applied_index == index
                assert [one.reservation.pod_ref for one in snapshot.reservations(ANY, None, 9)] == pods
                found = snapshot.pool("p")
                assert found
                assert found.definition.hold_s == hold_s
                assert snapshot.counts(found)[4].free == (5 if index == 2 else 12)
    assert driver.machine.view.pool("p") is not None


def test_a_pool_keeps_its_ranges_in_a_snapshot_though_a_newer_one_was_read_since(driver: Driver) -> None:
    driver.run(pool("p", "192.0.2.0/29"), pool("q", "198.51.100.0/24"), add("t/a"))
    with driver.state.snapshot() as before:
        old = before.pool("p")
        driver.run(ReplacePool(ORIGIN, definition("p", "192.0.2.0/28", "2001:db8::/64")))
        with driver.state.snapshot() as after:
            new = after.pool("p")
            assert old
            assert new
            assert (before.counts(old)[4].free, after.counts(new)[4].free) == (5, 13)
            assert before.next_free(old, 0, 0, 0, 2**32 - 1) == parse_address("192.0.2.2").value


def test_a_change_that_was_taken_back_is_never_seen(driver: Driver) -> None:
    driver.run(pool("p", "192.0.2.0/29"))
    driver.connection.execute("BEGIN")
    old = driver.machine.view.pool("p")
    assert old
    driver.machine._writer._put_pool(replace(old, definition=definition("p", "192.0.2.0/28")))
    with driver.state.snapshot() as snapshot:
        assert snapshot.pool("p") == old
    driver.machine._undo()
    driver.run(ReplacePool(ORIGIN, definition("p", "192.0.2.0/30")))
    with driver.state.snapshot() as snapshot:
        now = snapshot.pool("p")
        assert now
        assert now.definition.sets == definition("p", "192.0.2.0/30").sets


def test_snapshots_are_for_any_thread_and_connections_are_kept_for_the_next(driver: Driver) -> None:
    driver.run(pool("p", "192.0.2.0/24"))
    barrier, seen = threading.Barrier(KEPT_READERS + 2), []

    def look() -> None:
        with driver.state.snapshot() as snapshot:
            barrier.wait(60)
            seen.append(snapshot.applied_index)

    threads = [threading.Thread(target=look) for _ in range(KEPT_READERS + 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == [2] * (KEPT_READERS + 2)
    assert len(driver.state._idle) == KEPT_READERS


def test_a_failed_read_gives_its_connection_back(driver: Driver) -> None:
    with pytest.raises(ZeroDivisionError), driver.state.snapshot():
        raise ZeroDivisionError
    driver.run(pool("p", "192.0.2.0/24"))
    with driver.state.snapshot() as snapshot:
        assert snapshot.applied_index == 2
    assert len(driver.state._idle) == 1


def test_readers_cannot_write(driver: Driver) -> None:
    with driver.state.snapshot() as snapshot, pytest.raises(Exception, match="readonly"):
        snapshot.connection.execute("DELETE FROM meta")


def test_pools_events_nodes_and_tokens_come_in_pages(driver: Driver) -> None:
    driver.run(*(pool(name, f"10.0.{number}.0/24") for number, name in enumerate("bca")))
    driver.run(add("t/a", node="n2", pools="a"), add("t/b", node="n1", pools="a"), add("t/c", node="n1", pools="b"))
    tokens = [Token(name, "x", Role.READER, name.encode() * 32, 1, node=f"n{name}") for name in "abc"]
    driver.run(*(PutToken(ORIGIN, token, number) for number, token in enumerate(reversed(tokens), 1)))
    with driver.state.snapshot() as snapshot:
        assert [one.name for one in snapshot.pools("", 2)] == ["a", "b"]
        assert [one.name for one in snapshot.pools("b", 2)] == ["c"]
        assert [one.index for one in snapshot.events(2, 3)] == [3, 4, 5]
        assert [one.index for one in snapshot.events(9, 3)] == []
        assert [one.index for one in snapshot.events(10**30, 3)] == []
        assert [(one.node.name, one.bound) for one in snapshot.nodes("", 5)] == [("n1", 2), ("n2", 1)]
        assert [one.node.name for one in snapshot.nodes("n1", 5)] == ["n2"]
        now_ms = snapshot.wall_ms
        assert [(one.id, one.expires_ms) for one in snapshot.tokens()] == [
            (name, now_ms + 1000 * number) for name, number in zip("abc", (3, 2, 1), strict=True)
        ]
        assert snapshot.next_token_end(now_ms) == now_ms + 1000
        assert snapshot.next_token_end(now_ms + 1000) == now_ms + 2000
        assert snapshot.next_token_end(now_ms + 3000) is None
        assert [one.id for one in snapshot.ended_tokens(now_ms + 2000, 5)] == ["c", "b"]
        assert [one.id for one in snapshot.tokens_of_node("nb")] == ["b"]
        found = snapshot.token_of_digest(b"a" * 32)
        assert found is not None
        assert found.id == "a"


@pytest.fixture
def crowd(driver: Driver) -> Driver:
    """Three pods in two pools, of which one is held; one has two interfaces."""
    driver.run(pool("p", "192.0.2.0/24", hold_s=60), pool("q", "192.0.2.0/24", "2001:db8::/64", space="blue"))
    driver.run(
        add("t/b", "c2", node="n2"),
        add("t/a", "c1", ifname="net1"),
        add("t/a", "c1"),
        add("t/c", "c3", pools="p q"),
        add("t/h", "c4"),
        delete("c4"),
    )
    return driver


def places(driver: Driver, wanted: ReservationFilter, after: tuple[str, str] | None = None, limit: int = 99) -> str:
    with driver.state.snapshot() as snapshot:
        rows = snapshot.reservations(wanted, after, limit)
        return " ".join(f"{row.pool.name}:{row.reservation.pod_ref[2:]}{len(row.held)}" for row in rows)


@pytest.mark.parametrize("few", [0, 10_000])
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, "p:a2 p:b1 p:c1 p:h1 q:c1"),
        ({"pool": "q"}, "q:c1"),
        ({"pool": "none"}, ""),
        ({"pod_ref": "t/c"}, "p:c1 q:c1"),
        ({"pod_ref": "t/c", "pool": "p"}, "p:c1"),
        ({"node": "n1"}, "p:a2 p:c1 q:c1"),
        ({"node": "n1", "pool": "q"}, "q:c1"),
        ({"node": "n2", "container_id": "c1"}, ""),
        ({"container_id": "c1"}, "p:a2"),
        ({"address": parse_address("192.0.2.1")}, "p:b1 q:c1"),
        ({"address": parse_address("2001:db8::1")}, "q:c1"),
        ({"address": parse_address("192.0.2.99")}, ""),
        ({"state": AttachmentState.HELD}, "p:h1"),
        ({"state": AttachmentState.BOUND}, "p:a2 p:b1 p:c1 q:c1"),
        ({"state": AttachmentState.SUSPECT}, ""),
        ({"state": AttachmentState.HELD, "node": "n1"}, ""),
        ({"state": AttachmentState.BOUND, "node": "n2"}, "p:b1"),
    ],
)
def test_reservations_are_narrowed_by_whatever_is_asked(
    crowd: Driver, monkeypatch: pytest.MonkeyPatch, few: int, wanted: dict[str, object], found: str
) -> None:
    monkeypatch.setattr(listing, "FEW", few)
    assert places(crowd, ReservationFilter(**wanted)) == found  # type: ignore[arg-type]


@pytest.mark.parametrize("wanted", [ANY, ReservationFilter(state=AttachmentState.BOUND), ReservationFilter(node="n1")])
def test_pages_join_without_gaps_or_doubles(crowd: Driver, wanted: ReservationFilter) -> None:
    whole, pages, after = places(crowd, wanted).split(), [], None
    with crowd.state.snapshot() as snapshot:
        while page := snapshot.reservations(wanted, after, 2):
            pages += [f"{row.pool.name}:{row.reservation.pod_ref[2:]}{len(row.held)}" for row in page]
            after = page[-1].pool.name, page[-1].reservation.pod_ref
    assert pages == whole


def test_a_place_in_a_pool_that_is_gone_is_a_place_still(crowd: Driver) -> None:
    crowd.run(DropPool(ORIGIN, "p", force=True))
    assert places(crowd, ANY, ("p", "t/b")) == "q:c1"
    assert places(crowd, ReservationFilter(pod_ref="t/c"), ("p", "t/z")) == "q:c1"
    assert places(crowd, ReservationFilter(pool="q"), ("r", "")) == ""


def test_a_row_has_the_addresses_in_order(crowd: Driver) -> None:
    with crowd.state.snapshot() as snapshot:
        (row,) = snapshot.reservations(ReservationFilter(pool="q"), None, 9)
        assert [str(one.address) for one in row.held[0].addresses] == ["192.0.2.1", "2001:db8::1"]


def counts(driver: Driver, name: str = "p") -> dict[int, FamilyCounts]:
    with driver.state.snapshot() as snapshot:
        found = snapshot.pool(name)
        assert found
        for family, one in snapshot.counts(found).items():
            free = sum(
                count(read_spans(snapshot.connection, snapshot.range_id(found, position, order)))
                for position, inner in enumerate(found.sets)
                for order, range_ in enumerate(inner)
                if range_.family == family
            )
            assert free == one.free == one.total - sum(one[1:-1])
        return snapshot.counts(found)


def test_counts_say_how_the_usable_addresses_are_spent(driver: Driver) -> None:
    spent = range_of("192.0.2.0/28", exclude=("192.0.2.14",), gateway="192.0.2.1")
    driver.run(
        pool("p", spent, "2001:db8::/64", hold_s=60, cooldown_s=60),
        pool("other", "192.0.2.0/28", allow_overlap=True),
        add("t/a"),
        add("t/b"),
        add("t/h"),
        add("t/o", pools="other"),
        delete("t/h"),
        add("t/gone"),
        Release(ORIGIN, "p", "t/gone", force=True),
        SetQuarantine(ORIGIN, "default", parse_address("192.0.2.13")),
        SetQuarantine(ORIGIN, "default", parse_address("192.0.2.2")),
        SetQuarantine(ORIGIN, "default", parse_address("192.0.2.14")),
    )
    four, six = counts(driver)[4], counts(driver)[6]
    assert four == FamilyCounts(12, 2, 1, 1, 1, 0, 0, 7)
    assert six == FamilyCounts(2**64 - 1, 2, 1, 1, 0, 0, 0, 2**64 - 5)
    assert counts(driver, "other")[4] == FamilyCounts(14, 1, 0, 1, 2, 0, 3, 7)


def test_a_part_of_a_pool_can_be_counted(driver: Driver) -> None:
    driver.run(pool("p", range_of("192.0.2.0/28", gateway="192.0.2.1"), cooldown_s=60), add("t/a"), add("t/b"))
    driver.run(delete("t/a"), pool("other", "192.0.2.0/28", allow_overlap=True), add("t/o", pools="other"))
    base = parse_address("192.0.2.0").value
    with driver.state.snapshot() as snapshot:
        found = snapshot.pool("p")
        assert found
        spent = snapshot.spent(found, 4, (Span(base + 2, base + 3), Span(base + 8, base + 9)))
        assert spent == FamilyCounts(4, bound=1, held=0, cooling=1, quarantined=0, withheld=0, elsewhere=0, free=2)
        assert snapshot.spent(found, 4, ()) == FamilyCounts(0, 0, 0, 0, 0, 0, 0, 0)


def test_what_cools_in_quarantine_is_counted_once(driver: Driver) -> None:
    driver.run(pool("p", "192.0.2.0/29", cooldown_s=60), add("t/a"), add("t/b"), delete("t/a"), delete("t/b"))
    driver.run(SetQuarantine(ORIGIN, "default", parse_address("192.0.2.1")))
    assert driver.rows("SELECT count(*) FROM cooling") == [(2,)]
    assert counts(driver)[4] == FamilyCounts(6, 0, 0, 1, 1, 0, 0, 4)


def test_counts_leave_out_who_is_stranded(driver: Driver) -> None:
    driver.run(pool("p", "192.0.2.0/28"), add("t/a"), add("t/b"))
    driver.run(ReplacePool(ORIGIN, definition("p", range_of("192.0.2.0/28", "192.0.2.2"))))
    assert counts(driver)[4] == FamilyCounts(13, 1, 0, 0, 0, 0, 0, 12)


def test_the_other_family_is_not_counted_where_its_bytes_lie_between(driver: Driver) -> None:
    driver.run(pool("four", "32.1.13.0/24"), pool("six", "2001:db8::/32"), add("t/a", pools="four six"))
    assert counts(driver, "four")[4] == FamilyCounts(254, 1, 0, 0, 0, 0, 0, 253)
    assert counts(driver, "six")[6].bound == 1
    with driver.state.snapshot() as snapshot:
        first, last = Address(4, 0x20010000), Address(4, 0x2001FFFF)
        assert snapshot.oldest_cooling("default", first, last, 10**9) is None


def holdings(driver: Driver, address: str = "192.0.2.1", before: int | None = None, limit: int = 99) -> list[str]:
    with driver.state.snapshot() as snapshot:
        rows = snapshot.history("default", parse_address(address), before, limit)
        return [f"{row.pod_ref} {row.node} {row.from_index}-{row.to_index or ''}" for row in rows]


@pytest.fixture
def past(driver: Driver) -> Driver:
    """Who had 192.0.2.1 of pool p: a (restarted, moved, held, back), nobody, b."""
    driver.run(pool("p", "192.0.2.0/29", hold_s=1))  # event 1
    driver.run(add("t/a", "c1"))  # 2 bound
    driver.run(add("t/a", "c2"))  # 3 rebound
    driver.run(add("t/a", "c2", node="n2"))  # 4 moved
    driver.run(delete("c2", node="n2"))  # 5 held
    driver.run(add("t/a", "c3", node="n3"))  # 6 bound
    driver.run(SetQuarantine(ORIGIN, "default", parse_address("192.0.2.7")))  # 7
    driver.run(Release(ORIGIN, "p", "t/a", force=True))  # 8 released
    driver.run(add("t/b", "c4"))  # 9 bound
    return driver


def test_a_history_tells_the_holders_newest_first(past: Driver) -> None:
    assert holdings(past) == ["t/b n1 9-", "t/a n3 6-8", "t/a n2 4-6", "t/a n1 2-4"]
    assert holdings(past, limit=2) == ["t/b n1 9-", "t/a n3 6-8"]
    assert holdings(past, "192.0.2.2") == []
    assert holdings(past, "192.0.2.7") == []


@pytest.mark.parametrize(
    ("before", "rows"),
    [
        (9, ["t/a n3 6-8", "t/a n2 4-6", "t/a n1 2-4"]),
        (4, ["t/a n1 2-4"]),
        (3, ["t/a n1 2-4"]),
        (2, []),
        (100, ["t/b n1 9-", "t/a n3 6-8", "t/a n2 4-6", "t/a n1 2-4"]),
        (10**30, ["t/b n1 9-", "t/a n3 6-8", "t/a n2 4-6", "t/a n1 2-4"]),
    ],
)
def test_a_history_goes_on_below_an_index(past: Driver, before: int, rows: list[str]) -> None:
    assert holdings(past, before=before) == rows


def test_a_history_has_times_and_names(past: Driver) -> None:
    with past.state.snapshot() as snapshot:
        newest = snapshot.history("default", parse_address("192.0.2.1"), None, 1)[0]
    assert newest[:6] == ("p", "t/b", "eth0", "n1", WALL_MS + 1_000, None)


def test_who_holds_an_address_longer_than_events_are_kept_is_in_its_history(past: Driver) -> None:
    past.run(ChangeSettings(ORIGIN, events_max=1))
    assert holdings(past) == ["t/b n1 0-"]
    assert holdings(past, before=0) == []
    past.run(Release(ORIGIN, "p", "t/b", force=True), add("t/c"))
    assert holdings(past) == ["t/c n1 12-"]
    assert holdings(past, before=12) == []
