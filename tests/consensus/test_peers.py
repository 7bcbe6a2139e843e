"""Real members on loopback: they form a cluster, change it, lose each other and find each other again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from ipamd.consensus.peers import Gather, Join
from ipamd.core.commands import AddMember, Found, Origin, RemoveMember, encode_command
from ipamd.core.model import Member, Settings
from ipamd.core.outcomes import Code, Done, Refused
from ipamd.core.ports import Answer, Unavailable
from tests.consensus.members import item, place
from tests.consensus.tcp import Host, Lab

ORIGIN = Origin("test", "")


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    made = Lab(tmp_path)
    yield made
    await made.stop()
    assert [host.fatal for host in made.hosts.values()] == [[]] * len(made.hosts)


async def formed(lab: Lab, *names: str) -> Host:
    """A founded cluster of these; its leader."""
    listed = Gather(tuple(Member(name, "", lab.host(name).me.raft, "http://x") for name in names))
    for name in names:
        await lab.host(name).start(listed)
    leader = await lab.leader()
    command = Found(ORIGIN, "cluster-1", Settings(), leader.node.members)
    await leader.node.propose(item(encode_command(command)), 30)
    await lab.until(lambda: all(lab.host(name).machine.cluster_id for name in names), "all know the cluster")
    return leader


async def proposed(lab: Lab, command: AddMember | RemoveMember) -> Answer:
    """As the router does it: to whoever leads, until it is answered."""
    one = item(encode_command(command))
    for _ in range(50):
        try:
            return await (await lab.leader()).node.propose(one, 30)
        except Unavailable:
            await asyncio.sleep(0.05)
    raise AssertionError("never answered")


async def joined(lab: Lab, name: str) -> Host:
    host = lab.host(name)
    answer = await proposed(lab, AddMember(ORIGIN, host.me))
    assert answer.outcome == Done()
    leader = await lab.leader()
    await host.start(Join(leader.machine.members, answer.index))
    return host


def knows(host: Host, raft: str) -> bool:
    return raft in {member.raft for member in host.machine.members}


def has(host: Host, *commands: bytes) -> bool:
    return host.machine.commands == list(commands)


async def test_three_form_one_cluster_and_serve(lab: Lab) -> None:
    leader = await formed(lab, "a", "b", "c")
    assert [(one.name, one.member_id) for one in leader.node.members] == [("a", "id-a"), ("b", "id-b"), ("c", "id-c")]
    assert place(await leader.node.propose(item(b"x"), 30)) == 1
    await lab.until(lambda: all(host.machine.commands == [b"x"] for host in lab.running))
    assert all(host.node.ready for host in lab.running)
    follower = next(host for host in lab.running if host is not leader)
    with pytest.raises(Unavailable, match=f"member {leader.name} leads, not {follower.name}"):
        await follower.node.propose(item(b"y"), 30)


async def test_a_cluster_forms_only_when_all_have_answered(lab: Lab) -> None:
    listed = Gather(tuple(Member(name, "", lab.host(name).me.raft, "http://x") for name in "abc"))
    for name in "ab":
        await lab.host(name).start(listed)
    await lab.until(lambda: (lab.host("a").node.trouble or "").startswith("waiting for c:"))
    assert not lab.host("a").node.ready
    assert lab.host("a").node.members == ()
    await lab.host("c").start(listed)
    await lab.leader()


async def test_a_lone_member_grows_to_three_and_shrinks_again(lab: Lab) -> None:
    first = await formed(lab, "a")
    await first.node.propose(item(b"early"), 30)
    for name in "bc":
        host = await joined(lab, name)
        await lab.until(lambda: all(one.voter for one in first.machine.members), "it got a vote")
        await lab.until(partial(has, host, b"early"))
    for name in "ab":
        assert (await proposed(lab, RemoveMember(ORIGIN, name))).outcome == Done()
        await lab.until(partial(bool, lab.host(name).removed), f"{name} knows it")
        assert "was removed from its cluster" in lab.host(name).removed[0]
        await lab.host(name).stop()
    last = await lab.leader()
    assert place(await last.node.propose(item(b"late"), 30)) == 2
    refused = (await proposed(lab, RemoveMember(ORIGIN, "c"))).outcome
    assert isinstance(refused, Refused)
    assert refused.code is Code.LAST_MEMBER


async def test_a_member_that_was_removed_while_it_was_down_says_so(lab: Lab) -> None:
    leader = await formed(lab, "a", "b", "c")
    gone = next(host for host in lab.running if host is not leader)
    await gone.stop()
    await proposed(lab, RemoveMember(ORIGIN, gone.name))
    await gone.restart()
    await lab.until(lambda: gone.removed != [])
    assert f"member {gone.name} was removed from its cluster, as " in gone.removed[0]


async def test_a_member_that_lost_its_data_is_not_let_in_until_it_joins_anew(lab: Lab) -> None:
    leader = await formed(lab, "a", "b", "c")
    await leader.node.propose(item(b"x"), 30)
    lost = next(host for host in lab.running if host is not leader)
    listed = Gather(tuple(Member(name, "", lab.host(name).me.raft, "http://x") for name in "abc"))
    await lost.lose_everything(listed)
    sentence = f"member {lost.name} lost its data: ipamctl cluster remove {lost.name}, then --join"
    await lab.until(lambda: lost.node.trouble == sentence)
    assert lost.machine.commands == []
    await lost.stop()
    refused = (await proposed(lab, AddMember(ORIGIN, lost.me))).outcome
    assert isinstance(refused, Refused)
    assert refused.code is Code.MEMBER_EXISTS
    await proposed(lab, RemoveMember(ORIGIN, lost.name))
    answer = await proposed(lab, AddMember(ORIGIN, lost.me))
    await lost.restart(Join((await lab.leader()).machine.members, answer.index))
    await lab.until(lambda: lost.machine.commands == [b"x"])
    await lab.until(lambda: all(member.voter for member in lost.machine.members))


async def test_the_leader_hands_over_when_it_stops(lab: Lab) -> None:
    leader = await formed(lab, "a", "b", "c")
    term = leader.node.status().term
    await leader.stop()
    successor = await lab.leader()
    assert successor.node.status().term == term + 1
    assert place(await successor.node.propose(item(b"x"), 30)) == 1


async def test_leadership_is_transferred_to_whom_it_is_asked_for(lab: Lab) -> None:
    leader = await formed(lab, "a", "b", "c")
    for name in sorted({"a", "b", "c"} - {leader.name}):
        await (await lab.leader()).node.transfer(name, 30)
        assert (await lab.leader()).name == name
    with pytest.raises(Unavailable, match="leads, not"):
        await leader.node.transfer("a", 1)


@pytest.mark.parametrize("moved", ["ac", "ca", "b"])
async def test_a_member_that_moved_is_found_and_its_address_kept(lab: Lab, moved: str) -> None:
    """Each begins with the addresses of the first day: who moved before is found through the one that did not."""
    await formed(lab, "a", "b", "c")
    stayed = next(name for name in "abc" if name not in moved)
    for name in moved:
        host = lab.host(name)
        await host.restart(other_port=True)
        await lab.until(partial(knows, lab.host(stayed), host.me.raft), f"{name} moved")
    assert len(lab.host(stayed).machine.members) == 3
    await lab.leader()


async def test_a_member_far_behind_gets_a_snapshot(lab: Lab) -> None:
    lab.limits = replace(lab.limits, segment_bytes=2000, keep_entries=5)
    leader = await formed(lab, "a", "b", "c")
    behind = next(host for host in lab.running if host is not leader)
    await behind.stop()
    for number in range(60):
        await leader.node.propose(item(b"%d" % number), 30)
        for host in lab.running:
            host.machine.durable = host.machine.applied[0]
    await lab.until(lambda: leader.node._replica._journal.first > 20, "the journal was trimmed")
    await behind.restart()
    await lab.until(lambda: len(behind.machine.commands) == 60)
    await lab.until(lambda: behind.node.figures.snapshots >= 1)
    assert lab.fetched >= 1
    await leader.node.propose(item(b"after"), 30)
    await lab.until(lambda: behind.machine.commands[-1] == b"after")
