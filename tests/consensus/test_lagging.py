"""Members that lag behind changes of members: they follow, and vote for, whoever the cluster has by now."""

from __future__ import annotations

from msgspec.structs import replace

from ipamd.consensus.peers import Join, Why
from ipamd.core.commands import AddMember, Found, RemoveMember
from ipamd.core.model import Settings
from ipamd.core.ports import Answer
from tests.consensus.net import Net, answers, member, members
from tests.consensus.test_membership import ORIGIN, founded, taken_in, voters


async def test_a_member_that_lags_behind_is_not_removed_by_who_lags_more() -> None:
    net = await founded("abc")
    net.cut("c", "ab")
    await taken_in(net, "d")
    net.run(2)
    assert voters(net, "d") == "abcd"
    net["d"].refused("c", net["c"]._membership._refusal(Why.NOT_A_MEMBER, "d is no member"))
    assert net["d"].removed is None


async def test_a_member_that_lags_follows_a_leader_that_it_never_heard_of() -> None:
    """It was taken in meanwhile: only it can tell, and a candidate may need the vote of who lags."""
    net = await founded("abc")
    net.apart.add("c")
    net.close_links("c")
    await taken_in(net, "d")
    net.run(2)
    assert voters(net, "d") == "abcd"
    net.lead_beside("d", {"a"})
    net.run(0.5)
    net.apart.clear()
    net.stop("a")
    net.restart("c")
    net.run(3)
    assert (net["c"].status.leader, net["c"].members) == ("d", net["d"].members)
    assert net["c"].status.applied == net["d"].status.applied


async def test_who_lags_since_the_founding_follows_one_that_was_taken_in_under_a_former_name() -> None:
    """Its own state does not say yet which cluster it is of: a member that it knows by its id does."""
    net = Net()
    net.cluster("abc")
    net.lead("a")
    net.apart.add("c")
    net.close_links("c")
    await net.change("a", Found(ORIGIN, "cluster-1", Settings(), members("abc")))
    net.run(0.3)
    for name in "de":
        await taken_in(net, name)
        net.run(2)
    net.lose("b")
    await net.change("a", RemoveMember(ORIGIN, "b"))
    net.run(0.3)
    (waiter,) = [await net.change("a", AddMember(ORIGIN, member("b", member_id="id-new")))]
    net.run(0.2)
    (end,) = await answers([waiter])
    assert isinstance(end, Answer)
    net.start("b", Join(net["a"].members, end.index), me=member("b", member_id="id-new"))
    net.connect_all()
    net.run(2)
    net.lead_beside("b", {"a"})
    net.run(0.5)
    stranger = net["b"].hello()
    refused = net["c"].greet(stranger)
    assert refused is not None
    assert refused.why is Why.LOST_DATA
    refused = net["c"].greet(replace(stranger, name="z"))
    assert refused is not None
    net.apart.clear()
    net.run(2)
    assert (net["c"].status.leader, net["c"].members) == ("b", net["b"].members)
    assert net["c"].status.applied == net["b"].status.applied


async def test_a_member_that_lost_its_data_and_was_taken_in_anew_leads_who_knows_its_former_id() -> None:
    net = await founded("abc")
    net.apart.add("c")
    net.close_links("c")
    net.lose("b")
    await net.change("a", RemoveMember(ORIGIN, "b"))
    net.apart.clear()
    net.connect_all()
    net.run(0.1)
    refusal = net["c"].greet(replace(net["a"].hello(), name="b", member_id="id-new", applied=1))
    assert refusal is not None
    assert net["c"].greet(replace(net["a"].hello(), name="b", member_id="id-new", applied=10**6)) is None
    assert net["c"].greet(replace(net["a"].hello(), name="c", applied=10**6)) is not None


async def test_who_does_not_know_yet_that_it_has_a_vote_is_told_by_who_asks_for_it() -> None:
    """Its journal is longer, so it gives no vote: it must learn that it may lead itself."""
    net = await founded("abc")
    waiters = await net.propose("a", b"one", b"two")
    net.tick("a")
    net.deliver("a", "c", 9)
    net.cut("c", "ab")
    net.run(0.3)
    assert [isinstance(end, Answer) for end in await answers(waiters)] == [True, True]
    journal, before = net["c"]._journal, net["c"].status.committed
    assert journal.last > before
    net.clock.now_s += net.limits.election_max_s
    question = {"type": "request_vote", "term": net["c"].status.term + 1, "pre": True}
    question |= {"last_log_index": before, "last_log_term": journal.term_at(before), "commit_index": journal.last}
    assert net["c"].received("b", question | {"commit_term": journal.last_term + 1})
    assert net["c"].received("b", question | {"commit_term": journal.last_term, "commit_index": journal.last + 1})
    net.tick("c")
    assert net["c"].status.committed == before
    assert net["c"].received("b", question | {"commit_term": journal.last_term})
    net.tick("c")
    assert net["c"].status.applied == net["a"].status.applied == journal.last
    assert [message["type"] for message in net.queue("c", "b")] == ["request_vote"]
