"""Owns when members look at their states, and what it means that they differ.

A digest covers all that decides what comes next, so that members with equal logs have equal ones. The comparison is
between members, at one index of the log.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum

from ipamd.core.commands import takes_digest
from ipamd.core.entries import decode_entry

_MARK = b"\x01\x15"
"""What every command that takes a digest begins with: most entries have it nowhere."""


def ends_transaction(data: bytes) -> bool:
    """Whether an entry must be the last of its transaction, because the state behind it is looked at."""
    return _MARK in data and any(takes_digest(item.command) for item in decode_entry(data).items)


class Verdict(Enum):
    """What the digests at one index say."""

    EQUAL = "equal"
    """All that are known are equal."""

    OWN_IS_WRONG = "own is wrong"
    """A majority of all members agrees on another one than this member has."""

    OTHER_IS_WRONG = "other is wrong"
    """This member's is that of a majority; somebody else's is not."""

    SPLIT = "split"
    """They differ, and none is that of a majority: nobody knows who is right."""


def judge(own: str, digests: Mapping[str, str], members: Collection[str]) -> Verdict:
    """What the digests of members (by name, the own among them) say to the one whose is `digests[own]`."""
    counted = {name: digest for name, digest in digests.items() if name in members}
    if len(set(counted.values())) <= 1:
        return Verdict.EQUAL
    values = list(counted.values())
    right = next((value for value in values if values.count(value) * 2 > len(members)), None)
    if right is None:
        return Verdict.SPLIT
    return Verdict.OTHER_IS_WRONG if digests[own] == right else Verdict.OWN_IS_WRONG
