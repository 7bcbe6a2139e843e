"""Owns the levels: what a program knows of the log, and what may be proposed while some members know less.

Each program has a level; each member's is a part of its row. A kind of command that came with a level above 1 is
proposed only when every member knows it. The highest level that was ever proposed is kept in the state: from then on a
program of a lower one can neither read the log nor be taken in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from ipamd.core.changes import Put
from ipamd.core.commands import KINDS, Command, Note
from ipamd.core.model import Member
from ipamd.core.ports import View
from ipamd.core.values import replace


class NewerEntry(Exception):  # noqa: N818 - what the entry is
    """A committed entry that this program cannot read; one sentence. Nobody may pass it by."""


LEVEL: Final = 2
"""The level of this program."""

LATER: Final[Mapping[type[Command], int]] = {Note: 2}
"""The level that each kind of command came with; those that are not here came with the first."""

_BY_NUMBER: Final = {number: LATER.get(kind, 1) for number, kind in KINDS.items()}


def level_of(command: Command) -> int:
    """The level that a command came with."""
    return LATER.get(type(command), 1)


def needed(data: bytes) -> int:
    """The level that an encoded command came with; of a kind that this program does not know: above its own."""
    return _BY_NUMBER.get(data[1], LEVEL + 1) if len(data) > 1 else LEVEL + 1


def hindrance(data: bytes, members: Collection[Member]) -> str | None:
    """Why an encoded command cannot be proposed among these members, as a sentence; None: each of them knows it."""
    level = needed(data)
    if level == 1:
        return None
    older = sorted(member.name for member in members if member.level < level)
    if not older:
        return None
    run, them = ("runs", "it") if len(older) == 1 else ("run", "them")
    return f"{' and '.join(older)} {run} an older version of ipamd: upgrade {them} first"


def raised(view: View, command: Command) -> tuple[Put, ...]:
    """What must be written so that the state tells the highest level in its log."""
    level = level_of(command)
    cluster = view.cluster() if level > 1 else None
    if cluster is None or cluster.level >= level:
        return ()
    return (Put(replace(cluster, level=level)),)
