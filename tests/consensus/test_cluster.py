"""Several whole members, message by message: elections, what is acknowledged, who comes back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ipamd.consensus.failures import JournalFailed
from ipamd.core.ports import Answer, Unavailable
from tests.consensus.net import LIMITS, Net, answers


async def test_three_members_elect_one_leader_and_agree() -> None:
    net = Net()
    net.cluster("abc")
    net.run(5)
    (leader,) = net.leaders()
    waiters = await net.propose(leader, b"one", b"two")
    net.run(0.2)
    assert all(isinstance(end, Answer) for end in await answers(waiters))
    assert [net.machine(name).commands for name in "abc"] == [[b"one", b"two"]] * 3
    assert {net[name].status.leader for name in "abc"} == {leader}
    assert all(net[name].level for name in "abc")


async def test_nothing_is_acknowledged_without_a_majority() -> None:
    net = Net()
    net.cluster("abc")
    net.lead("a")
    net.cut("a", "bc")
    waiters = await net.propose("a", b"alone")
    net.run(0.5)
    assert await answers(waiters) == [None]
    net.run(5)
    assert not net["a"].status.is_leader
    assert net["a"].status.leader is None
    assert net["a"].trouble == "there is no leader at the moment"
    (leader,) = net.leaders()
    await net.propose(leader, b"others")
    net.run(1)
    net.heal()
    net.run(3)
    (end,) = await answers(waiters)
    assert isinstance(end, Unavailable)
    assert end.outcome == "none"
    assert net.machine("a").commands == net.machine("b").commands == [b"others"]


async def test_a_follower_says_who_leads() -> None:
    net = Net()
    net.cluster("abc")
    net.lead("b")
    (waiter,) = await net.propose("a", b"x")
    net.tick("a")
    (end,) = await answers([waiter])
    assert isinstance(end, Unavailable)
    assert (end.detail, end.outcome) == ("member b leads, not a", "none")


async def test_an_acknowledged_entry_survives_the_power_loss_of_all() -> None:
    net = Net()
    net.cluster("abc")
    net.lead("a")
    waiters = await net.propose("a", b"kept")
    net.run(0.2)
    assert isinstance((await answers(waiters))[0], Answer)
    for name in "abc":
        net.hosts[name].machine = type(net.machine(name))()
        net.restart(name, power_loss=True)
    net.run(6)
    assert [net.machine(name).commands for name in "abc"] == [[b"kept"]] * 3


async def test_acknowledgements_wait_for_the_disk() -> None:
    net = Net()
    net.cluster("abc")
    net.lead("a")
    await net.propose("a", b"x")
    net.tick("a")
    before = net["b"]._journal.durable
    net.deliver("a", "b")
    assert not net.queue("b", "a")
    assert net["b"]._journal.durable == before
    net.tick("b")
    assert [message["next_node_idx"] for message in net.queue("b", "a")] == [before + 2]
    assert net["b"]._journal.durable == before + 1


async def test_a_member_that_was_paused_disturbs_nobody() -> None:
    net = Net()
    net.cluster("abc")
    net.lead("a")
    term = net["a"].status.term
    net.cut("c", "ab")
    net.run(30)
    assert net["c"].status.term == term
    net.heal()
    net.run(3)
    assert net.leaders() == ["a"]
    assert net["a"].status.term == term
    assert net["c"].status.leader == "a"


async def test_a_member_in_a_later_term_is_followed_there() -> None:
    """Its vote requests are not heard while a leader lives, and it does not hear the leader: somebody has to move."""
    net = Net()
    net.cluster("abc")
    net.lead("a")
    net["c"]._engine._raft.enter(7)
    net.run(5)
    (leader,) = net.leaders()
    assert net[leader].status.term > 7
    waiters = await net.propose(leader, b"x")
    net.run(0.5)
    assert isinstance((await answers(waiters))[0], Answer)


async def test_a_one_way_cut_does_not_leave_two_leaders() -> None:
    net = Net()
    net.cluster("abc")
    net.lead("a")
    net.hold("b", "a", both=False)
    net.hold("c", "a", both=False)
    net.run(6)
    assert "a" not in net.leaders()
    assert len(net.leaders()) == 1


async def test_the_leader_hands_over_without_losing_what_waits() -> None:
    net = Net()
    net.cluster("abc")
    net.lead("a")
    waiters = await net.propose("a", *(b"%d" % number for number in range(5)))
    net["a"].hand_over("c")
    net.tick("a")
    assert net["a"]._journal.last == net["c"]._journal.last
    net.run(0.2)
    assert net.leaders() == ["c"]
    ends = await answers(waiters)
    assert all(isinstance(end, Unavailable) and end.outcome == "none" for end in ends)


async def test_a_leader_that_slept_takes_nothing_in_under_another_one() -> None:
    """It would put an entry of its own into the other one's term: two entries at one place, and nobody would know."""
    net = Net()
    net.cluster("abc")
    net.lead("a")
    net.cut("a", "bc")
    net.lead_beside("b", {"a"})
    (waiter,) = await net.propose("a", b"forged")
    net.heal()
    net.clock.now_s += 0.2
    net.tick("b")
    net.deliver("b", "a", 9)
    net.tick("a")
    (end,) = await answers([waiter])
    assert isinstance(end, Unavailable)
    assert (end.detail, end.outcome) == ("member b leads, not a", "none")
    assert not net["a"]._engine.is_leader
    with pytest.raises(JournalFailed, match="and does not lead"):
        net["a"]._engine.append(b"x")


async def test_entries_that_find_no_room_on_the_wire_are_sent_later() -> None:
    net = Net()
    net.cluster("abc")
    net.lead("a")
    wire = net.hosts["a"].wire
    assert wire is not None
    wire.full = {"b"}
    await net.propose("a", b"x")
    net.run(0.3)
    assert net.machine("b").commands == []
    wire.full = set()
    net.run(0.3)
    assert net.machine("b").commands == [b"x"]


async def test_a_long_conflict_is_settled_in_few_rounds() -> None:
    net = Net()
    net.cluster("abc")
    net.lead("a")
    net.cut("a", "bc")
    for number in range(40):
        await net.propose("a", b"lost-%d" % number)
        net.tick("a")
    net.run(5)
    (leader,) = net.leaders()
    for number in range(40):
        await net.propose(leader, b"kept-%d" % number)
        net.run(0.05)
    net.heal()
    net.run(0.5)
    assert net.machine("a").commands == net.machine(leader).commands
    assert len(net.machine("a").commands) == 40


async def test_a_member_far_behind_waits_for_a_snapshot_and_goes_on_from_there() -> None:
    net = Net(replace(LIMITS, segment_bytes=600, keep_entries=3))
    net.cluster("abc")
    net.lead("a")
    net.stop("c")
    for number in range(40):
        await net.propose("a", b"%d" % number)
        net.machine("a").durable = net.machine("a").applied[0]
        net.run(0.05)
    net.run(6)
    assert net["a"]._journal.first > 20
    net.start("c")
    net.run(1)
    assert net["c"].wanted_snapshot == net["c"].status.leader == "a"
    assert not net["c"].level
    net.machine("a").save("snapshot")
    net["c"].install(Path("snapshot"))
    assert net["c"].figures.snapshots == 1
    waiters = await net.propose("a", b"after")
    net.run(0.3)
    assert isinstance((await answers(waiters))[0], Answer)
    assert net.machine("c").commands == net.machine("a").commands
    assert net["c"].wanted_snapshot is None
    assert net["c"].level
    net["c"].install(Path("snapshot"))
    assert net["c"].figures.snapshots == 1
