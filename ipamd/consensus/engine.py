"""Owns pysyncobj's Raft object: how it is set up, ticked, and read. No other module uses its mangled names.

The fourth seam is here: committed entries go to the state machine in our own loop. pysyncobj's own would apply one
entry at a time, and again and again one whose method raised.
"""

# ruff: noqa: SLF001 - the audited private names are the only way in; guard.py pins the file that has them

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

from pysyncobj.node import Node

from ipamd.consensus import guard
from ipamd.consensus.clock import Chance, Clock
from ipamd.consensus.compaction import Compaction
from ipamd.consensus.failures import JournalFailed, StartRefused
from ipamd.consensus.figures import Figures
from ipamd.consensus.journal import Journal
from ipamd.consensus.limits import Limits
from ipamd.consensus.records import Entry
from ipamd.consensus.survey import WAY_OUT
from ipamd.consensus.transport import Transport
from ipamd.core.ports import Applied, LogEntry, StateMachine

logger = logging.getLogger(__name__)

COMMAND = b"\x00"
"""First byte of an entry of ours; pysyncobj's own empty entry is `NO_OP`."""

NO_OP = b"\x01"

_FOLLOWER = 0
_NEVER = 10**9
_BATCH_BYTES = 1 << 20

OnApplied = Callable[[Sequence[Entry], Sequence[Applied]], None]


