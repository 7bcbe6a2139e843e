"""Owns what must hold between pysyncobj and any wire, whatever the wire does: the guard.

pysyncobj trusts its peers' messages, acknowledges before anything is on a disk, and believes acknowledgements of
another term. Here every message is checked and put right on its way in and out. A simulated network stands behind the
very same guard.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from pysyncobj.node import Node

from ipamd.consensus.clock import Clock
from ipamd.consensus.figures import Figures
from ipamd.consensus.journal import Journal
from ipamd.consensus.limits import Limits
from ipamd.consensus.messages import BadMessage, checked
from ipamd.consensus.peers import Message, Wire
from ipamd.consensus.prevote import PreVote
from ipamd.consensus.raft import Raft
from ipamd.consensus.transport import Transport

logger = logging.getLogger(__name__)

_OF_A_LEADER = frozenset({"request_vote", "append_entries", "timeout_now"})


class Guard(Transport):
    """pysyncobj's transport over a wire."""

    def __init__(self, wire: Wire, journal: Journal, clock: Clock, limits: Limits, figures: Figures) -> None:
        super().__init__()
        self.lags_behind: str | None = None
        """The leader that has no entries any more that this member lacks: only a snapshot of its helps."""

        self.leader_committed = 0
        """What the leader said last about how far it has committed."""

        self.behind = False
        """A peer said where it must be sent from: it is waiting."""

        self.bound: Callable[[], bool] = lambda: True
        """Whether the cluster knows this member by its id: an empty disk under a known name must not vote."""

        self.guests: set[str] = set()
        """Who may ask for a vote, and lead, though the state here does not know it yet."""

        self._wire = wire
        self._journal = journal
        self._clock = clock
        self._limits = limits
        self._figures = figures
        self._raft: Raft
        self._pre_vote: PreVote
        self._peers: set[str] = set()
        self._open: set[str] = set()
        self._paused: set[str] = set()
        self._held: list[tuple[str, Message]] = []
        self._voted: set[str] = set()
        self._voted_term = 0
        self._verified = (0, 0)
        self._asked_term = 0
        self._heard_s = -math.inf

    def guard(self, raft: Raft) -> PreVote:
        """Stand before a Raft object; the question before its elections."""
        self._raft = raft
        self._pre_vote = PreVote(raft, self._journal, self._wire)
        return self._pre_vote

    # Who is there.

    def set_peers(self, names: set[str]) -> None:
        """Whose messages count."""
        self._peers = names
        for name in names:
            self._raft.set_connected(name, connected=name in self._open)

    def connected(self, name: str) -> None:
        """A connection to somebody is up."""
        self._open.add(name)
        self._paused.discard(name)
        if name in self._peers:
            self._raft.set_connected(name, connected=True)

    def disconnected(self, name: str) -> None:
        """It is gone."""
        self._open.discard(name)
        self._raft.set_connected(name, connected=False)

    @property
    def leader_lives(self) -> bool:
        """Whether a leader, this member or another, did its work within the least election time-out."""
        least_s = self._limits.election_min_s
        if not self._raft.is_leader:
            return self._clock.monotonic_s() - self._heard_s < least_s
        answering = sum(self._raft.silent_s(name) < least_s for name in self._raft.voters)
        return answering + 1 > (len(self._raft.voters) + 1) / 2

    # Out.

    def send(self, node: Node, message: Message) -> bool:
        """What pysyncobj sends: acknowledgements and votes wait for the disk."""
        name = str(node.id)
        match message["type"]:
            case "append_entries":
                return self._send_entries(name, message)
            case "next_node_idx":
                self._held.append((name, self._acknowledgement(message)))
                return True
            case "response_vote":
                self._held.append((name, message))
                return True
            case "request_vote" if message["term"] == self._asked_term:
                return self._wire.send(name, message | {"transfer": True})
            case "request_vote" | "timeout_now":
                return self._wire.send(name, message)
            case other:
                raise RuntimeError(f"pysyncobj was about to send a message of type {other}")

    def flush(self) -> None:
        """The journal is on the disk: say so. Of acknowledgements of one kind in a row the last says all."""
        held, self._held = self._held, []
        for position, (name, message) in enumerate(held):
            if message["term"] == self._raft.term and not _outdone(name, message, held[position + 1 :]):
                self._wire.send(name, message)
        for name in self._paused:
            self._raft.set_connected(name, connected=name in self._open and name in self._peers)
        self._paused.clear()

    def forget(self) -> None:
        """What was to be acknowledged did not get to the disk."""
        self._held.clear()
        self._verified = (0, 0)

    def _send_entries(self, name: str, message: Message) -> bool:
        """Entries for a peer. What finds no room is sent again from the same place, a little later."""
        if "serialized" in message:
            self._pause(name)
            return self._wire.send(name, {key: message[key] for key in ("type", "term", "commit_index")})
        if self._wire.send(name, message):
            return True
        if message["entries"]:
            self._raft.set_next_index(name, message["prevLogIdx"] + 1)
        self._pause(name)
        return False

    def _pause(self, name: str) -> None:
        """End pysyncobj's loop over what a peer lacks: it would turn until a heartbeat's time is over."""
        self._paused.add(name)
        self._raft.set_connected(name, connected=False)

    def _acknowledgement(self, message: Message) -> Message:
        """An acknowledgement with its term. What does not fit is asked for from the last place that surely does.

        pysyncobj would ask from its journal's end, or step back one by one: both at once, in turns, for ever.
        """
        if message["success"]:
            self._verified = (self._raft.term, message["next_node_idx"] - 1)
        else:
            message["next_node_idx"] = self._shared + 1
        return message | {"term": self._raft.term}

    @property
    def _shared(self) -> int:
        """Up to where this journal surely is the leader's: committed, or said to match by a message of this term."""
        term, index = self._verified
        return max(self._raft.committed, index if term == self._raft.term else 0)

    # In.

    def receive(self, name: str, received: object) -> bool:
        """Take in what arrived; whether it was a message. Raises JournalFull, JournalFailed."""
        try:
            message = checked(received)
        except BadMessage as error:
            self._figures.bad_messages += 1
            logger.warning("from %s: %s", name, error)
            return False
        if name in self._peers or (name in self.guests and message["type"] in _OF_A_LEADER):
            self._dispatch(name, message)
        return True

    def _dispatch(self, name: str, message: Message) -> None:
        match message["type"]:
            case "request_vote":
                self._asked_for_vote(name, message)
            case "response_vote":
                self._got_vote(name, message)
            case "append_entries":
                self._got_entries(name, message)
            case "next_node_idx":
                self._got_acknowledgement(name, message)
            case "timeout_now":
                self._asked_to_lead(name, message)

    def _asked_for_vote(self, name: str, message: Message) -> None:
        """A member without a vote of its own answers too: who asks it has applied already that it has one.

        An empty journal knows nothing of what may have been acknowledged before it was lost.
        """
        self._learn_commit(message)
        if self.leader_lives and not message.get("transfer"):
            return
        if self._journal.last_term == 0 < message["last_log_term"] and not self.bound():
            return
        if message["term"] < self._raft.term + bool(message.get("pre")):
            self._tell_term(name)
        elif not message.get("pre"):
            self._raft.deliver(name, message)
        elif (message["last_log_term"], message["last_log_index"]) >= (self._journal.last_term, self._journal.last):
            self._wire.send(name, {"type": "response_vote", "term": message["term"], "pre": True})

    def _learn_commit(self, message: Message) -> None:
        """What is committed elsewhere is so here, where the entry is the same: so are then all before it (Raft 5.3)."""
        index = message.get("commit_index", 0)
        if (
            self._journal.first <= index <= self._journal.last
            and self._journal.term_at(index) == message["commit_term"]
        ):
            self._raft.commit(index)

    def _got_vote(self, name: str, message: Message) -> None:
        """Each voter counts once a term."""
        if name not in self._raft.voters:
            return
        if message.get("pre"):
            self._pre_vote.granted(name, message["term"])
            return
        if self._voted_term != self._raft.term:
            self._voted_term, self._voted = self._raft.term, set()
        if message["term"] == self._raft.term and name not in self._voted:
            self._voted.add(name)
            self._raft.deliver(name, message)

    def _got_entries(self, name: str, message: Message) -> None:
        """The leader's commit index counts only as far as this message shows that the logs are one."""
        if message["term"] < self._raft.term:
            self._tell_term(name)
            return
        self._heard_s = self._clock.monotonic_s()
        self._pre_vote.over()
        self.leader_committed = message["commit_index"]
        placed = "prevLogIdx" in message
        verified = message["prevLogIdx"] + len(message["entries"]) if placed else 0
        self._raft.deliver(name, message | {"commit_index": min(message["commit_index"], verified)})
        self.lags_behind = None if placed else name
        if not placed:
            behind = {"type": "next_node_idx", "next_node_idx": self._shared + 1, "reset": True}
            self._held.append((name, behind | {"success": False, "term": self._raft.term}))

    def _got_acknowledgement(self, name: str, message: Message) -> None:
        """An acknowledgement counts for the leadership that it was made under, and takes nothing back that is sent."""
        if message["term"] > self._raft.term:
            logger.info("%s is in term %s: this member goes there from term %s", name, message["term"], self._raft.term)
            self._raft.enter(message["term"])
        if message["term"] != self._raft.term or not self._raft.is_leader:
            return
        if not 1 <= message["next_node_idx"] <= self._journal.last + 1:
            message["next_node_idx"], message["success"] = self._journal.last + 1, False
        sent = self._raft.next_index(name)
        self._raft.deliver(name, message)
        if message["reset"]:
            self.behind |= message["next_node_idx"] > self._journal.first  # else only a snapshot helps: that takes time
        elif self._raft.next_index(name) < sent:
            self._raft.set_next_index(name, sent)

    def _asked_to_lead(self, name: str, message: Message) -> None:
        self._raft.deliver(name, message)
        if self._raft.takes_over:
            self._asked_term = self._raft.term + 1

    def _tell_term(self, name: str) -> None:
        """Who is in an earlier term would never hear of a later one otherwise: pysyncobj just ignores it."""
        told = {"type": "next_node_idx", "term": self._raft.term, "next_node_idx": 1}
        self._wire.send(name, told | {"reset": False, "success": False})


def _outdone(name: str, message: Message, later: list[tuple[str, Message]]) -> bool:
    """Whether the next thing to be said to a member says the same and more."""
    following = next((other for other_name, other in later if other_name == name), None)
    if following is None or message["type"] == "response_vote":
        return False
    same = all(message[key] == following.get(key) for key in ("type", "term", "reset", "success"))
    return same and (message["reset"] or message["next_node_idx"] <= following["next_node_idx"])
