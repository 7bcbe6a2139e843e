"""Snapshots that take the place of state and journal: stopped at every step of the disk, by a kill and a power loss."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ipamd.consensus import installing, smallfile
from ipamd.consensus.failures import JournalFull, StartRefused
from ipamd.consensus.journal import Journal
from ipamd.core.model import Member
from ipamd.core.ports import SnapshotRefused
from tests.consensus.journals import DIRECTORY, fill, open_journal
from tests.consensus.listmachine import SNAPSHOTS, ListMachine
from tests.consensus.simdisk import Crash, SimDisk

SNAPSHOT = Path("/journal/incoming.snapshot")


class Durable(ListMachine):
    """Its state is on the disk, as a real one's is: what a crash leaves is what was there."""

    def __init__(self, disk: SimDisk) -> None:
        super().__init__()
        self.disk = disk
        self.stored: list[tuple[int, int]] = [(1, 0)]

    def install(self, path: str) -> None:
        self.disk.step("before", SNAPSHOT)
        super().install(path)
        self.stored.append(self.applied)
        self.disk.step("after", SNAPSHOT)


def snapshot(applied: tuple[int, int]) -> ListMachine:
    """What another member has."""
    machine = ListMachine()
    machine.applied = applied
    machine.commands = [b"from the snapshot"]
    machine._members = (Member("n1", "id", "", ""),)
    SNAPSHOTS[str(SNAPSHOT)] = machine
    return machine


def prepared(last: int) -> SimDisk:
    disk = SimDisk()
    journal = open_journal(disk)
    journal.setCurrentTerm(5, None)
    fill(journal, last)
    return disk


def at(disk: SimDisk, applied: tuple[int, int]) -> tuple[Journal, Durable]:
    machine = Durable(disk)
    machine.applied, machine.stored = applied, [applied]
    return open_journal(disk), machine


CASES = {
    "beyond the journal": (9, (40, 3)),
    "inside, of another log": (30, (20, 3)),
    "inside, of this log": (30, (20, 1)),
    "at its end": (20, (20, 1)),
}


@pytest.mark.parametrize(("last", "position"), CASES.values(), ids=CASES.keys())
def test_state_and_journal_agree_whatever_step_was_the_last(last: int, position: tuple[int, int]) -> None:
    snapshot(position)
    whole = prepared(last)
    journal, machine = at(whole, (3, 1))
    before = whole.steps
    assert installing.install(SNAPSHOT, DIRECTORY, whole, journal, machine)
    for stop_at in range(before + 1, whole.steps + 1):
        disk = prepared(last)
        journal, machine = at(disk, (3, 1))
        disk.stop_at = stop_at
        with pytest.raises(Crash):
            installing.install(SNAPSHOT, DIRECTORY, disk, journal, machine)
        for after in (disk.killed(), *(disk.unplugged(random.Random(seed)) for seed in range(3))):
            found, again = at(after, machine.stored[-1])
            installing.finish(DIRECTORY, after, found, again)
            assert found.first <= again.applied[0] <= found.last
            assert found.term_at(again.applied[0]) == again.applied[1]
            assert installing.NAME not in after.names(DIRECTORY)
            assert open_journal(after).last == found.last


def test_what_follows_in_the_same_log_is_kept() -> None:
    snapshot((20, 1))
    disk = prepared(30)
    journal, machine = at(disk, (3, 1))
    assert installing.install(SNAPSHOT, DIRECTORY, disk, journal, machine)
    assert (journal.first, journal.last) == (1, 30)
    assert machine.commands == [b"from the snapshot"]


@pytest.mark.parametrize("position", [(40, 3), (20, 3)])
def test_the_journal_goes_on_behind_the_snapshot(position: tuple[int, int]) -> None:
    snapshot(position)
    disk = prepared(30)
    journal, machine = at(disk, (3, 1))
    installing.install(SNAPSHOT, DIRECTORY, disk, journal, machine)
    assert (journal.first, journal.last, journal.last_term) == (position[0], position[0], position[1])
    journal.add(b"next", position[0] + 1, 4)
    journal.sync()
    found = open_journal(disk.unplugged(random.Random(0)))
    assert (found.first, found.last) == (position[0], position[0] + 1)
    assert found.entry(found.last) == (b"next", found.last, 4)
    assert found.getCurrentTerm() == 5


def test_an_older_snapshot_changes_nothing() -> None:
    snapshot((3, 1))
    disk = prepared(9)
    journal, machine = at(disk, (3, 1))
    steps = disk.steps
    assert not installing.install(SNAPSHOT, DIRECTORY, disk, journal, machine)
    assert disk.steps == steps
    assert machine.commands == []


def test_a_snapshot_of_a_term_never_heard_of_is_refused() -> None:
    snapshot((40, 6))
    disk = prepared(9)
    journal, machine = at(disk, (3, 1))
    with pytest.raises(SnapshotRefused, match="of term 6, which this member was never told of"):
        installing.install(SNAPSHOT, DIRECTORY, disk, journal, machine)
    assert machine.applied == (3, 1)


def test_a_machine_that_refuses_leaves_no_note() -> None:
    snapshot((40, 3))
    disk = prepared(9)
    journal, machine = at(disk, (3, 1))

    def refuse(path: str) -> None:
        raise SnapshotRefused("it was changed on its way")

    machine.install = refuse  # type: ignore[method-assign]
    with pytest.raises(SnapshotRefused):
        installing.install(SNAPSHOT, DIRECTORY, disk, journal, machine)
    assert installing.NAME not in disk.names(DIRECTORY)
    assert journal.last == 9


def test_a_full_disk_changes_nothing() -> None:
    snapshot((40, 3))
    disk = prepared(9)
    journal, machine = at(disk, (3, 1))
    disk.capacity = 0
    with pytest.raises(JournalFull):
        installing.install(SNAPSHOT, DIRECTORY, disk, journal, machine)
    assert machine.applied == (3, 1)
    disk.capacity = None
    assert installing.install(SNAPSHOT, DIRECTORY, disk, journal, machine)


def test_a_note_of_a_state_that_did_not_come_is_thrown_away() -> None:
    disk = prepared(9)
    smallfile.write(DIRECTORY / installing.NAME, b"[40,3]", disk)
    journal, machine = at(disk, (3, 1))
    installing.finish(DIRECTORY, disk, journal, machine)
    assert journal.last == 9
    assert installing.NAME not in disk.names(DIRECTORY)


@pytest.mark.parametrize("position", range(20))
def test_a_damaged_small_file_is_refused(position: int) -> None:
    disk = SimDisk()
    path = DIRECTORY / "small"
    smallfile.write(path, b"12345678", disk)
    assert smallfile.read(path, disk) == b"12345678"
    disk.seen[path].page[position] ^= 1
    with pytest.raises(StartRefused, match="small is damaged"):
        smallfile.read(path, disk)


def test_a_small_file_is_old_or_new_at_every_step() -> None:
    path = DIRECTORY / "small"
    whole = SimDisk()
    smallfile.write(path, b"old", whole)
    first = whole.steps
    smallfile.write(path, b"new", whole)
    for stop_at in range(first + 1, whole.steps + 1):
        disk = SimDisk(stop_at=stop_at)
        smallfile.write(path, b"old", disk)
        with pytest.raises(Crash):
            smallfile.write(path, b"new", disk)
        for after in (disk.killed(), *(disk.unplugged(random.Random(seed)) for seed in range(3))):
            assert smallfile.read(path, after) in (b"old", b"new")
            smallfile.write(path, b"newer", after)
            assert smallfile.read(path, after) == b"newer"
