"""Owns one member of the log without a thread: what waits becomes entries, and what was applied becomes answers.

A thread (node.py) or a simulation calls `step`; everything but `intake` and `status` belongs to the caller of it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ipamd.consensus.changes import RETRY_S, Changes
from ipamd.consensus.clock import Chance, Clock
from ipamd.consensus.engine import Engine
from ipamd.consensus.failures import JournalFull, StartRefused
from ipamd.consensus.figures import Figures
from ipamd.consensus.files import Files
from ipamd.consensus.installing import finish, install
from ipamd.consensus.intake import Batch, Intake
from ipamd.consensus.journal import Journal
from ipamd.consensus.limits import Limits
from ipamd.consensus.logclock import LogClock
from ipamd.consensus.membership import Membership
from ipamd.consensus.peers import ALONE, Beginning, Hello, NoWire, Refusal, Wire
from ipamd.consensus.records import Entry
from ipamd.consensus.waiting import Waiting
from ipamd.core.entries import Item, encode_entry
from ipamd.core.figures import PeerFigures
from ipamd.core.model import Member
from ipamd.core.ports import Applied, LogStatus, SnapshotRefused, StateMachine

logger = logging.getLogger(__name__)


class _Succession(NamedTuple):
    """Who is to lead next (None: whoever has most), and until when nothing is taken in for that."""

    name: str | None
    until_s: float


class Replica:
    """One member. It is the wire's ears."""

    def __init__(
        self,
        *,
        name: str,
        directory: Path,
        machine: StateMachine,
        files: Files,
        clock: Clock,
        chance: Chance,
        limits: Limits,
        retryable: tuple[type[Exception], ...] = (),
        me: Member | None = None,
        beginning: Beginning = ALONE,
        wire: Wire | None = None,
    ) -> None:
        """Raises StartRefused, JournalFailed."""
        self.figures = Figures()
        self.intake = Intake(limits.batch_items, limits.in_flight)
        self.trouble: str | None = "this member has not begun to lead"
        """Why nothing can be proposed here at the moment, as a sentence; None: it can."""

        self.name = name
        self._machine = machine
        self._directory = directory
        self._files = files
        self._clock = clock
        self._limits = limits
        self._retryable = retryable
        self.log_clock = LogClock(clock)
        self._waiting = Waiting(self.intake, self.figures, clock)
        self._leading_term: int | None = None
        self._abandoned = False
        self._full: str | None = None
        self._look_at_s = 0.0
        self._appended, self._appended_s = 0, 0.0
        self._succession: _Succession | None = None
        self._wire = wire or NoWire()
        self._open(me or Member(name, "", "", ""), beginning)
        self._engine = Engine(
            name=name,
            journal=self._journal,
            machine=machine,
            clock=clock,
            chance=chance,
            limits=limits,
            figures=self.figures,
            on_applied=self._applied,
            wire=self._wire,
            retryable=retryable,
        )
        self._changes = Changes(self._engine, machine, self._membership, clock, limits.heartbeat_s)
        self._engine.guard.bound = lambda: self._membership.bound
        self._begin()
        self._wire.listen(self)
        self._go_by_members()
        self._status = self._new_status()

    @property
    def status(self) -> LogStatus:
        """What this member knows, as of its last step; the log clock as of now. Any thread may ask."""
        status = self._status
        return status._replace(log_ms=self.log_clock.log_ms()) if self.trouble is None else status

    @property
    def members(self) -> tuple[Member, ...]:
        """The members in force; empty while the first ones are gathered."""
        return self._membership.members

    @property
    def removed(self) -> str | None:
        """That this member was removed from its cluster, as a sentence: it must stop."""
        return self._membership.removed

    def member(self, name: str | None) -> Member | None:
        """A member by its name; also one that the state here does not know yet."""
        return self._membership.find(name)

    @property
    def wanted_snapshot(self) -> str | None:
        """The leader whose snapshot this member needs: it has no entries any more that are lacking here."""
        return self._engine.guard.lags_behind if self._full is None else None

    @property
    def level(self) -> bool:
        """Whether this member can serve: it leads, or has what its leader has but for what is on its way."""
        engine = self._engine
        if self._abandoned or self.removed or self._full or engine.stalled or engine.guard.lags_behind:
            return False
        if engine.is_leader or engine.leader is None:
            return self.trouble is None  # another thread may ask in the middle of a step
        return engine.applied + self._limits.level_entries >= engine.guard.leader_committed

    @property
    def hands_over(self) -> bool:
        """Whether it is about to hand over its leadership."""
        return self._succession is not None

    def match_index(self, name: str) -> int | None:
        """Up to where a member has the leader's journal, as far as it said; None: this one does not lead."""
        if not self._engine.is_leader:
            return None
        return self._journal.last if name == self.name else self._engine.match_index(name)

    def peer_figures(self) -> list[PeerFigures]:
        """How this leader sees the other members; nothing where it does not lead."""
        engine, others = self._engine, [member.name for member in self.members if member.name != self.name]
        if not engine.is_leader:
            return []
        last = self._journal.last
        return [PeerFigures(name, max(0, last - engine.match_index(name)), engine.silent_s(name)) for name in others]

    def step(self) -> bool:
        """One round: take in what waits, sync it, let Raft act. Whether another round is due at once."""
        self._observe()  # what arrived since the last round may have ended this member's leadership
        try:
            self._look_for_room()
            self._take_in()
            more = self._engine.tick()
            self._hand_over()
        except JournalFull as error:
            self._give_up(str(error))
            more = False
        self._observe()
        self._waiting.tell()
        return more or (self.intake.waiting and self.trouble is None and not self._gathers())

    def hand_over(self, name: str | None) -> None:
        """Have a peer lead, or the most advanced one (None), if this member leads. Nothing is taken in meanwhile."""
        peers = self._membership.voting_peers
        if self._engine.is_leader and (peers if name is None else name in peers):
            self._succession = _Succession(name, self._clock.monotonic_s() + self._limits.hand_over_s)

    def install(self, path: Path) -> None:
        """Take the state from another member's snapshot, unless it is not needed any more. Raises JournalFailed."""
        if self._engine.is_leader or self._full is not None:
            return
        no_room: tuple[type[Exception], ...] = (JournalFull, *self._retryable)
        try:
            done = install(path, self._directory, self._files, self._journal, self._machine)
        except SnapshotRefused as error:
            logger.warning("the snapshot is not installed: %s", error)
            return
        except no_room as error:
            self._give_up(str(error))
            return
        if not done:
            return
        self.figures.snapshots += 1
        self._engine.installed()
        self._waiting.fail("the entries in between came as a snapshot")
        self._go_by_members()
        self._observe()
        self._waiting.tell()

    # What the wire tells.

    def hello(self) -> Hello:
        """What to say first."""
        return self._membership.hello()

    def greet(self, hello: Hello) -> Refusal | None:
        """Whether to let in who said this."""
        return self._membership.greet(hello)

    def connected(self, hello: Hello) -> None:
        """A connection to a member is up. Raises JournalFull, JournalFailed."""
        if self._membership.heard(hello):
            self._go_by_members()
        self._engine.guard.connected(hello.name)

    def disconnected(self, name: str) -> None:
        """It is gone."""
        self._membership.gone(name)
        self._engine.guard.disconnected(name)

    def refused(self, name: str, refusal: Refusal) -> None:
        """A member did not let us in."""
        self._membership.refused(name, refusal)

    def received(self, name: str, message: object) -> bool:
        """Something arrived; False: it was no message. Raises JournalFailed."""
        if self._full is not None or self.removed is not None:
            return True
        try:
            return self._engine.guard.receive(name, message)
        except JournalFull as error:
            self._give_up(str(error))
            return True

    # How it ends.

    def abandon(self, sentence: str) -> None:
        """Take in nothing any more, and tell everybody who waits: this member must stop."""
        self._abandoned = True
        self.trouble = sentence
        self.intake.close(sentence)
        self.fail_all(sentence)

    def fail_all(self, sentence: str) -> None:
        """Nothing that is under way will be answered any more."""
        waiting = self.intake.take_all()
        self._waiting.refuse(waiting, sentence)
        self._waiting.fail(sentence)
        self._waiting.tell()

    def close(self) -> None:
        """Sync and close; the state machine and the wire too. Raises JournalFull, JournalFailed."""
        self._wire.close()
        self._journal.close()
        try:
            self._machine.checkpoint()
        except self._retryable as error:
            logger.warning("stopped without a checkpoint, the next start takes a little longer: %s", error)
        self._machine.close()

    def _open(self, me: Member, beginning: Beginning) -> None:
        try:
            self._journal = Journal(self._directory, self._files, self._limits, self._clock, self.figures)
            finish(self._directory, self._files, self._journal, self._machine)
            self._membership = Membership(me, beginning, self._machine, self._directory, self._files)
        except OSError as error:
            raise StartRefused(f"the journal in {self._directory} cannot be opened: {error}") from error
        except JournalFull as error:
            raise StartRefused(f"{error}: make room first") from error

    def _begin(self) -> None:
        """Put the first entry of a new journal on the disk: from here on a journal is never empty."""
        try:
            self._journal.sync()
        except JournalFull as error:
            raise StartRefused(f"{error}: make room first") from error

    def _go_by_members(self) -> None:
        """The members changed, or are known now."""
        self._members_seen = self.members
        self._membership.changed()
        self._engine.set_members(self.members)
        guests = self._membership.guests
        self._engine.guard.guests = {guest.name for guest in guests}
        others = [member for member in self._membership.reached if member.name not in self._engine.guard.guests]
        self._wire.reach([member for member in (*others, *guests) if member.name != self.name])

    def _take_in(self) -> None:
        if self.trouble is not None:
            self._waiting.refuse(self.intake.take_all(), self.trouble)
            return
        if self._gathers():
            return
        own = self._changes.due()
        if own is not None:
            self._append([own], changes_members=True)
        batch, changes_members = self.intake.take(), False
        if batch is not None:
            batch, changes_members = self._admitted(batch)
        if batch is not None and (batch.proposals or batch.readers):
            items = [waiter.item for waiter in batch.proposals if waiter.item is not None]
            index, term = self._append(items, changes_members=changes_members)
            self._waiting.carry(index, term, batch)

    def _gathers(self) -> bool:
        """Whether what waits does so a little longer: for a successor, or to share the entry after one under way."""
        under_way = self._appended > self._engine.applied
        soon = under_way and self._clock.monotonic_s() < self._appended_s + self._limits.gather_s
        return soon or self._succession is not None

    def _append(self, items: list[Item], *, changes_members: bool) -> tuple[int, int]:
        self.figures.entries += 1
        self.figures.items += len(items)
        self.figures.batch_items.note(len(items))
        data = encode_entry(self.log_clock.stamp(), items)
        index, term = self._engine.append(data, changes_members=changes_members)
        self._appended, self._appended_s = index, self._clock.monotonic_s()
        return index, term

    def _admitted(self, batch: Batch) -> tuple[Batch, bool]:
        """What of a batch may go into the log now, and whether it changes the members."""
        admitted, refused, sentence = self._changes.admit(batch)
        self._waiting.refuse(refused, sentence, RETRY_S)
        if any(self._changes.removes_leader(waiter) for waiter in refused):
            self.hand_over(None)
        return admitted, any(waiter.changes_members for waiter in admitted.proposals)

    def _hand_over(self) -> None:
        """Ask the successor as soon as it has the whole journal; give up after a while."""
        succession = self._succession
        if succession is None:
            return
        if not self._engine.is_leader or self._clock.monotonic_s() > succession.until_s:
            self._succession = None
        else:
            self._engine.hand_over(succession.name)

    def _applied(self, entries: Sequence[Entry], outcomes: Sequence[Applied]) -> None:
        """Called when entries were applied: tell those who wait for them, and go by the members as they are now."""
        if self.members is not self._members_seen:
            self._go_by_members()
        self._waiting.applied(entries, outcomes)

    def _give_up(self, sentence: str) -> None:
        """The journal found no room: who waits for what it dropped is told that nothing was changed."""
        if self._full is None:
            logger.error("%s: nothing is proposed until there is", sentence)
        self.figures.full += 1
        self._full = sentence
        self._look_at_s = self._clock.monotonic_s() + self._limits.retry_s
        self._engine.step_down()
        self._waiting.drop(self._journal.last, sentence)

    def _look_for_room(self) -> None:
        if self._full is None or self._clock.monotonic_s() < self._look_at_s:
            return
        self._look_at_s = self._clock.monotonic_s() + self._limits.retry_s
        room = self._files.room(self._directory)
        if room.free_bytes >= min(self._limits.room_bytes, room.total_bytes // 16):
            logger.warning("there is room for the journal in %s again", self._directory)
            self._full = None
            self._engine.hasten()

    def _observe(self) -> None:
        """See what changed: whether this member leads, what it has applied."""
        engine = self._engine
        if not engine.leads:
            self._leading_term = None
        elif self._leading_term != engine.term:
            self._leading_term = engine.term
            self.figures.elections += 1
            self.log_clock.lead(self._machine.log_ms, self._machine.wall_ms)
        seen = (engine.leader, engine.leads, engine.term, engine.applied, engine.committed)
        if seen != self._status[: len(seen)]:
            self._status = self._new_status()
        self.trouble = self._new_trouble()

    def _new_trouble(self) -> str | None:
        engine = self._engine
        known = self.removed or self._full or engine.stalled
        if known is not None or self._leading_term is not None:
            return known
        if engine.leader is not None:
            return f"member {engine.leader} leads, not {self.name}"
        return self._membership.trouble or "there is no leader at the moment"

    def _new_status(self) -> LogStatus:
        engine = self._engine
        return LogStatus(
            leader=engine.leader,
            is_leader=engine.leads,
            term=engine.term,
            applied=engine.applied,
            committed=engine.committed,
            log_ms=self._machine.log_ms,
            next_due_log_ms=self._machine.next_due_log_ms,
        )
