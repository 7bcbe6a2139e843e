"""Owns the question before an election: would a majority vote for this member? Only then does it begin one.

A member that was cut off or paused comes back without having raised its term, so that the leader keeps its place.
"""

from __future__ import annotations

from ipamd.consensus.journal import Journal
from ipamd.consensus.peers import Wire
from ipamd.consensus.raft import Raft


class PreVote:
    """One round of asking at a time."""

    def __init__(self, raft: Raft, journal: Journal, wire: Wire) -> None:
        self._raft = raft
        self._journal = journal
        self._wire = wire
        self._asked_term = 0
        self._won_term = 0
        self._yes: set[str] = set()

    @property
    def won(self) -> bool:
        """Whether a majority would vote for this member in the next term."""
        return self._won_term == self._raft.term + 1

    def ask(self) -> None:
        """Begin a round: every voter is asked, and told what is committed.

        Who has a longer journal will not vote for this member. It must be able to stand itself, though it may not have
        heard yet that it has a vote: its promotion is committed, but whoever led did not come to tell it so.
        """
        committed = self._raft.committed
        self._asked_term, self._yes = self._raft.term + 1, {self._raft.name}
        question = {
            "type": "request_vote",
            "term": self._asked_term,
            "last_log_index": self._journal.last,
            "last_log_term": self._journal.last_term,
            "pre": True,
            "commit_index": committed,
            "commit_term": self._journal.term_at(committed),
        }
        for name in sorted(self._raft.voters):
            self._wire.send(name, question)

    def granted(self, name: str, term: int) -> None:
        """A voter would vote for this member in a term; with a majority of those the election is due."""
        if term != self._asked_term or term != self._raft.term + 1 or self._raft.is_leader:
            return
        self._yes.add(name)
        if len(self._yes) > (len(self._raft.voters) + 1) / 2:
            self._won_term = term
            self._raft.hasten()

    def over(self) -> None:
        """A leader was heard: what was asked and answered does not matter any more."""
        self._asked_term = self._won_term = 0
