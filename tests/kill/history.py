"""Owns the history of calls: what was asked of the server, when, and what it answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Verb(StrEnum):
    """`seen` is no call: it is what the server showed after a restart, when nothing was under way."""

    ADD = "add"
    DEL = "del"
    SEEN = "seen"


class Call(NamedTuple):
    """One call for one pod. Times are seconds on one clock; calls of one pod never overlap.

    `done` False: no answer came, the call may have been carried out or not. `address` is the answer of an ADD, and what
    was seen; None with `done`: the ADD was refused, or nothing was seen.
    """

    pod: str
    verb: Verb
    container: str | None
    called_s: float
    returned_s: float
    done: bool
    address: str | None = None


@dataclass
class History:
    """Calls in the order in which they returned."""

    calls: list[Call] = field(default_factory=list)

    def note(self, call: Call) -> None:
        """Add a call."""
        self.calls.append(call)

    @property
    def acknowledged(self) -> int:
        """How many calls were answered."""
        return sum(call.done and call.verb is not Verb.SEEN for call in self.calls)
