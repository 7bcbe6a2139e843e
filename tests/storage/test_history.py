"""Who had an address, at any moment: against what was seen of the state after each command, and with few events left."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipamd.core.addresses import Address, parse_address
from ipamd.core.commands import ChangeSettings, Command, RenameNode
from ipamd.core.imports import known_ifname
from ipamd.core.ports import HistoryRow, Snapshot
from ipamd.storage import history
from tests.core.world import ORIGIN
from tests.storage.driver import Driver, memory_dir
from tests.storage.histories import HISTORIES, Step

TEXTS = [f"192.0.2.{number}" for number in range(16)] + [f"2001:db8::{number}" for number in range(9)]
PLACES = [(space, parse_address(text)) for space in ("default", "blue") for text in TEXTS]
Place = tuple[str, Address]


@dataclass(frozen=True)
class Held:
    """A holder as it was seen: whose the address is (`key`), what that is called, and where it is bound."""

    key: int
    pod_ref: str
    ifname: str
    pool: str
    node: str | None
    is_bound: bool


@dataclass
class Past:
    """What was seen: the holder of each address after the last command of each moment."""

    seen: dict[Place, list[tuple[int, Held | None]]] = field(default_factory=dict)
    names_change: bool = False
    """A node was renamed: what is past keeps the old name."""

    def look(self, driver: Driver) -> None:
        with driver.state.snapshot() as snapshot:
            for place in PLACES:
                self.seen.setdefault(place, []).append((snapshot.wall_ms, holder(snapshot, *place)))

    def lives(self, place: Place) -> Iterator[tuple[int, int, Held | None]]:
        """Each stretch of time (from, up to but without) and who had it, by its last name."""
        seen = self.seen[place]
        for number, (at_ms, held) in enumerate(seen):
            until_ms = seen[number + 1][0] if number + 1 < len(seen) else at_ms + 1_000_000
            if at_ms < until_ms:
                yield at_ms, until_ms, named(held, seen[number:])


def named(held: Held | None, later: Sequence[tuple[int, Held | None]]) -> Held | None:
    """A holder by the last name that it had while it held the address: what an import left open is known later."""
    for _, one in later:
        if held is None or one is None or one.key != held.key:
            break
        held = replace_names(held, one)
    return held


def replace_names(held: Held, later: Held) -> Held:
    return Held(held.key, later.pod_ref, later.ifname, later.pool, held.node, held.is_bound)


def holder(snapshot: Snapshot, space: str, address: Address) -> Held | None:
    assigned = snapshot.holder(space, address)
    attachment = assigned and snapshot.attachment_by_id(assigned.attachment_id)
    reservation = attachment and snapshot.reservation_by_id(attachment.reservation_id)
    pool = attachment and snapshot.pool_by_id(attachment.pool_id)
    if not (attachment and reservation and pool):
        return None
    node = attachment.owner.node if attachment.owner else None
    ifname = known_ifname(attachment.ifname) or ""
    return Held(attachment.id, reservation.pod_ref, ifname, pool.name, node, attachment.owner is not None)


def check(past: Past, snapshot: Snapshot, since_ms: int) -> None:
    for place in PLACES:
        for from_ms, until_ms, held in past.lives(place):
            for at_ms in {from_ms, (from_ms + until_ms) // 2, until_ms - 1}:
                if at_ms >= since_ms:
                    same(snapshot.holding_at(*place, at_ms), held, past)


def same(row: HistoryRow | None, held: Held | None, past: Past) -> None:
    if held is None or row is None:
        assert (row, held) == (None, None)
        return
    if not past.names_change:
        assert (row.pod_ref, row.ifname, row.pool) == (held.pod_ref, held.ifname, held.pool)
        if held.is_bound and held.node is not None and (row.node or row.from_index):
            assert row.node == held.node  # but for one whose only event left is that it moved away


def pages(snapshot: Snapshot, place: Place, limit: int) -> list[HistoryRow]:
    rows: list[HistoryRow] = []
    before = None
    while page := snapshot.history(*place, before, limit):
        rows += page
        before = rows[-1].from_index
    return rows


def check_rows(snapshot: Snapshot) -> None:
    """Rows follow each other without overlap, newest first, however they are cut into pages."""
    for place in PLACES:
        rows = list(snapshot.history(*place, None, 1000))
        assert pages(snapshot, place, 1) == pages(snapshot, place, 3) == rows
        for newer, older in itertools.pairwise(rows):
            assert older.to_index is not None
            assert older.from_index < older.to_index <= newer.from_index
        for row in rows[1:]:
            assert row.to_ms is not None
            assert row.from_ms <= row.to_ms


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(HISTORIES, st.integers(1, 40))
def test_who_had_an_address_at_any_moment(steps: list[Step], kept: int) -> None:
    with tempfile.TemporaryDirectory(dir=memory_dir()) as directory:
        driver, past = Driver(Path(directory) / "data"), Past()
        past.look(driver)
        for after_ms, command in moments(steps):
            driver.log_ms += after_ms
            past.names_change = past.names_change or isinstance(command, RenameNode)
            driver.run(command)
            past.look(driver)
        with driver.state.snapshot() as snapshot:
            assert snapshot.events_since_ms() is None
            check(past, snapshot, 0)
            check_rows(snapshot)
        driver.run(ChangeSettings(ORIGIN, events_max=kept))
        with driver.state.snapshot() as snapshot:
            check(past, snapshot, snapshot.events_since_ms() or 0)
            check_rows(snapshot)
        driver.close()


def moments(steps: list[Step]) -> Iterator[tuple[int, Command]]:
    """Each command in an entry of its own: what is seen in between is known then."""
    for step in steps:
        for number, command in enumerate(step.commands):
            yield 0 if number else step.after_ms, command


def test_a_history_is_looked_up_however_many_events_there_are(driver: Driver) -> None:
    """Measured with 5,000,000: 0.2 ms for a moment; what must stay so is that nothing is scanned or sorted."""
    for statement, place in ((history._UP_TO, (9,)), (history._END_FROM, (9, 1))):
        plan = driver.rows(f"EXPLAIN QUERY PLAN {statement}", "default", b"\x0a\0\0\1", *place)
        (step,) = [str(row[3]) for row in plan]
        assert step.startswith("SEARCH events USING INDEX ix_events_space_address (space=? AND address=? AND rowid")
