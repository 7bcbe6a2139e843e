"""Owns the members of a cluster that this member's state does not know yet: kept beside the journal.

Between the moment when a cluster is formed, or this member taken in, and the entry that says so, a restart must find
the same members.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from ipamd.consensus import smallfile
from ipamd.consensus.files import Files
from ipamd.core.model import Member

NAME = "members"


class Roster(NamedTuple):
    """Members, and the index of the entry that took this one in (0: it is one of the first)."""

    members: tuple[Member, ...]
    added_at: int = 0


def read_roster(directory: Path, files: Files) -> Roster | None:
    """What is kept; None: nothing. Raises StartRefused, OSError."""
    body = smallfile.read(directory / NAME, files)
    return None if body is None else msgspec.json.decode(body, type=Roster)


def write_roster(directory: Path, roster: Roster, files: Files) -> None:
    """Returns once it is on the disk. Raises JournalFull, JournalFailed."""
    smallfile.write(directory / NAME, msgspec.json.encode(roster), files)
