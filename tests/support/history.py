"""Owns the history of calls: what was asked, when, and what was answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Verb(StrEnum):
    """`release` names one binding of a container; `seen` is no call but a look while nothing was under way."""

    ADD = "add"
    DEL = "del"
    RELEASE = "release"
    SEEN = "seen"


class Call(NamedTuple):
    """One call for one pod. Times are seconds on one clock; calls of one pod never overlap.

    `done` False: no answer came, the call may be carried out at any time, or never. `address` is the answer of an ADD,
    what a release freed, and what was seen; None with `done`: refused, stale, nothing seen.
    """

    pod: str
    verb: Verb
    container: str | None
    called_s: float
    returned_s: float
    done: bool
    address: str | None = None
    binding_s: float | None = None
    """Of an ADD or DEL: when it started, if not at `called_s`. Of a release: start of the ADD whose binding it names."""

    @property
    def start_s(self) -> float:
        """What orders the calls of one container on its node."""
        return self.called_s if self.binding_s is None else self.binding_s


class Shown(NamedTuple):
    """Who holds an address, as a list shows it."""

    container: str | None
    address: str


class Read(NamedTuple):
    """A list of all that is held, read while calls were under way. `where` names it in sentences."""

    called_s: float
    returned_s: float
    held: Mapping[str, Shown]
    where: str = "a list"


@dataclass
class History:
    """Calls in the order in which they returned, and reads."""

    calls: list[Call] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)

    def note(self, call: Call) -> None:
        """Add a call."""
        self.calls.append(call)

    @property
    def acknowledged(self) -> int:
        """How many calls were answered."""
        return sum(call.done and call.verb is not Verb.SEEN for call in self.calls)
