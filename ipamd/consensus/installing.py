"""Owns the order in which a snapshot takes the place of state and journal, so that a crash in between is recognised.

First a note of what the journal is to be begun at, then the state, then the journal, then the note goes. A start that
finds the note looks whether the state came that far.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ipamd.consensus import smallfile
from ipamd.consensus.failures import JournalFailed
from ipamd.consensus.files import Files
from ipamd.consensus.journal import Journal
from ipamd.core.ports import SnapshotRefused, StateMachine

NAME = "installing"

_Position = tuple[int, int]


def install(path: Path, directory: Path, files: Files, journal: Journal, machine: StateMachine) -> bool:
    """Take state and journal from a snapshot; False: the state is as far already.

    Raises SnapshotRefused (nothing has changed), JournalFull (nor has it), JournalFailed.
    """
    position = machine.inspect(str(path))
    if position <= machine.applied:
        return False
    if position[1] > journal.getCurrentTerm():
        raise SnapshotRefused(f"the snapshot is of term {position[1]}, which this member was never told of")
    journal.sync()
    smallfile.write(directory / NAME, msgspec.json.encode(position), files)
    try:
        machine.install(str(path))
    except SnapshotRefused:
        smallfile.remove(directory / NAME, files)
        raise
    if machine.applied != position:
        raise JournalFailed(f"the snapshot is of {position}, but the state is at {machine.applied} after it")
    journal.reset(*position)
    smallfile.remove(directory / NAME, files)
    return True


def finish(directory: Path, files: Files, journal: Journal, machine: StateMachine) -> None:
    """Finish what a crash interrupted. Raises StartRefused, JournalFailed, OSError."""
    note = smallfile.read(directory / NAME, files)
    if note is None:
        return
    position = msgspec.json.decode(note, type=_Position)
    if machine.applied == position:
        journal.reset(*position)
    smallfile.remove(directory / NAME, files)
