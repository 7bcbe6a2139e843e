"""Owns what is done to journals while nobody runs on them: reading what one holds, and beginning a new one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ipamd.consensus.clock import Clock
from ipamd.consensus.engine import log_entry
from ipamd.consensus.facts import read_facts
from ipamd.consensus.failures import JournalFailed, JournalFull
from ipamd.consensus.figures import Figures
from ipamd.consensus.files import Files
from ipamd.consensus.journal import Journal
from ipamd.consensus.limits import Limits
from ipamd.consensus.records import HEAD_BYTES, decode_record
from ipamd.consensus.survey import survey
from ipamd.core.ports import LogEntry


def begin_journal(directory: Path, files: Files, clock: Clock, index: int, term: int) -> None:
    """A journal that begins behind an entry, for a state that has come so far by other means.

    Raises JournalFailed, StartRefused, OSError.
    """
    journal = Journal(directory, files, Limits(), clock, Figures())
    try:
        journal.setCurrentTerm(term, None)
        journal.reset(index, term)
    except JournalFull as error:
        raise JournalFailed(str(error)) from error
    finally:
        journal.close()


def read_entries(directory: Path, files: Files, after: int) -> Iterator[LogEntry]:
    """The entries behind an index, in order, as far as the journal is whole. Changes nothing.

    Raises JournalFailed for a journal that is damaged, or does not reach back to that index; OSError.
    """
    facts = read_facts(directory, files)
    fatal = next((finding.sentence for finding in facts.findings if finding.fatal), None)
    if fatal is not None:
        raise JournalFailed(fatal)
    if after >= facts.last:
        return  # the state came by a snapshot, and the journal was about to follow
    if facts.first > after + 1:
        raise JournalFailed(
            f"the journal in {directory} holds entries {facts.first} to {facts.last}, and the state is at {after}"
        )
    for segment in survey(directory, files):
        if segment.contents.last > after:
            yield from _entries_of(segment.path, files, segment.contents.end, after)


def _entries_of(path: Path, files: Files, end: int, after: int) -> Iterator[LogEntry]:
    file = files.open(path, writable=False)
    try:
        data = file.pread(file.size(), 0)
    finally:
        file.close()
    at = HEAD_BYTES
    while at < end and (record := decode_record(data, at)) is not None:
        at += record.size_bytes
        if record.index > after:
            yield log_entry((record.data, record.index, record.term))
