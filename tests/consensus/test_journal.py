"""The journal as pysyncobj uses it: what was added is there, whatever it is asked twice, cut, trimmed or reopened."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipamd.consensus.failures import JournalFailed, StartRefused
from ipamd.consensus.files import OsFiles
from ipamd.consensus.limits import Limits
from tests.consensus.journals import DIRECTORY, SMALL, content, entry, fill, open_journal
from tests.consensus.simdisk import SimDisk


def test_a_new_journal_is_empty() -> None:
    journal = open_journal(SimDisk())
    assert (len(journal), journal.first, journal.last, journal.last_term) == (0, 1, 0, 0)
    assert (journal.getCurrentTerm(), journal.getVotedForNodeId(), journal.getRaftCommitIndex()) == (0, None, 1)


def test_positions_slices_and_the_last_entry_are_what_a_list_gives() -> None:
    journal = open_journal(SimDisk())
    added = fill(journal, 20)
    journal.add(*entry(21))
    expected = [*added, entry(21)]
    assert content(journal) == expected
    assert (journal[-1], journal[-2], journal[0]) == (expected[-1], expected[-2], expected[0])
    assert journal[3:7] == expected[3:7]
    assert journal[18:25] == expected[18:]
    assert journal[30:40] == []


def test_a_slice_without_an_end_is_bounded() -> None:
    journal = open_journal(SimDisk(), limits=Limits(slice_bytes=100))
    added = fill(journal, 20)
    assert journal[2:] == added[2:6]
    with pytest.raises(IndexError):
        journal[20]


def test_what_was_synced_is_there_after_reopening_a_real_directory(tmp_path: Path) -> None:
    directory = tmp_path / "journal"
    journal = open_journal(OsFiles(), directory)
    added = fill(journal, 30, term=4)
    journal.close()
    again = open_journal(OsFiles(), directory)
    assert content(again) == added
    assert (again.getCurrentTerm(), again.getVotedForNodeId()) == (4, "a")
    again.close()
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}
    assert directory.stat().st_mode & 0o777 == 0o700


def test_an_entry_that_is_there_is_not_added_or_cut() -> None:
    disk = SimDisk()
    journal = open_journal(disk)
    added = fill(journal, 10)
    steps = disk.steps
    journal.deleteEntriesFrom(4)
    for one in added[4:8]:
        journal.add(*one)
    journal.sync()
    assert content(journal) == added
    assert disk.steps == steps


@pytest.mark.parametrize("cut_at", range(1, 31))
def test_another_term_cuts_the_tail_wherever_it_lies(cut_at: int) -> None:
    disk = SimDisk()
    journal = open_journal(disk)
    added = fill(journal, 28)
    journal.add(*entry(29))
    journal.add(*entry(30))
    journal.setCurrentTerm(2, "b")
    journal.add(*entry(cut_at, 2))
    expected = [*[*added, entry(29), entry(30)][: cut_at - 1], entry(cut_at, 2)]
    assert content(journal) == expected
    journal.sync()
    fill(journal, 3, term=2)
    assert content(open_journal(disk)) == content(journal)
    assert content(journal)[:cut_at] == expected


def test_a_hole_is_never_made() -> None:
    journal = open_journal(SimDisk())
    fill(journal, 3)
    with pytest.raises(JournalFailed, match="entry 5 does not follow the journal, which holds 1 to 3"):
        journal.add(*entry(5))


def test_trimming_drops_whole_files_only_and_keeps_the_rest() -> None:
    disk = SimDisk()
    journal = open_journal(disk)
    added = fill(journal, 40)
    files = len(disk.names(DIRECTORY))
    journal.deleteEntriesTo(25)
    assert 1 < journal.first <= 26
    assert len(disk.names(DIRECTORY)) < files
    assert content(journal) == added[journal.first - 1 :]
    assert content(open_journal(disk)) == content(journal)
    assert not journal.can_trim(journal.first)


def test_the_newest_file_is_never_trimmed() -> None:
    journal = open_journal(SimDisk())
    fill(journal, 40)
    journal.trim(10**6)
    assert len(journal) > 0
    assert journal[-1] == entry(40)


def test_old_entries_are_read_from_the_file_and_checked_again() -> None:
    disk = SimDisk()
    journal = open_journal(disk)
    fill(journal, 12)
    assert journal[3] == entry(4)
    oldest = disk.seen[DIRECTORY / disk.names(DIRECTORY)[0]]
    oldest.page[100] ^= 1
    with pytest.raises(JournalFailed, match="was changed under this process"):
        content(journal)


def test_how_far_to_trim_follows_the_smaller_of_count_and_bytes() -> None:
    journal = open_journal(SimDisk())
    fill(journal, 100)
    assert journal.start_of_newest(10, 10**9) == 91
    kept = 100 - journal.start_of_newest(10**6, 2000) + 1
    assert 0 < kept * 60 <= 2000


def test_an_entry_larger_than_a_file_gets_a_larger_file() -> None:
    disk = SimDisk()
    journal = open_journal(disk)
    fill(journal, 2)
    journal.add(*entry(3, size=5000))
    journal.sync()
    fill(journal, 1)
    assert content(open_journal(disk))[2] == entry(3, size=5000)


def test_a_lost_vote_is_refused() -> None:
    disk = SimDisk()
    fill(open_journal(disk), 3, term=7)
    disk.unlink(DIRECTORY / "vote")
    with pytest.raises(StartRefused, match=r"reaches term 7, but this member's own term is 0.*lost"):
        open_journal(disk)


def test_a_missing_file_is_refused() -> None:
    disk = SimDisk()
    fill(open_journal(disk), 40)
    middle = disk.names(DIRECTORY)[2]
    disk.unlink(DIRECTORY / middle)
    with pytest.raises(StartRefused, match="begins at index"):
        open_journal(disk)


def test_a_file_of_another_name_or_format_is_refused() -> None:
    disk = SimDisk()
    disk.create(DIRECTORY / "x.log").pwrite(b"?", 0)
    with pytest.raises(StartRefused, match=r"x\.log is not a name of the journal"):
        open_journal(disk)
    disk = SimDisk()
    fill(open_journal(disk), 1)
    disk.rename(DIRECTORY / f"{1:020d}.log", DIRECTORY / f"{9:020d}.log")
    with pytest.raises(StartRefused, match="begins at index 1"):
        open_journal(disk)


def test_one_write_and_one_sync_for_all_that_was_added() -> None:
    disk = SimDisk()
    journal = open_journal(disk, limits=Limits())
    fill(journal, 1)
    disk.log.clear()
    for number in range(2, 100):
        journal.add(*entry(number))
    journal.sync()
    journal.sync()
    assert [name for name, _ in disk.log] == ["pwrite", "datasync"]


def test_it_cannot_be_emptied() -> None:
    journal = open_journal(SimDisk(), limits=SMALL)
    fill(journal, 2)
    with pytest.raises(JournalFailed):
        journal.clear()
    assert len(journal) == 2
