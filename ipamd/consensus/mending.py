"""Owns mending a journal while nobody runs on it: only where nothing that was ever acknowledged is lost by it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ipamd.consensus import installing, smallfile
from ipamd.consensus.clock import Clock
from ipamd.consensus.failures import JournalFailed, JournalFull
from ipamd.consensus.figures import Figures
from ipamd.consensus.files import Files
from ipamd.consensus.hardstate import NAME as VOTE
from ipamd.consensus.hardstate import Ballot, HardState
from ipamd.consensus.journal import Journal
from ipamd.consensus.limits import Limits
from ipamd.consensus.opening import open_segments
from ipamd.consensus.segments import sync_names, unlink
from ipamd.consensus.survey import final_index, segment_paths, survey

Position = tuple[int, int]
"""Index and term of the entry that a state has applied last."""


def cut_tail(directory: Path, files: Files) -> None:
    """Cut off what a power loss tore, as the next start would. Raises StartRefused, JournalFailed, OSError."""
    for segment in open_segments(directory, files):
        segment.close()


def spare_files(directory: Path, files: Files, applied: int) -> int | None:
    """How many of the oldest files hold all that is damaged, and nothing that a state at `applied` lacks.

    None: something else is wrong. Raises OSError.
    """
    paths = segment_paths(directory, files)
    for skip in range(len(paths)):
        found = survey(directory, files, skip)
        is_whole = not any(finding.fatal for scanned in found for finding in scanned.findings)
        if is_whole and found[0].contents.first <= applied <= found[-1].contents.last:
            return skip
    return len(paths) if paths and final_index(paths[-1], files) == applied else None


def drop_files(directory: Path, files: Files, clock: Clock, count: int, position: Position) -> None:
    """Drop the oldest files; where none is left, begin the journal anew behind the entry that the state is at.

    A note says so meanwhile, by which a start finishes what was interrupted. Raises JournalFailed, OSError.
    """
    paths = segment_paths(directory, files)
    begins_anew = count == len(paths)
    try:
        if begins_anew:
            smallfile.write(directory / installing.NAME, msgspec.json.encode(position), files)
        for path in paths[:count]:
            unlink(path, files)
        sync_names(directory, files)
        if begins_anew:
            _begin_anew(directory, files, clock, position)
            smallfile.remove(directory / installing.NAME, files)
    except JournalFull as error:
        raise JournalFailed(str(error)) from error


def settle_vote(directory: Path, files: Files, term: int) -> None:
    """Give this member a term and no vote in it: for one that has the only vote. Raises JournalFailed, OSError."""
    if VOTE in files.names(directory):
        unlink(directory / VOTE, files)
    try:
        HardState(directory, files).store(Ballot(term, None))
    except JournalFull as error:
        raise JournalFailed(str(error)) from error


def _begin_anew(directory: Path, files: Files, clock: Clock, position: Position) -> None:
    journal = Journal(directory, files, Limits(), clock, Figures())
    try:
        journal.reset(*position)
    finally:
        journal.close()
