"""Owns the laws that a simulation looks at from inside, after each step: what no caller could see in time."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ipamd.core.commands import decode_command
from ipamd.core.decide import decide, expire
from ipamd.core.entries import Stamp, decode_entry
from ipamd.core.memory import MemoryState
from ipamd.core.outcomes import encode_outcome
from ipamd.core.ports import Applied, LogEntry
from ipamd.storage.digest import digest


class Entry(NamedTuple):
    """A committed entry as the first member to apply it saw it, and what became of it there."""

    term: int
    data: bytes
    outcomes: tuple[tuple[bytes, bytes], ...]
    """Op and encoded outcome of each command."""


class Violation(Exception):  # noqa: N818 - what it is
    """A law is broken: the run ends here."""


class Laws:
    """What all members of one run have done."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        """How often something happened that makes a run worth something."""

        self.log: dict[int, Entry] = {}
        self.newest_acknowledged = 0
        self._leaders: dict[int, str] = {}
        self._outcomes: dict[bytes, bytes] = {}
        self._digests: dict[int, tuple[str, str]] = {}
        self._trace = hashlib.sha256()

    @property
    def trace(self) -> str:
        """A hash over all that happened, in order."""
        return self._trace.hexdigest()[:16]

    def note(self, *what: object) -> None:
        """Something happened."""
        self._trace.update(repr(what).encode())

    def leads(self, member: str, term: int) -> None:
        """A member leads: nobody else ever led in its term."""
        first = self._leaders.setdefault(term, member)
        if first != member:
            raise Violation(f"two leaders in term {term}: {first} and {member}")

    def begins(self, member: str, term: int) -> None:
        """A member began to lead."""
        self.seen["elections"] += 1
        self.note("leads", member, term)
        self.leads(member, term)

    def applied(self, member: str, entries: Sequence[LogEntry], outcomes: Sequence[Applied]) -> None:
        """A member applied entries: every member applies the same at each index, with the same outcomes."""
        by_index: dict[int, list[tuple[bytes, bytes]]] = {}
        for one in outcomes:
            by_index.setdefault(one.index, []).append((one.op, encode_outcome(one.outcome)))
        for entry in entries:
            new = Entry(entry.term, entry.data, tuple(by_index.get(entry.index, ())))
            old = self.log.get(entry.index)
            if old is None:
                self.log[entry.index] = new
                self.note("applied", entry.index, new)
                self._once(entry.index, new)
            elif old != new:
                what = "outcome" if old[:2] == new[:2] else "entry"
                raise Violation(
                    f"{member} has another {what} at index {entry.index}, of term {new.term} and {old.term}"
                )

    def has_digest(self, member: str, index: int, found: str) -> None:
        """A member has a state at an index: all have the same."""
        first, known = self._digests.setdefault(index, (member, found))
        if known != found:
            raise Violation(f"at index {index} the states of {first} and {member} differ")

    def acknowledged(self, index: int, op: bytes) -> None:
        """A caller was told: the log has its command at that index for ever."""
        self.newest_acknowledged = max(self.newest_acknowledged, index)
        entry = self.log.get(index)
        if entry is None or op not in [one for one, _ in entry.outcomes]:
            raise Violation(f"a command was acknowledged at index {index}, which does not have it")

    def read(self, index: int, newest_before: int) -> None:
        """A barrier let a reader through: nothing acknowledged before is missing."""
        if index < newest_before:
            raise Violation(f"a read at index {index} began after index {newest_before} was acknowledged")

    def reference(self, last: int) -> str:
        """The digest of the log carried out, up to an index, by the specification in memory."""
        state, known, newest = MemoryState(), dict[bytes, bytes](), Stamp(0, 0)
        for index in range(2, last + 1):
            data = self.log[index].data if index in self.log else None
            if data is None:
                raise Violation(f"nobody applied index {index}, and index {last} is applied")
            if data:
                newest = _carry_out(state, data, known, newest, index)
        return digest(state)

    def _once(self, index: int, entry: Entry) -> None:
        for op, outcome in entry.outcomes:
            if self._outcomes.setdefault(op, outcome) != outcome:
                raise Violation(f"a command has another outcome when it comes again at index {index}")


def _carry_out(state: MemoryState, data: bytes, known: dict[bytes, bytes], newest: Stamp, index: int) -> Stamp:
    entry = decode_entry(data)
    stamp = Stamp(max(entry.stamp.log_ms, newest.log_ms), max(entry.stamp.wall_ms, newest.wall_ms), index)
    state.carry_out(expire(state, stamp))
    for item in entry.items:
        if item.op not in known:
            decision = decide(state, decode_command(item.command), stamp)
            state.carry_out(decision)
            known[item.op] = b""
    return stamp
