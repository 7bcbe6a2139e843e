"""Owns what a member has promised to others: it must hold over every end of its process and its power.

It acknowledged entries, so they are in its journal until another leader's take their place; it voted, so it votes for
nobody else in that term; it told its term, so it never goes back.
"""

from __future__ import annotations

from ipamd.consensus.journal import Journal
from ipamd.consensus.peers import Message
from tests.sim.laws import Violation


class Promises:
    """Of one data directory."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._index = 0
        self._term = 0
        self._told_term = 0
        self._votes: dict[int, str] = {}

    def sends(self, name: str, message: Message, journal: Journal) -> None:
        """A message goes out."""
        kind = message["type"]
        if kind == "next_node_idx" and message["success"]:
            self._acknowledges(message["next_node_idx"] - 1, journal)
        elif kind == "response_vote" and not message.get("pre"):
            self._votes_for(name, message["term"])
        elif kind == "request_vote" and not message.get("pre"):
            self._votes_for(self._name, message["term"])
        if not message.get("pre"):
            self._told_term = max(self._told_term, message.get("term", 0))

    def truncates(self, index: int) -> None:
        """Entries from `index` on give way to another leader's."""
        self._index = min(self._index, index - 1)
        self._term = 0

    def begins_anew(self, index: int, term: int) -> None:
        """A snapshot took the place of the journal."""
        self._index, self._term = index, term

    def check(self, journal: Journal) -> None:
        """A process has opened the journal."""
        if journal.getCurrentTerm() < self._told_term:
            raise Violation(f"{self._name} told term {self._told_term} and is in term {journal.getCurrentTerm()} now")
        if journal.last < self._index:
            raise Violation(f"{self._name} acknowledged index {self._index}, and its journal ends at {journal.last}")
        if self._term and self._index >= journal.first and journal.term_at(self._index) != self._term:
            raise Violation(f"{self._name} has another entry at index {self._index} than it acknowledged")

    def _acknowledges(self, index: int, journal: Journal) -> None:
        if index >= self._index and journal.first <= index <= journal.last:
            self._index, self._term = index, journal.term_at(index)

    def _votes_for(self, name: str, term: int) -> None:
        first = self._votes.setdefault(term, name)
        if first != name:
            raise Violation(f"{self._name} votes for {name} in term {term}, after {first}")
