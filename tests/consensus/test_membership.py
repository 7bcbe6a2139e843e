"""Changes of members, message by message: one at a time, in force once applied, and nobody stuck half-way."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ipamd.consensus import membership
from ipamd.consensus.peers import Gather, Join, Why
from ipamd.core.commands import AddMember, BindMember, Found, Origin, PromoteMember, RemoveMember
from ipamd.core.levels import LEVEL
from ipamd.core.model import Member, Settings
from ipamd.core.ports import Answer, Unavailable
from tests.consensus.net import Net, answers, member, members

ORIGIN = Origin("test", "")


async def founded(names: str, leader: str = "a") -> Net:
    """A cluster that knows its members from its state."""
    net = Net()
    net.cluster(names)
    net.lead(leader)
    await net.change(leader, Found(ORIGIN, "cluster-1", Settings(), members(names)))
    net.run(0.3)
    assert all(net[name].members == members(names) for name in names)
    return net


async def taken_in(net: Net, name: str) -> None:
    (waiter,) = [await net.change("a", AddMember(ORIGIN, member(name)))]
    net.run(0.2)
    (end,) = await answers([waiter])
    assert isinstance(end, Answer)
    net.start(name, Join(net["a"].members, end.index))
    net.connect_all()


def voters(net: Net, name: str) -> str:
    return "".join(one.name for one in net[name].members if one.voter)


async def test_one_change_at_a_time() -> None:
    net = await founded("abc")
    first = await net.change("a", AddMember(ORIGIN, member("d")))
    second = await net.change("a", AddMember(ORIGIN, member("e")))
    net.tick("a")
    third = await net.change("a", RemoveMember(ORIGIN, "b"))
    net.tick("a")
    net.run(0.2)
    ends = await answers([first, second, third])
    assert isinstance(ends[0], Answer)
    for end in ends[1:]:
        assert isinstance(end, Unavailable)
        assert (end.detail, end.outcome) == ("another change of members is under way", "none")
    assert [one.name for one in net["a"].members] == ["a", "b", "c", "d"]


async def test_a_new_member_follows_before_it_counts() -> None:
    net = await founded("abc")
    waiters = await net.propose("a", *(b"%d" % number for number in range(20)))
    net.run(0.2)
    net.cut("d", "abc")
    await taken_in(net, "d")
    net.run(2)
    assert voters(net, "a") == "abc"
    net.heal()
    net.run(2)
    assert voters(net, "a") == voters(net, "d") == "abcd"
    assert net.machine("d").commands == net.machine("a").commands
    assert len(await answers(waiters)) == 20


async def test_who_was_taken_in_and_never_came_gets_no_vote() -> None:
    net = await founded("a")
    await net.change("a", AddMember(ORIGIN, member("b")))
    net.run(5)
    assert voters(net, "a") == "a"
    (waiter,) = await net.propose("a", b"still here")
    net.run(0.2)
    assert isinstance((await answers([waiter]))[0], Answer)


async def test_a_member_without_a_vote_never_stands() -> None:
    net = await founded("a")
    net.cut("b", "a")
    await taken_in(net, "b")
    net.heal()
    net.run(0.1)
    net["b"]._engine.set_members((member("a"), member("b", voter=False)))
    net.stop("a")
    term = net["b"].status.term
    net.run(10)
    assert net["b"].status.term == term


async def test_who_does_not_know_yet_of_its_vote_gives_it() -> None:
    """The promotion was committed without it, and the leader died at once: it is needed, and only others know that."""
    net = await founded("a")
    await taken_in(net, "b")
    net.clock.now_s += 0.1
    for _ in range(5):
        net["a"]._engine._raft.send_entries()
        net.deliver("a", "b", 99)
        net.tick("b")
        net.deliver("b", "a", 99)
    net.hold("a", "b", both=False)
    net.clock.now_s += 0.1
    net.tick("a")
    net.tick("a")
    assert voters(net, "a") == "ab"
    assert voters(net, "b") == "a"
    net.heal()
    net.restart("a")
    net.run(8)
    assert net.leaders() != []
    assert voters(net, "b") == "ab"


async def test_a_member_that_is_removed_learns_it_and_stops() -> None:
    net = await founded("abc")
    (waiter,) = [await net.change("a", RemoveMember(ORIGIN, "c"))]
    net.run(0.3)
    assert isinstance((await answers([waiter]))[0], Answer)
    assert "member c was removed from its cluster" in (net["c"].removed or "")
    assert net["c"].trouble == net["c"].removed
    assert net["a"].removed is net["b"].removed is None


async def test_a_member_that_was_away_learns_it_from_who_refuses_it() -> None:
    net = await founded("abc")
    net.stop("c")
    await net.change("a", RemoveMember(ORIGIN, "c"))
    net.run(0.3)
    net.restart("c")
    net.run(0.2)
    assert "says at index" in (net["c"].removed or "")


async def test_a_guest_may_lead_and_ask_for_votes_and_nothing_else() -> None:
    net = await founded("abc")
    applied, term = net["c"].status.applied, net["c"].status.term
    guest = replace(net["a"].hello(), name="z", member_id="id-z", applied=applied + 1)
    assert net["c"].greet(guest) is None
    net["c"].connected(guest)
    assert net["c"].member("z") == Member("z", "id-z", guest.raft, guest.api, voter=False)
    acknowledgement = {"type": "next_node_idx", "term": term + 5, "next_node_idx": 1, "reset": False, "success": True}
    assert net["c"].received("z", acknowledgement)
    assert net["c"]._engine.term == term
    heartbeat = {"type": "append_entries", "term": term + 1, "commit_index": 1}
    assert net["c"].received("z", heartbeat | {"entries": [], "prevLogIdx": 1, "prevLogTerm": 0})
    assert (net["c"]._engine.term, net["c"]._engine.leader) == (term + 1, "z")
    net["c"].disconnected("z")
    assert net["c"].member("z") is None


async def test_a_leader_hands_over_before_it_is_removed() -> None:
    net = await founded("abc")
    waiter = await net.change("a", RemoveMember(ORIGIN, "a"))
    net.run(0.5)
    (end,) = await answers([waiter])
    assert isinstance(end, Unavailable)
    assert (end.detail, end.outcome) == ("a leads and is to be removed: it hands over first", "none")
    (leader,) = net.leaders()
    assert leader != "a"
    (waiter,) = [await net.change(leader, RemoveMember(ORIGIN, "a"))]
    net.run(0.5)
    assert isinstance((await answers([waiter]))[0], Answer)
    assert net["a"].removed is not None
    assert net.leaders() == [leader]


async def test_of_two_members_either_can_be_removed_and_the_other_goes_on() -> None:
    net = await founded("ab")
    await net.change("a", RemoveMember(ORIGIN, "a"))
    net.run(0.5)
    assert net.leaders() == ["b"]
    await net.change("b", RemoveMember(ORIGIN, "a"))
    net.run(0.5)
    net.stop("a")
    (waiter,) = await net.propose("b", b"alone")
    net.run(0.2)
    assert isinstance((await answers([waiter]))[0], Answer)


async def test_a_change_in_the_journal_proves_the_one_before_it() -> None:
    """A member that missed that a change was committed must not lead by the members before it."""
    net = await founded("abc")
    applied = net["c"].status.applied
    for name in "de":
        net.hosts[name] = type(net.hosts["a"])(name)
        await net.change("a", AddMember(ORIGIN, member(name)))
        net.tick("a")
        net.pump()
    engine = net["c"]._engine
    engine._raft._raft._SyncObj__raftCommitIndex = applied
    engine._raft._raft._SyncObj__raftLastApplied = applied
    assert engine._learn_commits()
    assert engine.committed == applied + 1


async def test_members_survive_a_restart_of_all() -> None:
    net = await founded("abc")
    await taken_in(net, "d")
    net.run(2)
    for name in "abcd":
        net.restart(name, power_loss=True)
    assert [voters(net, name) for name in "abcd"] == ["abcd"] * 4
    net.run(6)
    assert len(net.leaders()) == 1


async def test_an_address_that_changed_is_kept() -> None:
    net = await founded("abc")
    moved = Member("b", "id-b", "b:2", "http://b2", level=LEVEL)
    net.stop("b")
    net.start("b", me=moved)
    net.connect_all()
    net.run(0.5)
    assert [one for one in net["a"].members if one.name == "b"] == [moved]
    net.stop("a")
    net.start("a", me=Member("a", "id-a", "a:2", "http://a"))
    net.connect_all()
    net.run(5)
    assert next(one.raft for one in net["b"].members if one.name == "a") == "a:2"


async def test_the_first_members_wait_for_each_other() -> None:
    net = Net()
    listed = Gather(tuple(Member(name, "", f"{name}:1", f"http://{name}") for name in "abc"))
    net.start("a", listed)
    net.start("b", listed)
    net.connect_all()
    net.run(10)
    assert net.leaders() == []
    assert net["a"].trouble == "waiting for c: a new cluster forms once each of its first members has answered"
    assert net["a"].status.term == 0
    net.start("c", listed)
    net.connect_all()
    net.run(5)
    (leader,) = net.leaders()
    assert net[leader].members == members("abc")
    for name in "abc":
        net.restart(name)
    net.run(5)
    assert net[net.leaders()[0]].members == members("abc")


async def test_a_late_first_member_is_one_of_those_who_formed_without_it() -> None:
    net = Net()
    listed = Gather(tuple(Member(name, "", f"{name}:1", f"http://{name}") for name in "abc"))
    for name in "abc":
        net.start(name, listed)
    for name in "ab":
        net[name].connected(net["c"].hello())
        net[name].disconnected("c")
    net.apart = {"c"}
    net.run(5)
    (leader,) = net.leaders()
    await net.change(leader, Found(ORIGIN, "cluster-1", Settings(), net[leader].members))
    net.run(0.3)
    assert net["c"].members == ()
    net.apart = set()
    net.run(1)
    assert net["c"].members == members("abc")
    assert net["c"].level


async def test_an_emptied_member_is_refused_and_does_not_form_a_cluster() -> None:
    net = await founded("abc")
    net.lose("c")
    listed = Gather(tuple(Member(name, "", f"{name}:1", f"http://{name}") for name in "abc"))
    net.start("c", listed, me=member("c", member_id="id-new"))
    net.connect_all()
    net.run(5)
    assert net["c"].members == ()
    assert net["c"].trouble == "member c lost its data: ipamctl cluster remove c, then --join"
    assert {refusal.why for refusal in net.hosts["c"].refusals} == {Why.LOST_DATA}


async def test_an_empty_journal_votes_for_nobody_who_has_history_unless_it_is_known() -> None:
    net = await founded("abc")
    net.lose("c")
    net.start("c", Join(members("abc"), 0))
    net["c"]._engine.guard.bound = lambda: False
    net.connect_all()
    question = {"type": "request_vote", "term": 99, "last_log_index": 50, "last_log_term": 3}
    assert net["c"].received("a", question)
    net.tick("c")
    assert net["c"]._journal.getVotedForNodeId() is None
    net["c"]._engine.guard.bound = lambda: True
    assert net["c"].received("a", question)
    assert net["c"]._journal.getVotedForNodeId() == "a"


async def test_a_member_of_another_cluster_is_not_let_in() -> None:
    net = await founded("abc")
    other = replace(net["a"].hello(), name="b", member_id="id-b", cluster_id="cluster-2")
    refusal = net["a"].greet(other)
    assert refusal is not None
    assert (refusal.why, refusal.sentence) == (Why.CLUSTER, "b belongs to another cluster than a")
    assert (net["a"].greet(replace(other, format=2, cluster_id=None)) or refusal).why is Why.FORMAT
    assert (net["a"].greet(replace(other, name="a", cluster_id=None)) or refusal).why is Why.NOT_A_MEMBER
    assert net["a"].greet(replace(other, cluster_id="cluster-1")) is None


async def test_changes_that_say_nothing_new_leave_the_members_alone() -> None:
    net = await founded("abc")
    before = net["a"].members
    for command in (PromoteMember(ORIGIN, "b", "id-b"), BindMember(ORIGIN, "b", "id-b", "b:1", "http://b")):
        await net.change("a", command)
        net.run(0.2)
    assert net["a"].members == before


async def test_who_cannot_read_the_log_is_not_let_in() -> None:
    net = await founded("abc")
    hello = net["b"].hello()
    assert net["a"].greet(hello) is None
    net.machine("a").level = LEVEL + 1
    refusal = net["a"].greet(hello)
    assert refusal is not None
    assert refusal.why is Why.OLD
    assert refusal.sentence.startswith("b runs an older version of ipamd than its cluster has come to need: install")
    assert net["a"].greet(replace(hello, level=LEVEL + 1)) is None


async def test_the_level_of_each_member_is_kept_as_it_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    net = await founded("abc")
    monkeypatch.setattr(membership, "LEVEL", LEVEL + 1)
    net.restart("b")
    net.run(2)
    assert {one.name: one.level for one in net["c"].members} == {"a": LEVEL + 1, "b": LEVEL + 1, "c": LEVEL}
    monkeypatch.undo()
    net.restart("b")
    net.run(2)
    assert {one.name: one.level for one in net["c"].members}["b"] == LEVEL
