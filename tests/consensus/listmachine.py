"""Owns a small real state machine: a list in memory. Each start applies the whole journal again."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from ipamd.core.changes import Put
from ipamd.core.commands import VERSION, Command, decode_command
from ipamd.core.entries import Stamp, decode_entry
from ipamd.core.memory import MemoryState
from ipamd.core.model import Member
from ipamd.core.outcomes import Code, Outcome, Refused
from ipamd.core.ports import Applied, LogEntry

SNAPSHOTS: dict[str, ListMachine] = {}
"""Where snapshots lie, by path."""

CHANGES = {bytes((VERSION, kind)) for kind in (15, 17, 18, 19, 20)}
"""How encoded commands begin that found a cluster or change its members."""


class Full(Exception):  # noqa: N818 - a state
    """What this machine raises when it has no room."""


class ListMachine:
    """Answers each command with its place in the list. `poison` makes it raise; `full` makes it find no room."""

    def __init__(self, poison: bytes = b"poison") -> None:
        self.commands: list[bytes] = []
        self.indexes: list[int] = []
        self.stamps: list[Stamp] = []
        self.outcomes: dict[bytes, tuple[bytes, Outcome]] = {}
        self.applied: tuple[int, int] = (1, 0)
        self.stamp = Stamp(0, 0)
        self.next_due_log_ms: int | None = None
        self.poison = poison
        self.full = False
        self.closed = False
        self.durable = 1
        self.calls = 0
        self.cluster_id: str | None = None
        self.level = 1
        self._members: tuple[Member, ...] = ()

    @property
    def members(self) -> tuple[Member, ...]:
        return self._members

    @property
    def wall_ms(self) -> int:
        return self.stamp.wall_ms

    @property
    def log_ms(self) -> int:
        return self.stamp.log_ms

    def apply(self, entries: Sequence[LogEntry]) -> list[Applied]:
        self.calls += 1
        if self.full:
            raise Full("the list has no room")
        found: list[Applied] = []
        for entry in entries:
            assert entry.index == self.applied[0] + 1
            if entry.data:
                found += self._apply_entry(entry)
            self.applied = (entry.index, entry.term)
        return found

    def _apply_entry(self, entry: LogEntry) -> list[Applied]:
        decoded = decode_entry(entry.data)
        self.stamp = decoded.stamp
        self.stamps.append(decoded.stamp)
        found = []
        for item in decoded.items:
            if item.command == self.poison:
                raise ValueError("poison")
            fingerprint, outcome = self.outcomes.get(item.op, (item.fingerprint, None))
            if outcome is None and item.command[:2] in CHANGES:
                outcome = self._change_members(decode_command(item.command))
                self.outcomes[item.op] = (item.fingerprint, outcome)
            elif outcome is None:
                self.commands.append(item.command)
                self.indexes.append(entry.index)
                outcome = Refused(Code.NOT_FOUND, str(len(self.commands)))
                self.outcomes[item.op] = (item.fingerprint, outcome)
            elif fingerprint != item.fingerprint:
                outcome = Refused(Code.IDEMPOTENCY_CONFLICT, "another request")
            found.append(Applied(item.op, entry.index, outcome))
        return found

    def _change_members(self, command: Command) -> Outcome:
        """By the core's own rules, over a state that has nothing but members."""
        state = MemoryState()
        for member in self._members:
            state.write(Put(member))
        outcome = state.run(command, self.stamp)
        self._members = tuple(state.members())
        self.cluster_id = state.cluster_id() or self.cluster_id
        return outcome

    def inspect(self, path: str) -> tuple[int, int]:
        return copy.deepcopy(SNAPSHOTS[path]).applied

    def install(self, path: str) -> None:
        other = copy.deepcopy(SNAPSHOTS[path])
        self.commands, self.indexes, self.outcomes = other.commands, other.indexes, other.outcomes
        self.stamp, self._members = other.stamp, other._members
        self.applied, self.cluster_id = other.applied, other.cluster_id
        self.durable = self.applied[0]

    def save(self, path: str) -> None:
        """Write a snapshot."""
        SNAPSHOTS[path] = copy.deepcopy(self)

    def checkpoint(self) -> int:
        return self.durable

    def close(self) -> None:
        self.closed = True
