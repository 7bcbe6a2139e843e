"""The hazards of pysyncobj that the guard and the journal cure, each once without the cure and once with it.

Without it an acknowledged command is lost, or one is acknowledged that never was committed: these tests would tell.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ipamd.consensus.failures import JournalFailed
from ipamd.consensus.guarded import Guard
from ipamd.consensus.intake import Waiter
from ipamd.consensus.journal import Journal
from ipamd.consensus.limits import Limits
from ipamd.consensus.peers import Message
from ipamd.core.ports import Answer
from tests.consensus.net import Net, answers

LIMITS = Limits(
    segment_bytes=600,
    slice_bytes=1,
    election_min_s=1.0,
    election_max_s=2.0,
    leader_fallback_s=1000,
    heartbeat_s=0.01,
    connection_s=1000,
    gather_s=0,
)
"""One entry a message, and leaders that do not doubt themselves: the test says who is cut off."""

Cure = bool
WithAndWithout = pytest.mark.parametrize("cured", [False, True], ids=["plain", "cured"])


async def acknowledged(waiters: list[Waiter]) -> list[bytes]:
    ends = await answers(waiters)
    return [one.item.command for one, end in zip(waiters, ends, strict=True) if one.item and isinstance(end, Answer)]


def without(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, plain: Callable[..., Any]) -> None:
    monkeypatch.setattr(owner, name, plain)


def deliver_as_it_is(self: Guard, name: str, message: Message) -> None:
    """What pysyncobj does with a message when nobody stands before it."""
    if message["type"] != "next_node_idx" or self._raft.is_leader:
        self._raft.deliver(name, message)


@WithAndWithout
async def test_a_tail_that_matches_is_not_cut_off(monkeypatch: pytest.MonkeyPatch, cured: Cure) -> None:
    """H5: each acknowledgement sets back what is sent next, and a message that comes twice cuts what follows it."""
    if not cured:
        without(monkeypatch, Journal, "deleteEntriesFrom", lambda self, position: self._cut(self.first + position))
        without(monkeypatch, Guard, "_got_acknowledgement", deliver_as_it_is)
    net = Net(replace(LIMITS, slice_bytes=150))
    net.cluster("abc")
    net.lead("a")
    net.cut("ab", "c")
    waiters = []
    for number in range(8):
        waiters += await net.propose("a", b"%d" % number)
        net.tick("a")
    for _ in range(len(net.queue("a", "b"))):
        net.deliver("a", "b")
        net.tick("b")
    net.deliver("b", "a", 2)
    net.clock.now_s += LIMITS.heartbeat_s * 2
    net.tick("a")
    net.deliver("b", "a", len(net.queue("b", "a")))
    net.tick("a")
    told = await acknowledged(waiters)
    assert len(told) == 8
    net.deliver("a", "b", 1)
    net.stop("a")
    net.heal()
    net.lead("b")
    lost = [command for command in told if command not in net.machine("b").commands]
    assert (lost == []) is cured


@WithAndWithout
async def test_an_invitation_to_a_snapshot_commits_nothing(monkeypatch: pytest.MonkeyPatch, cured: Cure) -> None:
    """H6: a leader that was cut off is far behind, and what it has itself was never committed."""
    if not cured:
        without(monkeypatch, Guard, "_got_entries", deliver_as_it_is)
    net = Net(replace(LIMITS, keep_entries=3, keep_bytes=1 << 20))
    net.cluster("abc")
    net.lead("a")
    net.cut("a", "bc")
    waiters = await net.propose("a", b"phantom")
    net.tick("a")
    net.lead_beside("b", {"a"})
    for number in range(60):
        await net.propose("b", b"%d" % number)
        net.tick("b")
        net.pump()
        net.machine("b").durable = net.machine("b").applied[0]
    for _ in range(3):
        net.clock.now_s += 10
        net.tick("b")
    net.cut("a", "bc")
    net.heal()
    assert net["b"]._journal.first > net["a"]._journal.last
    net.clock.now_s += 1
    net.tick("b")
    for _ in range(4):
        net.clock.now_s += LIMITS.heartbeat_s * 2
        net.deliver("b", "a", 5)
        net.tick("a")
        net.deliver("a", "b", 5)
        net.tick("b")
    assert (b"phantom" not in net.machine("a").commands) is cured
    assert (await acknowledged(waiters) == []) is cured
    assert net["a"].wanted_snapshot == ("b" if cured else None)


@WithAndWithout
async def test_what_a_message_does_not_show_to_match_is_not_committed(
    monkeypatch: pytest.MonkeyPatch, cured: Cure
) -> None:
    """The journal keeps what follows entries that match: the commit index must not reach into it."""
    if not cured:
        without(monkeypatch, Guard, "_got_entries", deliver_as_it_is)
    net = Net(LIMITS)
    net.cluster("abc")
    net.lead("a")
    net.hold("a", "c")
    first = await net.propose("a", b"shared")
    net.tick("a")
    net.deliver("a", "b", 1)
    net.tick("b")
    net.cut("a", "bc")
    phantom = await net.propose("a", b"phantom")
    net.tick("a")
    net.lead_beside("b", {"a"})
    for number in range(3):
        await net.propose("b", b"%d" % number)
        net.tick("b")
        net.pump()
    net.cut("a", "bc")
    net.heal()
    with contextlib.nullcontext() if cured else pytest.raises(JournalFailed, match="is applied here"):
        for _ in range(10):
            net.clock.now_s += LIMITS.heartbeat_s * 2
            net.tick("b")
            while net.queue("b", "a"):
                net.deliver("b", "a", 1)
                net.tick("a")
            net.deliver("a", "b", 99)
    assert (b"phantom" not in net.machine("a").commands) is cured
    assert b"phantom" not in net.machine("b").commands
    assert (await acknowledged(phantom) == []) is cured
    assert await acknowledged(first) == [b"shared"]
    assert net.machine("b").commands == [b"shared", b"0", b"1", b"2"]


@WithAndWithout
async def test_an_acknowledgement_of_another_term_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch, cured: Cure
) -> None:
    """H7: five members; acknowledgements that were under way for two elections count for other entries."""
    if not cured:
        original = Guard._got_acknowledgement
        without(
            monkeypatch,
            Guard,
            "_got_acknowledgement",
            lambda self, name, message: original(self, name, message | {"term": self._raft.term}),
        )
    net = Net(LIMITS)
    net.cluster("abcde")
    net.lead("a")
    net.cut("ab", "cde")
    net.hold("b", "a", both=False)
    for number in range(6):
        await net.propose("a", b"old-%d" % number)
        net.tick("a")
        net.deliver("a", "b", 9)
        net.tick("b")
    stale = len(net.queue("b", "a"))
    assert stale >= 6
    net.hold("a", "b")
    net.lead_beside("c", {"a", "b"})
    net.held -= {link for link in net.held if "b" not in link}
    net.clock.now_s += 1
    net.tick("c")
    net.pump()
    assert net["a"].status.leader == "c"
    net.lead_beside("a", {"b"})
    net.cut("a", "de")
    waiters = await net.propose("a", b"new")
    net.tick("a")
    net.pump()
    assert await acknowledged(waiters) == []
    net.deliver("b", "a", stale)
    net.tick("a")
    told = await acknowledged(waiters)
    net.stop("a")
    net.stop("c")
    net.heal()
    net.queue("b", "d").clear()
    net.lead("d")
    lost = [command for command in told if command not in net.machine("d").commands]
    assert (lost == []) is cured
    assert (told == []) is cured