class Engine:
    """One member's Raft. Used by one thread, or by a simulation."""

    def __init__(
        self,
        *,
        name: str,
        peers: Sequence[str],
        journal: Journal,
        machine: StateMachine,
        transport: Transport,
        clock: Clock,
        chance: Chance,
        limits: Limits,
        figures: Figures,
        on_applied: OnApplied,
        retryable: tuple[type[Exception], ...] = (),
    ) -> None:
        """Raises StartRefused when journal and state machine do not belong together."""
        self.stalled: str | None = None
        """Why the state machine takes nothing at the moment."""

        self._journal = journal
        self._machine = machine
        self._transport = transport
        self._clock = clock
        self._limits = limits
        self._figures = figures
        self._on_applied = on_applied
        self._retryable = retryable
        self._retry_at_s = 0.0
        self._compaction = Compaction(journal, machine, clock, limits, retryable)
        module = guard.load(lambda: journal, clock, chance)
        conf = module.SyncObjConf(**_settings(limits))
        self._raft: Any = module.SyncObj(Node(name), [Node(peer) for peer in peers], conf, transport=transport)  # type: ignore[no-untyped-call]
        self._take_over()
        self._sent = journal.last
        self.hasten()

    def _take_over(self) -> None:
        """Put our parts in place, and begin where the state machine stands: nothing old is applied again."""
        applied, term = self._machine.applied
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
        raft = self._raft
        raft._SyncObj__serializer = self._compaction
        raft._SyncObj__applyLogEntries = self._apply
        raft._SyncObj__needLoadDumpFile = False
        raft._SyncObj__raftLastApplied = applied
        raft._SyncObj__raftCommitIndex = applied

    @property
    def is_leader(self) -> bool:
        """Whether this member believes to lead."""
        return bool(self._raft._isLeader())

    @property
    def leads(self) -> bool:
        """Whether it leads and has applied its own first entry: all that was ever acknowledged is in its state."""
        return self.is_leader and self.applied >= self._raft._SyncObj__noopIDx

    @property
    def leader(self) -> str | None:
        """Name of the leader it knows."""
        node = self._raft._getLeader()
        return None if node is None else str(node.id)

    @property
    def term(self) -> int:
        """The term it is in."""
        return int(self._raft.raftCurrentTerm)

    @property
    def committed(self) -> int:
        """Index up to which it knows entries to be committed."""
        return int(self._raft.raftCommitIndex)

    @property
    def applied(self) -> int:
        """Index up to which its state machine is."""
        return int(self._raft.raftLastApplied)

    def append(self, data: bytes) -> tuple[int, int]:
        """Put an entry at the end of the leader's log; its index and term. It is on the disk after the next tick."""
        index, term = self._journal.last + 1, self.term
        self._journal.add(COMMAND + data, index, term)
        return index, term

    def tick(self) -> bool:
        """Sync, then let Raft act on it; whether there is more to do at once.

        Raises JournalFull (see `step_down`); any other exception means that this member must stop. What is committed
        is applied first: no election starts while a change of members could be unapplied.
        """
        self._journal.sync()
        self._transport.flush()
        if not self.is_leader and self.committed > self.applied:
            self._apply()
            return self._has_more()
        if self._compaction.due():
            self._raft.forceLogCompaction()
        self._raft._onTick(0.0)
        self._send_new()
        return self._has_more()

    def step_down(self) -> None:
        """Stop leading and voting: the journal found no room, and what it could not take is gone from it."""
        raft = self._raft
        raft._SyncObj__raftCurrentTerm = self._journal.getCurrentTerm()
        raft._SyncObj__votedForNodeId = self._journal.getVotedForNodeId()
        raft._SyncObj__raftLeader = None
        raft._SyncObj__setState(_FOLLOWER)
        raft._SyncObj__raftCommitIndex = max(self.applied, min(self.committed, self._journal.last))
        raft._SyncObj__raftElectionDeadline = math.inf
        self._sent = self._journal.last

    def hasten(self) -> None:
        """Stand for election in time again; a member without peers at once: there is nobody to wait for."""
        raft, deadline_s = self._raft, -math.inf
        if raft.otherNodes:
            deadline_s = self._clock.monotonic_s() + raft._SyncObj__generateRaftTimeout()
        raft._SyncObj__raftElectionDeadline = deadline_s

    def hand_over(self) -> None:
        """Ask the most advanced peer to lead, if this member leads and has one."""
        if self.is_leader and self._raft.otherNodes:
            self._raft.transferLeadership()

    def _send_new(self) -> None:
        """Send at once what is new: pysyncobj would wait for the next heartbeat."""
        if self.is_leader and self._journal.last != self._sent:
            self._sent = self._journal.last
            self._raft._SyncObj__sendAppendEntries()

    def _has_more(self) -> bool:
        unsynced = self._journal.durable < self._journal.last
        return self.stalled is None and (unsynced or self.committed > self.applied)

    def _apply(self) -> bool:
        """What pysyncobj calls to apply committed entries; False: nothing needs to be sent because of it."""
        applied = self.applied
        if self.committed > applied and self._clock.monotonic_s() >= self._retry_at_s:
            self._journal.sync()
            last = min(self.committed, applied + self._limits.apply_entries)
            self._apply_entries(self._journal.entries(applied + 1, last, self._limits.apply_bytes))
        return False

    def _apply_entries(self, entries: list[Entry]) -> None:
        _, first, _ = entries[0]
        _, last, term = entries[-1]
        if self._machine.applied[0] + 1 != first:
            raise JournalFailed(f"entry {first} is due, but the state is at {self._machine.applied[0]}")
        started_s = self._clock.monotonic_s()
        try:
            outcomes = self._machine.apply([_log_entry(entry) for entry in entries])
        except self._retryable as error:
            self._stall(str(error))
            return
        if self._machine.applied != (last, term):
            raise JournalFailed(f"the state is at {self._machine.applied} after entry {last} of term {term}")
        self.stalled = None
        self._raft._SyncObj__raftLastApplied = last
        self._figures.applied(self._clock.monotonic_s() - started_s, len(entries))
        self._on_applied(entries, outcomes)

    def _stall(self, sentence: str) -> None:
        if self.stalled is None:
            logger.error("the state takes nothing until there is room: %s", sentence)
        self.stalled = sentence
        self._retry_at_s = self._clock.monotonic_s() + self._limits.retry_s


def _settings(limits: Limits) -> dict[str, object]:
    """How pysyncobj is set. It never compacts by itself: `Compaction.due` tells it when."""
    return {
        "autoTick": False,
        "commandsWaitLeader": False,
        "appendEntriesUseBatch": True,
        "appendEntriesBatchSizeBytes": _BATCH_BYTES,
        "dynamicMembershipChange": False,
        "raftMinTimeout": limits.election_min_s,
        "raftMaxTimeout": limits.election_max_s,
        "appendEntriesPeriod": limits.heartbeat_s,
        "leaderFallbackTimeout": limits.leader_fallback_s,
        "connectionTimeout": limits.connection_s,
        "logCompactionMinEntries": _NEVER,
        "logCompactionMinTime": _NEVER,
    }


def _log_entry(entry: Entry) -> LogEntry:
    data, index, term = entry
    if data[:1] == COMMAND:
        return LogEntry(index, term, data[1:])
    if data == NO_OP:
        return LogEntry(index, term, b"")
    raise JournalFailed(f"entry {index} of term {term} is of a kind that this program does not know: {data[:1]!r}")
