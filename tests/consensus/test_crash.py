"""The journal stopped at each step of each thing it does, by a kill and by a power loss: what was promised is there.

Promised are entries whose sync returned, and a term and vote whose store returned. What was under way may be there or
not, as a whole prefix; anything else is wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from ipamd.consensus.failures import StartRefused
from ipamd.consensus.journal import Journal
from ipamd.consensus.records import Entry
from tests.consensus.journals import content, entry, open_journal
from tests.consensus.simdisk import Crash, SimDisk

SEEDS = range(4)


@dataclass
class Promise:
    """What a journal has promised so far, and what it was asked for."""

    synced: list[Entry] = field(default_factory=list)
    asked: list[Entry] = field(default_factory=list)
    histories: list[list[Entry]] = field(default_factory=lambda: [[]])
    """Every log that it was ever asked to be: an old tail may stay until a conflict has cut it durably."""

    ballots: list[tuple[int, str | None]] = field(default_factory=lambda: [(0, None)])
    storing: tuple[int, str | None] | None = None
    first: int = 1

    def vote(self, journal: Journal, term: int, vote: str) -> None:
        self.storing = (term, vote)
        journal.setCurrentTerm(term, vote)
        self.ballots.append((term, vote))
        self.storing = None

    def add(self, journal: Journal, *entries: Entry) -> None:
        for one in entries:
            self.asked = [*self.asked[: one[1] - 1], one]
            self.histories.append(self.asked)
            self.synced = self.synced[: one[1] - 1]
            journal.add(*one)
        journal.sync()
        self.synced = list(self.asked)

    def check(self, disk: SimDisk) -> None:
        journal = open_journal(disk)
        found = content(journal)
        begin = journal.first - 1
        assert begin < self.first
        assert any(found == log[begin : begin + len(found)] for log in self.histories)
        assert found[: len(self.synced) - begin] == self.synced[begin:]
        ballot = (journal.getCurrentTerm(), journal.getVotedForNodeId())
        assert ballot in {self.ballots[-1], self.storing}
        assert content(open_journal(disk.unplugged(random.Random(0)))) == found, (
            "what was opened is counted: it must last"
        )
        self.goes_on(disk, journal, found)

    def goes_on(self, disk: SimDisk, journal: Journal, found: list[Entry]) -> None:
        """A journal that was opened takes entries, and has them after another power loss."""
        journal.setCurrentTerm(journal.getCurrentTerm() + 1, "z")
        more = entry(journal.last + 1, journal.getCurrentTerm())
        journal.add(*more)
        journal.sync()
        assert content(open_journal(disk.unplugged(random.Random(1)))) == [*found, more]


def appending(disk: SimDisk, promise: Promise) -> None:
    journal = open_journal(disk)
    promise.vote(journal, 1, "a")
    for size in (1, 3, 1, 5, 2, 4):
        promise.add(journal, *[entry(journal.last + 1 + number) for number in range(size)])


def voting(disk: SimDisk, promise: Promise) -> None:
    journal = open_journal(disk)
    for term in range(1, 6):
        promise.vote(journal, term, "abcde"[term - 1])


def trimming(disk: SimDisk, promise: Promise) -> None:
    appending(disk, promise)
    journal = open_journal(disk)
    promise.first = 14
    journal.trim(14)
    promise.add(journal, entry(journal.last + 1))


def cutting(disk: SimDisk, promise: Promise) -> None:
    """A conflict deep below the end: entries that nobody was promised any more go, the new ones stay."""
    appending(disk, promise)
    journal = open_journal(disk)
    promise.vote(journal, 2, "b")
    promise.add(journal, entry(6, 2), entry(7, 2))
    promise.add(journal, entry(8, 2))


def reopening(disk: SimDisk, promise: Promise) -> None:
    appending(disk, promise)
    for _ in range(3):
        promise.add(open_journal(disk), entry(len(promise.asked) + 1))


SCENARIOS = [appending, voting, trimming, cutting, reopening]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_step_survives_a_kill_and_a_power_loss(scenario: Callable[[SimDisk, Promise], None]) -> None:
    whole = SimDisk()
    scenario(whole, Promise())
    assert whole.steps > 10
    for stop_at in range(1, whole.steps + 1):
        disk, promise = SimDisk(stop_at=stop_at), Promise()
        with pytest.raises(Crash):
            scenario(disk, promise)
        for seed in SEEDS:
            promise.check(disk.unplugged(random.Random(seed * 1000 + stop_at)))
        promise.check(disk.killed())


def test_a_disk_that_forgets_is_found_out() -> None:
    """The check itself can fail: without fdatasync a power loss takes what was promised."""
    disk, promise = SimDisk(), Promise()
    appending(disk, promise)
    for inode in disk.seen.values():
        inode.platter = bytearray()
    with pytest.raises((AssertionError, StartRefused)):
        promise.check(disk.unplugged(random.Random(0)))
