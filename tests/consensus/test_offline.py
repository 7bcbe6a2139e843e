"""What is done to journals while nobody runs on them: reading one to its end, and beginning one behind a state."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipamd.consensus.engine import COMMAND, NO_OP
from ipamd.consensus.facts import read_facts
from ipamd.consensus.failures import JournalFailed
from ipamd.consensus.files import OsFiles
from ipamd.consensus.offline import begin_journal, read_entries
from ipamd.core.ports import LogEntry
from tests.consensus.journals import SMALL, ManualClock, open_journal


def written(directory: Path, count: int) -> list[LogEntry]:
    """A journal of several segments; what it holds."""
    journal = open_journal(OsFiles(), directory)
    journal.setCurrentTerm(2, "a")
    for index in range(1, count + 1):
        data = NO_OP if index == 1 else COMMAND + f"{index}".encode() + b"x" * 60
        journal.add(data, index, 1 if index < 4 else 2)
        journal.sync()
    journal.close()
    assert len(list(directory.glob("*"))) > 2
    bodies = [b"", *(f"{index}".encode() + b"x" * 60 for index in range(2, count + 1))]
    return [LogEntry(index, 1 if index < 4 else 2, data) for index, data in enumerate(bodies, 1)]


def test_entries_are_read_from_any_index_on(tmp_path: Path) -> None:
    expected = written(tmp_path, 12)
    for after in range(13):
        assert list(read_entries(tmp_path, OsFiles(), after)) == expected[after:]
    assert list(read_entries(tmp_path, OsFiles(), 40)) == [], "the state came by a snapshot and is ahead"


def test_what_lies_behind_a_torn_tail_was_never_acknowledged(tmp_path: Path) -> None:
    expected = written(tmp_path, 12)
    newest = max(tmp_path.glob("0*"))
    data = newest.read_bytes().rstrip(b"\0")
    newest.write_bytes(data[:-5])
    assert list(read_entries(tmp_path, OsFiles(), 3)) == expected[3:-1]


def test_a_damaged_one_and_one_that_begins_too_late_are_refused(tmp_path: Path) -> None:
    written(tmp_path, 12)
    oldest = min(tmp_path.glob("0*"))
    whole = oldest.read_bytes()
    oldest.write_bytes(whole[:40] + bytes((whole[40] ^ 1,)) + whole[41:])
    with pytest.raises(JournalFailed):
        list(read_entries(tmp_path, OsFiles(), 3))
    oldest.unlink()
    with pytest.raises(JournalFailed, match="the state is at 1"):
        list(read_entries(tmp_path, OsFiles(), 1))


def test_a_new_one_begins_behind_an_entry(tmp_path: Path) -> None:
    begin_journal(tmp_path, OsFiles(), ManualClock(), 500, 7)
    facts = read_facts(tmp_path, OsFiles())
    assert (facts.first, facts.last, facts.term_at(500), facts.findings) == (500, 500, 7, ())
    assert facts.ballot is not None
    assert (facts.ballot.term, facts.ballot.vote) == (7, None)
    assert [one.index for one in read_entries(tmp_path, OsFiles(), 499)] == [500]
    journal = open_journal(OsFiles(), tmp_path, SMALL)
    journal.setCurrentTerm(8, "a")
    journal.add(COMMAND + b"next", 501, 8)
    journal.close()
    assert [one.data for one in read_entries(tmp_path, OsFiles(), 500)] == [b"next"]
