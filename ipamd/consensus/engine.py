"""Owns how Raft is driven: ticks, what is appended, sent and applied, and which members count.

The fourth seam is here: committed entries go to the state machine in our own loop. pysyncobj's own would apply one
entry at a time, and again and again one whose method raised.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence

from ipamd.consensus.clock import Chance, Clock
from ipamd.consensus.compaction import Compaction
from ipamd.consensus.failures import JournalFailed, StartRefused
from ipamd.consensus.figures import Figures
from ipamd.consensus.guarded import Guard
from ipamd.consensus.journal import Journal
from ipamd.consensus.limits import Limits
from ipamd.consensus.peers import NoWire, Wire
from ipamd.consensus.raft import Raft
from ipamd.consensus.records import Entry
from ipamd.consensus.survey import WAY_OUT
from ipamd.core.digests import ends_transaction
from ipamd.core.model import Member
from ipamd.core.ports import Applied, LogEntry, StateMachine

logger = logging.getLogger(__name__)

COMMAND = b"\x00"
"""First byte of an entry of ours; pysyncobj's own empty entry is `NO_OP`."""

NO_OP = b"\x01"

CONFIGURATION = b"\x04"
"""First byte of an entry with a command that changes the members, among others."""

OnApplied = Callable[[Sequence[Entry], Sequence[Applied]], None]


