"""A full disk and a failing one: the first leaves the journal as it was, the second ends it."""

from __future__ import annotations

import errno
import random
from functools import partial
from pathlib import Path

import pytest

from ipamd.consensus.failures import JournalFailed, JournalFull
from ipamd.consensus.files import Room
from ipamd.consensus.journal import Journal
from ipamd.consensus.limits import Limits
from ipamd.consensus.records import Entry
from tests.consensus.journals import DIRECTORY, content, entry, fill, open_journal
from tests.consensus.simdisk import SimDisk


def fail(disk: SimDisk, call: str, number: int, *, after: int = 0) -> None:
    """Let one kind of call fail, for good, once `after` of them went well."""
    seen = 0

    def fault(name: str, _: Path) -> OSError | None:
        nonlocal seen
        seen += name == call
        return OSError(number, "Input/output error") if name == call and seen > after else None

    disk.fault = fault


def fill_up(journal: Journal, added: list[Entry]) -> None:
    for _ in range(100):
        batch = [entry(journal.last + 1 + number) for number in range(3)]
        for one in batch:
            journal.add(*one)
        journal.sync()
        added += batch


@pytest.mark.parametrize("free", [0, 1, 30, 70, 200, 599, 610, 650])
def test_without_room_nothing_is_left_behind_and_later_it_goes_on(free: int) -> None:
    disk = SimDisk()
    journal = open_journal(disk)
    journal.setCurrentTerm(1, "a")
    disk.capacity = disk.room(DIRECTORY).total_bytes - disk.room(DIRECTORY).free_bytes + free
    added: list[Entry] = []
    with pytest.raises(JournalFull, match="no room"):
        fill_up(journal, added)
    assert content(journal) == added
    assert content(open_journal(disk.unplugged(random.Random(3)))) == added
    disk.capacity = None
    added += fill(journal, 5)
    assert content(open_journal(disk)) == added


@pytest.mark.parametrize("after", range(6))
def test_half_a_write_that_found_no_room_is_taken_back(after: int) -> None:
    disk = SimDisk()
    journal = open_journal(disk, limits=Limits())
    journal.setCurrentTerm(1, "a")
    fail(disk, "pwrite", errno.ENOSPC, after=after)
    added: list[Entry] = []
    with pytest.raises(JournalFull):
        fill_up(journal, added)
    assert content(journal) == added
    assert content(open_journal(disk.killed())) == added
    assert content(open_journal(disk.unplugged(random.Random(after)))) == added
    disk.fault = None
    added += fill(journal, 3)
    assert content(open_journal(disk)) == added


@pytest.mark.parametrize("seed", range(4))
def test_after_a_failed_sync_the_next_process_makes_it_true(seed: int) -> None:
    """The kernel says of pages that it could not write that they are clean; they must be written once more."""
    disk = SimDisk()
    journal = open_journal(disk)
    added = fill(journal, 4)
    fail(disk, "datasync", errno.EIO)
    with pytest.raises(JournalFailed):
        fill(journal, 1)
    disk.fault = None
    assert content(open_journal(disk)) == [*added, entry(5)]
    assert content(open_journal(disk.unplugged(random.Random(seed)))) == [*added, entry(5)]


def test_without_room_for_the_vote_the_old_one_stands() -> None:
    disk = SimDisk()
    journal = open_journal(disk)
    journal.setCurrentTerm(1, "a")
    disk.capacity = sum(len(inode.page) for inode in disk.seen.values()) + 5
    with pytest.raises(JournalFull):
        journal.setCurrentTerm(2, "b")
    assert (journal.getCurrentTerm(), journal.getVotedForNodeId()) == (1, "a")
    assert disk.names(DIRECTORY) == ["vote"]
    disk.capacity = None
    journal.setCurrentTerm(2, "b")
    assert open_journal(disk).getVotedForNodeId() == "b"


@pytest.mark.parametrize("call", ["pwrite", "datasync", "create", "preallocate", "sync_directory"])
def test_a_failing_disk_ends_it(call: str) -> None:
    disk = SimDisk()
    journal = open_journal(disk)
    journal.setCurrentTerm(1, "a")
    fail(disk, call, errno.EIO)
    with pytest.raises(JournalFailed, match="Input/output error"):
        fill(journal, 20)


@pytest.mark.parametrize("call", ["create", "pwrite", "datasync", "rename", "sync_directory"])
def test_a_failing_disk_takes_no_vote(call: str) -> None:
    disk = SimDisk()
    journal = open_journal(disk)
    fail(disk, call, errno.EIO)
    with pytest.raises(JournalFailed, match="Input/output error"):
        journal.setCurrentTerm(2, "b")
    assert journal.getCurrentTerm() == 0


def test_no_room_at_a_sync_is_no_full_disk_but_a_failing_one() -> None:
    """What a sync could not write is lost to the kernel, whatever the reason: only a write may be tried again."""
    disk = SimDisk()
    journal = open_journal(disk)
    fill(journal, 1)
    fail(disk, "datasync", errno.ENOSPC)
    with pytest.raises(JournalFailed):
        fill(journal, 1)


@pytest.mark.parametrize("call", ["unlink", "sync_directory", "truncate"])
def test_a_failing_disk_ends_trimming_and_cutting(call: str) -> None:
    disk = SimDisk()
    journal = open_journal(disk)
    fill(journal, 40)
    fail(disk, call, errno.EIO)
    change = partial(journal.add, *entry(3, 2)) if call == "truncate" else partial(journal.trim, 30)
    with pytest.raises(JournalFailed, match="Input/output error"):
        change()


def test_an_unreadable_entry_ends_it() -> None:
    disk = SimDisk()
    journal = open_journal(disk)
    fill(journal, 30)
    fail(disk, "pread", errno.EIO)
    with pytest.raises(JournalFailed, match="cannot be read"):
        content(journal)


def test_the_simulated_disk_knows_its_room() -> None:
    disk = SimDisk()
    disk.capacity = 1000
    disk.create(DIRECTORY / "a").pwrite(bytes(300), 0)
    assert disk.room(DIRECTORY) == Room(700, 1000)
