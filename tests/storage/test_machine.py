"""The machine: entries in order, once, all or nothing; stored outcomes; what ends by itself."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ipamd.core.changes import Drop, Put
from ipamd.core.commands import ChangeSettings, CreatePool, DropPool, Expire, Release
from ipamd.core.entries import KEEP_KEYED_MS, Item, encode_entry
from ipamd.core.levels import NewerEntry
from ipamd.core.model import AssignedAddress, Node, Settings
from ipamd.core.outcomes import Code, PoolStored, Refused, SettingsStored
from ipamd.core.ports import LogEntry, StateMachine
from ipamd.core.values import replace
from ipamd.storage.errors import Broken, DiskFull, told_of_damage
from ipamd.storage.snapshot import SqliteState
from tests.core.world import ORIGIN, addresses, definition, granted
from tests.storage.driver import Driver
from tests.storage.pods import add, delete, pool


def test_it_is_what_consensus_drives(driver: Driver) -> None:
    machine: StateMachine = driver.machine
    assert machine.applied == (1, 0)
    assert (machine.log_ms, machine.wall_ms, machine.next_due_log_ms) == (0, 0, None)


def test_position_and_clock_survive_a_restart(driver: Driver) -> None:
    driver.run(pool("p", "192.0.2.0/24"))
    driver.apply(term=3)
    stamp = driver.stamp
    driver.reopen()
    assert driver.machine.applied == (3, 3)
    assert (driver.machine.log_ms, driver.machine.wall_ms) == stamp[:2]
    assert driver.machine.view.last_id == 1
    assert driver.machine.view.last_event == 1


def test_an_entry_that_does_not_follow_is_refused_and_changes_nothing(driver: Driver) -> None:
    driver.run(pool("p", "192.0.2.0/24"))
    before = driver.digest()
    for index in (1, 2, 4):
        with pytest.raises(Broken, match=f"entry {index} of the log does not follow entry 2"):
            driver.machine.apply([LogEntry(index, 1, b"")])
    assert driver.digest() == before
    assert driver.machine.applied == (2, 1)


def test_a_damaged_entry_takes_the_whole_batch_back(driver: Driver) -> None:
    good = driver.entry(driver.item(pool("p", "192.0.2.0/24")))
    bad = LogEntry(3, 1, encode_entry(driver.stamp, [Item(bytes(16), b"\x01\xff[]")]))
    with pytest.raises(NewerEntry, match=r"unknown kind 255.: start the newer version of ipamd"):
        driver.machine.apply([good, bad])
    assert driver.machine.applied == (1, 0)
    assert driver.machine.view.pool("p") is None
    assert isinstance(driver.machine.apply([good])[0].outcome, PoolStored)
    assert granted(driver.run(add("t/a"))[0]) == "192.0.2.1"


def test_a_clock_that_falls_is_held_where_it_was(driver: Driver) -> None:
    driver.run(Expire(ORIGIN))
    high = driver.machine.log_ms, driver.machine.wall_ms
    driver.log_ms -= 500
    driver.run(Expire(ORIGIN))
    assert (driver.machine.log_ms, driver.machine.wall_ms) == high


def test_a_command_that_comes_again_is_answered_as_it_was_and_not_carried_out(driver: Driver) -> None:
    driver.run(pool("p", "192.0.2.0/24"))
    first = driver.apply(driver.item(add("t/a"), b"k" * 16))
    driver.run(Release(ORIGIN, "p", "t/a", force=True))
    before = driver.machine.view.last_event
    driver.reopen()
    assert driver.apply(driver.item(add("t/a"), b"k" * 16)) == first
    assert driver.machine.view.last_event == before


def test_a_command_that_comes_twice_in_one_entry_is_carried_out_once(driver: Driver) -> None:
    driver.run(pool("p", "192.0.2.0/24"))
    item = driver.item(add("t/a"))
    one, two = driver.apply(item, item)
    assert one == two
    assert driver.rows("SELECT generation FROM attachments") == [(1,)]


def test_another_request_under_a_key_is_a_conflict(driver: Driver) -> None:
    driver.apply(driver.item(pool("p", "192.0.2.0/24"), b"k" * 16, fingerprint=b"one"))
    (outcome,) = driver.apply(driver.item(pool("q", "198.51.100.0/24"), b"k" * 16, fingerprint=b"two"))
    assert isinstance(outcome, Refused)
    assert outcome.code is Code.IDEMPOTENCY_CONFLICT
    assert driver.machine.view.pool("q") is None


def test_a_refusal_is_stored_too(driver: Driver) -> None:
    item = driver.item(add("t/a"), b"k" * 16)
    (first,) = driver.apply(item)
    driver.run(pool("p", "192.0.2.0/24"))
    assert driver.apply(item) == [first]


def test_outcomes_are_kept_as_long_as_their_item_says(driver: Driver) -> None:
    driver.apply(driver.item(pool("p", "192.0.2.0/24"), keep_ms=5_000))
    driver.apply(driver.item(pool("q", "198.51.100.0/24"), keep_ms=0))
    assert driver.rows("SELECT expires_log_ms FROM ops") == [(6_000,)]
    assert driver.machine.next_due_log_ms == 6_000
    driver.log_ms = 5_999
    driver.apply(driver.item(Expire(ORIGIN), keep_ms=0))
    assert len(driver.rows("SELECT * FROM ops")) == 1
    driver.log_ms = 6_000
    driver.apply(driver.item(Expire(ORIGIN), keep_ms=0))
    assert driver.rows("SELECT * FROM ops") == []
    assert driver.machine.next_due_log_ms is None


def test_an_outcome_goes_when_it_is_due_though_nobody_asked_when_that_is(driver: Driver) -> None:
    driver.apply(driver.item(pool("p", "192.0.2.0/24"), keep_ms=5_000))
    driver.log_ms = 6_000
    driver.apply(driver.item(Expire(ORIGIN), keep_ms=0))
    assert driver.rows("SELECT * FROM ops") == []


def test_of_keyed_outcomes_the_oldest_go_first(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "data", max_keyed=3)
    driver.apply(driver.item(Expire(ORIGIN), b"i" * 16))
    for number in range(1, 6):
        driver.apply(
            driver.item(Expire(ORIGIN), number.to_bytes(16, "little"), fingerprint=b"f", keep_ms=KEEP_KEYED_MS)
        )
    left = [op[0] for (op,) in driver.rows("SELECT op FROM ops ORDER BY id") if isinstance(op, bytes)]
    assert left == [ord("i"), 3, 4, 5]
    driver.reopen()
    driver.apply(driver.item(Expire(ORIGIN), b"n" * 16, fingerprint=b"f"))
    assert driver.rows("SELECT count(*) FROM ops WHERE keyed") == [(3,)]
    driver.close()


def test_what_is_due_ends_before_the_first_command(driver: Driver) -> None:
    driver.run(pool("p", "192.0.2.0/30", cooldown_s=10, cooldown_min_s=10))
    driver.run(add("t/a"), add("t/b"), delete("t/a"))
    assert driver.machine.next_due_log_ms == 11_000
    driver.log_ms = 10_999
    assert isinstance(driver.run(add("t/c"))[0], Refused)
    driver.log_ms = 11_000
    assert granted(driver.run(add("t/c"))[0]) == "192.0.2.1"


def test_next_due_is_the_earliest_of_all_kinds_and_exact(driver: Driver) -> None:
    def apply(*commands: object) -> None:
        driver.apply(*(driver.item(one, keep_ms=0) for one in commands))  # type: ignore[arg-type]

    apply(pool("p", "192.0.2.0/24", hold_s=50), replace(add("t/h"), owner=None, ttl_s=30))
    assert driver.machine.next_due_log_ms == 31_000
    apply(Release(ORIGIN, "p", "t/h", force=True))
    assert driver.machine.next_due_log_ms is None
    apply(add("t/a"), delete("t/a"))
    assert driver.machine.next_due_log_ms == 51_000
    driver.reopen()
    assert driver.machine.next_due_log_ms == 51_000


def test_events_go_by_number_the_oldest_first(driver: Driver) -> None:
    driver.run(ChangeSettings(ORIGIN, events_max=3))
    for number in range(8):
        driver.run(CreatePool(ORIGIN, definition(f"p{number}", f"10.0.{number}.0/24")))
    assert driver.rows("SELECT id FROM events ORDER BY id") == [(7,), (8,), (9,)]
    driver.reopen()
    driver.run(CreatePool(ORIGIN, definition("last", "10.1.0.0/24")))
    assert driver.rows("SELECT id FROM events ORDER BY id") == [(8,), (9,), (10,)]


def test_events_go_by_age_on_the_walls_clock(driver: Driver) -> None:
    driver.run(ChangeSettings(ORIGIN, events_days=2))
    driver.run(pool("p", "10.0.0.0/24"))
    driver.log_ms += 86_400_000
    driver.run(pool("q", "10.0.1.0/24"))
    driver.log_ms += 86_400_000
    driver.run(Expire(ORIGIN))
    assert driver.rows("SELECT min(id), max(id) FROM events") == [(1, 3)]
    driver.log_ms += 1
    driver.run(Expire(ORIGIN))
    assert driver.rows("SELECT min(id), max(id) FROM events") == [(3, 3)]


def test_an_entry_prunes_a_bounded_number_of_events_and_the_next_ones_go_on(driver: Driver) -> None:
    driver.run(*(CreatePool(ORIGIN, definition(f"p{number}", f"10.{number}.0.0/24")) for number in range(200)))
    driver.run(*(CreatePool(ORIGIN, definition(f"q{number}", f"10.{number}.1.0/24")) for number in range(200)))
    driver.run(ChangeSettings(ORIGIN, events_max=1))
    left = [driver.rows("SELECT count(*) FROM events")[0][0]]
    driver.run(Expire(ORIGIN))
    left.append(driver.rows("SELECT count(*) FROM events")[0][0])
    assert left == [401 - 258, 1]


def test_settings_take_effect_at_once(driver: Driver) -> None:
    driver.run(CreatePool(ORIGIN, definition("p", "192.0.2.0/24")), add("t/a"))
    new = Settings(cooldown_s=7)
    outcomes = driver.run(ChangeSettings(ORIGIN, cooldown_s=7), delete("t/a"))
    assert outcomes[0] == SettingsStored(new)
    assert driver.rows("SELECT until_log_ms - freed_log_ms FROM cooling") == [(7_000,)]


def test_a_full_disk_takes_the_batch_back_and_it_can_be_tried_again(driver: Driver) -> None:
    driver.run(pool("p", "10.0.0.0/16"))
    before = driver.digest()
    (pages,) = driver.rows("PRAGMA page_count")[0]
    driver.connection.execute(f"PRAGMA max_page_count = {pages}")
    entry = driver.entry(*(driver.item(add(f"t/{number}")) for number in range(200)))
    with pytest.raises(DiskFull):
        driver.machine.apply([entry])
    assert driver.digest() == before
    driver.connection.execute("PRAGMA max_page_count = 1000000")
    assert granted(driver.machine.apply([entry])[0].outcome) == "10.0.0.1"
    assert driver.examine() == []


def test_a_second_holder_of_an_address_is_refused_by_the_store_itself(driver: Driver) -> None:
    driver.run(pool("p", "192.0.2.0/24"), add("t/a"), add("t/b"))
    (address,) = addresses("192.0.2.1")
    holder = driver.machine.view.holder("default", address)
    assert isinstance(holder, AssignedAddress)
    with pytest.raises(Broken, match="take an address from its holder"):
        driver.machine._writer.carry_out([Put(replace(holder, attachment_id=holder.attachment_id + 2))])


def test_dropping_what_is_not_there_is_a_contradiction(driver: Driver) -> None:
    with pytest.raises(Broken, match="cannot be dropped"):
        driver.machine._writer.carry_out([Drop(Node("n1", 1))])


def test_a_dropped_pool_leaves_no_rows_behind(driver: Driver) -> None:
    driver.run(pool("p", "192.0.2.0/24", "2001:db8::/64", strategy="round-robin"), add("t/a"))
    driver.run(Release(ORIGIN, "p", "t/a", force=True), add("t/b"))
    driver.run(DropPool(ORIGIN, "p", force=True))
    for table in (
        "ranges",
        "excludes",
        "free_spans",
        "cursors",
        "generation_floors",
        "addresses",
        "attachments",
        "reservations",
    ):
        assert driver.rows(f"SELECT * FROM {table}") == [], table
    stored = driver.run(pool("p", "192.0.2.0/24"))[0]
    assert isinstance(stored, PoolStored)
    assert stored.created


def test_a_checkpoint_is_durable_whether_or_not_a_reader_holds_it_up(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    driver.run(pool("p", "192.0.2.0/24"))
    with driver.state.snapshot() as snapshot:
        driver.run(add("t/a"))
        assert driver.machine.checkpoint() == 3
        assert len(synced) == 1  # SQLite could not fold in what came after the reader's moment
        assert snapshot.applied_index == 2
    assert driver.machine.checkpoint() == 3
    assert len(synced) == 1


def test_a_damaged_page_is_told_with_the_way_out_by_whoever_meets_it(driver: Driver) -> None:
    driver.run(pool("p", "192.0.2.0/24"), add("t/a"))
    page_bytes = int(str(driver.rows("PRAGMA page_size")[0][0]))
    root = int(str(driver.rows("SELECT rootpage FROM sqlite_master WHERE name = 'nodes'")[0][0]))
    driver.close()
    with driver.database.path.open("r+b") as file:
        file.seek((root - 1) * page_bytes)
        file.write(b"\xff" * page_bytes)
    driver.open()
    way_out = f"{driver.database.path} is damaged .*: move state.db. aside, .*, put the whole data directory back"
    with pytest.raises(Broken, match=way_out):
        driver.run(add("t/b", node="n2"))
    told: list[str] = []
    with pytest.raises(sqlite3.DatabaseError), SqliteState(driver.database, fatal=told.append).snapshot() as snapshot:
        snapshot.nodes("", 1)
    assert len(told) == 1
    assert re.match(way_out, told[0])


NONSENSE = r"is damaged, or .*; ipamd doctor tells which; .*: move state.db. aside"


def test_a_row_without_sense_is_told_with_the_way_out(driver: Driver) -> None:
    """SQLite does not see that a row is damaged; what reads it does."""
    driver.run(pool("p", "192.0.2.0/24"), add("t/a"))
    spoil(driver, "UPDATE reservations SET pod_uids = '{'")
    driver.open()
    with pytest.raises(Broken, match=NONSENSE):
        driver.run(add("t/a"))


def test_a_row_without_sense_is_told_by_whoever_opens_the_state(driver: Driver) -> None:
    driver.run(pool("p", "192.0.2.0/24"))
    spoil(driver, "UPDATE pools SET routes = '{'")
    with pytest.raises(Broken, match=NONSENSE), told_of_damage(driver.database.path):
        driver.open()


def spoil(driver: Driver, statement: str) -> None:
    """Change a row as no program of ours would; the state is closed then."""
    driver.close()
    with closing(sqlite3.connect(driver.database.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(statement)