class Engine:
    """One member's Raft. Used by one thread, or by a simulation."""

    def __init__(
        self,
        *,
        name: str,
        journal: Journal,
        machine: StateMachine,
        clock: Clock,
        chance: Chance,
        limits: Limits,
        figures: Figures,
        on_applied: OnApplied,
        wire: Wire | None = None,
        retryable: tuple[type[Exception], ...] = (),
    ) -> None:
        """Nobody is a member yet: see `set_members`. Raises StartRefused: journal and state do not belong together."""
        self.stalled: str | None = None
        """Why the state machine takes nothing at the moment."""

        self.members: tuple[Member, ...] = ()
        """Who counts. They change when a change of them is applied."""

        self._name = name
        self._journal = journal
        self._machine = machine
        self._clock = clock
        self._limits = limits
        self._figures = figures
        self._on_applied = on_applied
        self._retryable = retryable
        self._retry_at_s = 0.0
        self._change = (0, 0)
        self._compaction = Compaction(journal, machine, clock, limits, retryable)
        self.guard = Guard(wire or NoWire(), journal, clock, limits, figures)
        self._raft = Raft(
            name=name,
            journal=journal,
            transport=self.guard,
            clock=clock,
            chance=chance,
            limits=limits,
            serializer=self._compaction,
            apply=self._apply,
        )
        self._pre_vote = self.guard.guard(self._raft)
        self._raft.refrain()
        self._begin_at(self._machine.applied)
        self._sent = journal.last
        self._told = 0
        """The commit index that the peers were sent last: readers there wait for it."""

    def _begin_at(self, position: tuple[int, int]) -> None:
        """Begin where the state machine stands: nothing old is applied again."""
        applied, term = position
        first, last = self._journal.first, self._journal.last
        if not first <= applied <= last:
            raise StartRefused(
                f"the state reflects the log up to index {applied}, but the journal holds {first} to {last}; {WAY_OUT}"
            )
        if self._journal.term_at(applied) != term:
            raise StartRefused(
                f"index {applied} is of term {term} in the state and of term {self._journal.term_at(applied)} in the "
                f"journal; {WAY_OUT}"
            )
        self._raft.has_applied(applied)
        self._journal.fixed = applied

    # Who counts.

    def set_members(self, members: tuple[Member, ...]) -> None:
        """Go by these members from now on."""
        before, self.members = self._voters, members
        others = {member.name for member in members} - {self._name}
        if self.is_leader and not self._raft.voters | self._raft.learners <= others:
            self._raft.send_entries()  # who is left out learns from it that this is committed
        self._raft.set_peers(self._voters - {self._name}, others - self._voters)
        self.guard.set_peers(others)
        if self._name in self._voters:
            if self._name not in before:
                self.hasten()
        elif self._name in before:
            self.resign()

    @property
    def _voters(self) -> set[str]:
        return {member.name for member in self.members if member.voter}

    @property
    def change_pending(self) -> bool:
        """Whether a change of members that this leader appended is not applied yet."""
        index, term = self._change
        return term == self.term and index > self.applied

    def level(self, name: str) -> bool:
        """Whether a peer has nearly all of this leader's journal, something of its own term too, and answers."""
        least = max(self._raft.first_own, self._journal.last - self._limits.level_entries)
        return self._raft.match_index(name) >= least and self._raft.silent_s(name) <= 2 * self._limits.heartbeat_s

    def match_index(self, name: str) -> int:
        """Up to where a peer has this leader's journal, as far as it said."""
        return self._raft.match_index(name)

    # What it knows.

    @property
    def is_leader(self) -> bool:
        """Whether this member believes to lead."""
        return self._raft.is_leader

    @property
    def leads(self) -> bool:
        """Whether it leads and has applied its own first entry: all that was ever acknowledged is in its state."""
        return self.is_leader and self.applied >= self._raft.first_own

    @property
    def leader(self) -> str | None:
        """Name of the leader, if it was heard lately."""
        return self._raft.leader if self.is_leader or self.guard.leader_lives else None

    @property
    def term(self) -> int:
        """The term it is in."""
        return self._raft.term

    @property
    def committed(self) -> int:
        """Index up to which it knows entries to be committed."""
        return self._raft.committed

    @property
    def applied(self) -> int:
        """Index up to which its state machine is."""
        return self._raft.applied

    def silent_s(self, name: str) -> float | None:
        """How long ago a peer has answered this leader; None: never."""
        silent_s = self._raft.silent_s(name)
        return silent_s if math.isfinite(silent_s) else None

    # What is done with it.

    def append(self, data: bytes, *, changes_members: bool = False) -> tuple[int, int]:
        """Put an entry at the end of the leader's log; its index and term. It is on the disk after the next tick.

        Raises JournalFailed where this member does not lead: it would forge an entry of another's term.
        """
        if not self.is_leader:
            raise JournalFailed(f"{self._name} was about to append an entry in term {self.term}, and does not lead")
        index, term = self._journal.last + 1, self.term
        self._journal.add((CONFIGURATION if changes_members else COMMAND) + data, index, term)
        if changes_members:
            self._change = (index, term)
        return index, term

    def tick(self) -> bool:
        """Sync, then let Raft act on it; whether there is more to do at once.

        Raises JournalFull (see `step_down`); any other exception means that this member must stop. What is committed
        is applied first: no election starts while a change of members could be unapplied.
        """
        self._journal.sync()
        self.guard.flush()
        if self.stalled is not None and self.is_leader and self._raft.voters:
            self.resign()  # with it everybody else would wait for room here
        if not self.is_leader and self.committed > self.applied:
            self._apply()
            return self._has_more()
        if self._compaction.due():
            self._raft.compact()
        self._consider_election()
        self._raft.tick()
        self._send_new()
        return self._has_more()

    def step_down(self) -> None:
        """Stop leading and voting: the journal found no room, and what it could not take is gone from it."""
        self.guard.forget()
        self._raft.follow()
        self._raft.refrain()
        self._change = (0, 0)
        self._sent = self._journal.last

    def hasten(self) -> None:
        """Stand for election in time again; a member without peers at once: there is nobody to wait for."""
        if self._raft.voters:
            self._raft.wait()
        else:
            self._raft.hasten()

    def resign(self) -> None:
        """Without a vote, stop standing; and stop leading: whoever is level is asked to."""
        if self.is_leader:
            self._raft.send_entries()
            self._raft.hand_over(None)
        self._raft.follow()
        self._raft.refrain()

    def hand_over(self, name: str | None) -> bool:
        """Ask a peer, or the most advanced one, to lead; whether one was asked: it must have the whole journal."""
        return self.is_leader and self._journal.durable == self._journal.last and self._raft.hand_over(name)

    def installed(self) -> None:
        """The state machine came from a snapshot, and the journal with it."""
        self._begin_at(self._machine.applied)
        self.guard.lags_behind = None
        self._sent = self._journal.last

    def _consider_election(self) -> None:
        """Before an election a majority is asked whether it would vote, unless the leader itself wants the election."""
        if not self._raft.election_due:
            return
        if self._name not in self._voters:
            self._raft.refrain()
        elif self._learn_commits():
            self._raft.wait()
        elif self._raft.voters and not self._raft.takes_over and not self._pre_vote.won:
            self._pre_vote.ask()
            self._raft.wait()

    def _learn_commits(self) -> bool:
        """Whether the journal shows that more is committed than is applied.

        A change of members is appended only when the one before is applied. So of two in the journal the first is
        committed, and who has not applied it must not stand: its idea of the members is too old.
        """
        unapplied = range(self.applied + 1, self._journal.last + 1)
        changes = [index for index in unapplied if self._journal.entry(index)[0][:1] == CONFIGURATION]
        if len(changes) < 2:
            return False
        self._raft.commit(changes[-2])
        return True

    def _send_new(self) -> None:
        """Send at once what is new, was asked for, or is committed now: pysyncobj would wait for the next heartbeat."""
        new = (self._journal.last, self.committed)
        if self.is_leader and (new != (self._sent, self._told) or self.guard.behind):
            self._sent, self._told = new
            self.guard.behind = False
            self._raft.send_entries()

    def _has_more(self) -> bool:
        unsynced = self._journal.durable < self._journal.last
        return self.stalled is None and (unsynced or self.committed > self.applied)

    def _apply(self) -> bool:
        """What pysyncobj calls to apply committed entries; False: nothing needs to be sent because of it."""
        applied = self.applied
        if self.committed > applied and self._clock.monotonic_s() >= self._retry_at_s:
            self._journal.sync()
            last = min(self.committed, applied + self._limits.apply_entries)
            self._apply_entries(_one_transaction(self._journal.entries(applied + 1, last, self._limits.apply_bytes)))
        return False

    def _apply_entries(self, entries: list[Entry]) -> None:
        _, first, _ = entries[0]
        _, last, term = entries[-1]
        if self._machine.applied[0] + 1 != first:
            raise JournalFailed(f"entry {first} is due, but the state is at {self._machine.applied[0]}")
        started_s = self._clock.monotonic_s()
        try:
            outcomes = self._machine.apply([log_entry(entry) for entry in entries])
        except self._retryable as error:
            self._stall(str(error))
            return
        if self._machine.applied != (last, term):
            raise JournalFailed(f"the state is at {self._machine.applied} after entry {last} of term {term}")
        if self.stalled is not None:
            self._go_on()
        self._raft.has_applied(last)
        self._journal.fixed = last
        self._figures.applied(started_s, self._clock.monotonic_s() - started_s, len(entries))
        self._on_applied(entries, outcomes)

    def _stall(self, sentence: str) -> None:
        if self.stalled is None:
            logger.error("the state takes nothing until there is room: %s", sentence)
        self.stalled = sentence
        self._retry_at_s = self._clock.monotonic_s() + self._limits.retry_s

    def _go_on(self) -> None:
        """There is room again; until now it stood for no election."""
        self.stalled = None
        if not self.is_leader and self._name in self._voters:
            self._raft.wait()


def _one_transaction(entries: list[Entry]) -> list[Entry]:
    """The first of them, up to one behind which the state is looked at."""
    ends = (at for at, (data, _, _) in enumerate(entries, 1) if data[:1] == COMMAND and ends_transaction(data[1:]))
    return entries[: next(ends, len(entries))]


def log_entry(entry: Entry) -> LogEntry:
    """An entry of the journal as the state machine takes it. Raises JournalFailed."""
    data, index, term = entry
    if data[:1] in (COMMAND, CONFIGURATION):
        return LogEntry(index, term, data[1:])
    if data == NO_OP:
        return LogEntry(index, term, b"")
    raise JournalFailed(f"entry {index} of term {term} is of a kind that this program does not know: {data[:1]!r}")
