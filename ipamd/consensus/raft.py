"""Owns pysyncobj's Raft object: how it is set up, and every private name of it that is used. No other module does.

What is said here in plain words is what the audited file does (guard.py pins it): who votes, where each peer is sent
from next, when the next election is due.
"""

# ruff: noqa: SLF001 - the audited private names are the only way in

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any
from zlib import crc32

from pysyncobj.node import Node

from ipamd.consensus import guard
from ipamd.consensus.clock import Chance, Clock
from ipamd.consensus.journal import Journal
from ipamd.consensus.limits import Limits
from ipamd.consensus.peers import Message
from ipamd.consensus.transport import Transport

_FOLLOWER = 0
_LEADER = 2
_NEVER = 10**9
_BATCH_BYTES = 1 << 20


class Peer(Node):
    """A member as pysyncobj knows it. Its place in a set is the same in every process: a run can be repeated."""

    def __init__(self, name: str) -> None:
        super().__init__(name)  # type: ignore[no-untyped-call]

    def __hash__(self) -> int:
        return crc32(self.id.encode())


class Raft:
    """pysyncobj, in words. A member that has no vote itself still counts the votes of others: it leads nobody."""

    def __init__(
        self,
        *,
        name: str,
        journal: Journal,
        transport: Transport,
        clock: Clock,
        chance: Chance,
        limits: Limits,
        serializer: object,
        apply: Callable[[], bool],
    ) -> None:
        """Raises StartRefused."""
        self.name = name
        self._clock = clock
        self._journal = journal
        module = guard.load(lambda: journal, clock, chance)
        conf = module.SyncObjConf(**_settings(limits))
        self._raft: Any = module.SyncObj(Peer(name), [], conf, transport=transport)
        self._raft._SyncObj__serializer = serializer
        self._raft._SyncObj__applyLogEntries = apply
        self._raft._SyncObj__needLoadDumpFile = False

    @property
    def is_leader(self) -> bool:
        """Whether this member believes to lead."""
        return bool(self._raft._SyncObj__raftState == _LEADER)

    @property
    def leader(self) -> str | None:
        """Name of the leader it heard last."""
        node = self._raft._SyncObj__raftLeader
        return None if node is None else str(node.id)

    @property
    def term(self) -> int:
        """The term it is in."""
        return int(self._raft._SyncObj__raftCurrentTerm)

    @property
    def committed(self) -> int:
        """Index up to which it knows entries to be committed."""
        return int(self._raft._SyncObj__raftCommitIndex)

    @property
    def applied(self) -> int:
        """Index up to which its state machine is."""
        return int(self._raft._SyncObj__raftLastApplied)

    @property
    def first_own(self) -> int:
        """Index of the entry that it began its leadership with."""
        return int(self._raft._SyncObj__noopIDx or 0)

    @property
    def takes_over(self) -> bool:
        """Whether its leader asked it to stand for election now."""
        return bool(self._raft._SyncObj__transferInProgress)

    def commit(self, index: int) -> None:
        """It is known by other means that entries up to `index` are committed."""
        self._raft._SyncObj__raftCommitIndex = max(self.committed, index)

    def has_applied(self, index: int) -> None:
        """The state machine has come to `index`."""
        self._raft._SyncObj__raftLastApplied = index
        self.commit(index)

    def tick(self) -> None:
        """Let time pass: elections, commits, heartbeats."""
        self._raft._onTick(0.0)

    def send_entries(self) -> None:
        """Send to every connected peer what it lacks, or a heartbeat."""
        self._raft._SyncObj__sendAppendEntries()

    def compact(self) -> None:
        """Have the serializer asked at the next tick."""
        self._raft.forceLogCompaction()

    def deliver(self, name: str, message: Message) -> None:
        """A message of a peer's."""
        self._raft._SyncObj__onMessageReceived(Peer(name), message)

    # Peers.

    @property
    def voters(self) -> set[str]:
        """Peers that have a vote."""
        return {node.id for node in self._raft._SyncObj__otherNodes}

    @property
    def learners(self) -> set[str]:
        """Peers that are only fed."""
        return {node.id for node in self._raft._SyncObj__readonlyNodes}

    @property
    def connected(self) -> set[str]:
        """Peers that can be sent to."""
        return {node.id for node in self._raft._SyncObj__connectedNodes}

    def set_peers(self, voters: Iterable[str], learners: Iterable[str]) -> None:
        """Who counts from now on, and who is only fed. What is known of those who stay is kept."""
        raft = self._raft
        raft._SyncObj__otherNodes = {Peer(name) for name in voters}
        raft._SyncObj__readonlyNodes = {Peer(name) for name in learners}
        peers = raft._SyncObj__otherNodes | raft._SyncObj__readonlyNodes
        raft._SyncObj__connectedNodes &= peers
        for known in (raft._SyncObj__raftNextIndex, raft._SyncObj__raftMatchIndex, raft._SyncObj__lastResponseTime):
            for gone in set(known) - peers:
                del known[gone]
        for node in peers:
            raft._SyncObj__raftNextIndex.setdefault(node, self._journal.last + 1)
            raft._SyncObj__raftMatchIndex.setdefault(node, 0)
            raft._SyncObj__lastResponseTime.setdefault(node, self._clock.monotonic_s())

    def set_connected(self, name: str, *, connected: bool) -> None:
        """Whether a peer can be sent to; no others are."""
        nodes = self._raft._SyncObj__connectedNodes
        (nodes.add if connected else nodes.discard)(Peer(name))

    def next_index(self, name: str) -> int:
        """The index that a peer is sent next; leader only."""
        return int(self._raft._SyncObj__raftNextIndex[Peer(name)])

    def set_next_index(self, name: str, index: int) -> None:
        """Send from `index` on."""
        self._raft._SyncObj__raftNextIndex[Peer(name)] = index

    def match_index(self, name: str) -> int:
        """Up to where a peer has said that its journal is the leader's; leader only."""
        return int(self._raft._SyncObj__raftMatchIndex.get(Peer(name), 0))

    def silent_s(self, name: str) -> float:
        """How long ago a peer has answered; leader only."""
        answered_s: float = self._raft._SyncObj__lastResponseTime.get(Peer(name), -math.inf)
        return self._clock.monotonic_s() - answered_s

    # Elections.

    @property
    def election_due(self) -> bool:
        """Whether no leader was heard for so long that the next tick would begin an election."""
        return not self.is_leader and bool(self._raft._SyncObj__raftElectionDeadline < self._clock.monotonic_s())

    def hasten(self) -> None:
        """Stand for election with the next tick."""
        self._raft._SyncObj__raftElectionDeadline = -math.inf

    def wait(self) -> None:
        """Stand for election after the usual time without a leader."""
        timeout_s = self._raft._SyncObj__generateRaftTimeout()
        self._raft._SyncObj__raftElectionDeadline = self._clock.monotonic_s() + timeout_s

    def refrain(self) -> None:
        """Stand for no election until told to, or a leader is heard."""
        self._raft._SyncObj__raftElectionDeadline = math.inf
        self._raft._SyncObj__transferInProgress = False

    def follow(self) -> None:
        """Stop leading, and trust the disk: term, vote and log are what is there."""
        raft, journal = self._raft, self._journal
        raft._SyncObj__raftCurrentTerm = journal.getCurrentTerm()
        raft._SyncObj__votedForNodeId = journal.getVotedForNodeId()
        raft._SyncObj__raftLeader = None
        raft._SyncObj__setState(_FOLLOWER)
        raft._SyncObj__raftCommitIndex = max(self.applied, min(self.committed, journal.last))

    def enter(self, term: int) -> None:
        """Somebody is in a later term: go there, as a follower. Raises JournalFull, JournalFailed."""
        self._raft._SyncObj__setCurrentTerm(term, None)
        self.follow()
        self.wait()

    def hand_over(self, name: str | None) -> bool:
        """Ask a peer, or the most advanced one, to lead; whether it was asked: it must have the whole journal."""
        done: list[bool] = []
        node = None if name is None else Peer(name)
        self._raft.transferLeadership(node, lambda _, error: done.append(error == 0))
        return done == [True]


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
        "connectionTimeout": max(limits.connection_s, limits.election_max_s),
        "logCompactionMinEntries": _NEVER,
        "logCompactionMinTime": _NEVER,
    }
