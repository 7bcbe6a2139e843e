"""Owns when the members may change: one change at a time, and which ones the leader makes by itself."""

from __future__ import annotations

from hashlib import sha256

from ipamd.consensus.clock import Clock
from ipamd.consensus.engine import Engine
from ipamd.consensus.intake import Batch, Waiter
from ipamd.consensus.membership import Membership
from ipamd.core.codec import CodecError
from ipamd.core.commands import (
    BindMember,
    Command,
    Origin,
    PromoteMember,
    RemoveMember,
    decode_command,
    encode_command,
)
from ipamd.core.entries import OP_BYTES, Item
from ipamd.core.ports import StateMachine

RETRY_S = 0.2
"""How soon a change that found another under way may be asked for again."""

_SYSTEM = Origin("system", "membership")


class Changes:
    """What a leader asks before it appends a change of members."""

    def __init__(
        self, engine: Engine, machine: StateMachine, membership: Membership, clock: Clock, pause_s: float
    ) -> None:
        self._engine = engine
        self._machine = machine
        self._membership = membership
        self._clock = clock
        self._pause_s = pause_s
        self._not_before_s = 0.0

    def admit(self, batch: Batch) -> tuple[Batch, list[Waiter], str]:
        """What of a batch may go into the log now, what may not, and why not."""
        changes = [waiter for waiter in batch.proposals if waiter.changes_members]
        if not changes:
            return batch, [], ""
        sentence = self._why_not(changes[0])
        refused = changes if sentence else changes[1:]
        proposals = [waiter for waiter in batch.proposals if waiter not in refused]
        return Batch(proposals, batch.readers), refused, sentence or "another change of members is under way"

    def removes_leader(self, waiter: Waiter) -> bool:
        """Whether it would remove this member, while others have a vote: it hands over first."""
        if waiter.item is None or not self._membership.voting_peers:
            return False
        try:
            command = decode_command(waiter.item.command)
        except CodecError:
            return False
        return isinstance(command, RemoveMember) and command.name == self._membership.me.name

    def due(self) -> Item | None:
        """Give a vote to who has caught up; keep where a member is reached now."""
        now_s = self._clock.monotonic_s()
        if now_s < self._not_before_s or self._engine.change_pending:
            return None
        self._not_before_s = now_s + self._pause_s
        command = self._due_command()
        if command is None:
            return None
        op = sha256(f"{self._engine.applied} {self._engine.term} {now_s} {command}".encode()).digest()[:OP_BYTES]
        return Item(op, encode_command(command))

    def _why_not(self, waiter: Waiter) -> str | None:
        if self._engine.change_pending:
            return "another change of members is under way"
        if self.removes_leader(waiter):
            return f"{self._membership.me.name} leads and is to be removed: it hands over first"
        return None

    def _due_command(self) -> Command | None:
        for member in self._machine.members:
            if not member.voter and self._engine.level(member.name):
                return PromoteMember(_SYSTEM, member.name, member.member_id)
        hello = self._membership.unlike()
        if hello is None:
            return None
        return BindMember(_SYSTEM, hello.name, hello.member_id, hello.raft, hello.api, hello.level)
