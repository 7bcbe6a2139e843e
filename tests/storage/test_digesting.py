"""Digests at an exact index, while the log goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipamd.core.commands import CreatePool, Origin, TakeDigest, encode_command
from ipamd.core.definition import PoolText, RangeText, define
from ipamd.core.entries import Item, Stamp, encode_entry
from ipamd.core.ports import LogEntry
from ipamd.storage.database import Database
from ipamd.storage.digest import machine_digest
from ipamd.storage.digesting import KEPT, Digests
from ipamd.storage.errors import Broken
from ipamd.storage.machine import SqliteMachine
from ipamd.storage.opening import open_database


class Store:
    def __init__(self, directory: Path) -> None:
        self.database: Database = open_database(directory)
        self.machine = SqliteMachine(self.database)
        self.digests = Digests(self.database)

    def apply(self) -> int:
        """One more pool; the index of the entry."""
        index = self.machine.applied[0] + 1
        definition = define(PoolText(f"p{index}", ((RangeText(f"10.{index}.0.0/24"),),)))
        item = Item(index.to_bytes(16, "big"), encode_command(CreatePool(Origin("t", "r"), definition)))
        self.machine.apply([LogEntry(index, 1, encode_entry(Stamp(index, index), [item]))])
        return index

    def wait(self, index: int) -> str:
        deadline = time.monotonic() + 60
        while index not in self.digests.known():
            assert time.monotonic() < deadline
            time.sleep(0.005)
        return self.digests.known()[index]


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    made = Store(tmp_path / "a"), Store(tmp_path / "b")
    yield made
    for store in made:
        store.digests.close()
        store.database.close()


def test_what_comes_later_is_not_in_it(stores: tuple[Store, Store]) -> None:
    one, two = stores
    index = one.apply()
    one.digests.take(index)
    for _ in range(5):
        one.apply()
    assert two.apply() == index
    assert one.wait(index) == machine_digest(two.database.writer)
    assert one.wait(index) != machine_digest(one.database.writer)


def test_the_newest_are_kept(stores: tuple[Store, Store]) -> None:
    one, _ = stores
    taken = []
    for _ in range(KEPT + 3):
        taken.append(one.apply())
        one.digests.take(taken[-1])
        one.wait(taken[-1])
    assert sorted(one.digests.known()) == taken[-KEPT:]
    assert len(set(one.digests.known().values())) == KEPT


def test_another_moment_than_the_one_named_is_refused(stores: tuple[Store, Store]) -> None:
    one, _ = stores
    index = one.apply()
    with pytest.raises(Broken, match=f"would be that of {index}"):
        one.digests.take(index + 1)
    one.digests.take(index)
    assert one.wait(index)


def test_the_machine_has_it_taken_behind_the_entry_that_asks_for_it(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    taken: list[int] = []
    machine = SqliteMachine(database, take_digest=taken.append)
    item = Item(b"o" * 16, encode_command(TakeDigest(Origin("t", "r"))))
    for index, items in ((2, []), (3, [item]), (4, [])):
        machine.apply([LogEntry(index, 1, encode_entry(Stamp(index, index), items))])
    machine.apply([LogEntry(5, 1, b"")])
    assert taken == [3]
    database.close()


def test_closing_ends_what_is_being_worked_on(stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipamd.storage.digest._STRETCH", 1)
    monkeypatch.setattr("ipamd.storage.digesting._REST_S", 60.0)
    one, _ = stores
    one.digests.take(one.apply())
    began_s = time.monotonic()
    one.digests.close()
    assert time.monotonic() - began_s < 30, "it does not wait for the end of a rest"
    assert one.digests.known() == {}
