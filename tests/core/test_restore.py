"""After a restore nobody gets by chance what may be another's; reports claim it, and operators confirm the rest."""

from __future__ import annotations

import pytest

from ipamd.core.addresses import parse_address
from ipamd.core.commands import Add, ForgetNode, Found, PoolRequest, PutToken, RenameNode
from ipamd.core.inline import InlinePool, Limits, inline_name
from ipamd.core.living import Claims
from ipamd.core.model import Cooling, EventKind, Member, Owner, Role, Settings, Token
from ipamd.core.outcomes import Code, Confirmed, Done, Granted
from ipamd.core.restorecommands import Living as LivingClaim
from ipamd.core.restorecommands import Settled
from ipamd.core.restored import Disputed, Restored
from ipamd.core.withheld import is_withheld
from tests.core.restored import MEMBERS, Living, RestoredWorld, founded, restored
from tests.core.world import ORIGIN, World, granted, range_of, refused


@pytest.fixture
def old() -> World:
    """A cluster with a pool of six, of which t/a has the first; its node has reported."""
    world = World()
    founded(world)
    world.pool("p", "192.0.2.0/29")
    world.add("t/a", "c1", inode=7)
    world.report(c1=True)
    return world


@pytest.fixture
def world(old: World) -> RestoredWorld:
    return restored(old)


def test_it_is_a_new_cluster_without_members(old: World, world: RestoredWorld) -> None:
    new, before = world.state.cluster(), old.state.cluster()
    assert new
    assert before
    assert (new.id, new.epoch, before.epoch) == ("new", 1, 0)
    assert world.state.members() == []
    assert world.kinds()[-1] is EventKind.RESTORED
    again = restored(world).state.cluster()
    assert again
    assert again.epoch == 2


def test_its_first_member_founds_it_and_changes_no_setting(old: World) -> None:
    old.settings(cooldown_s=7)
    world = restored(old)
    member = Member("m9", "id-9", "192.0.2.9:7481", "http://192.0.2.9:7480")
    assert world.run(Found(ORIGIN, "other", Settings(), (member,))) == Done()
    assert (world.state.cluster_id(), list(world.state.members())) == ("new", [member])
    assert world.state.settings().cooldown_s == 7
    world.run(Found(ORIGIN, "third", Settings(), MEMBERS))
    assert list(world.state.members()) == [member], "the first one counts"


def test_tokens_are_good_in_it_as_they_were_and_in_no_other_cluster(old: World) -> None:
    """A token names no cluster: it opens whatever state has the hash of its secret."""
    token = Token("t1", "hosts", Role.ENROL, b"\x01" * 32, 0)
    old.run(PutToken(ORIGIN, token))
    assert restored(old).state.token_of_digest(token.digest) == old.state.token_of_digest(token.digest) is not None
    other = World()
    founded(other)
    assert other.state.token_of_digest(token.digest) is None


def test_what_was_free_is_given_to_nobody(world: RestoredWorld) -> None:
    assert refused(world.add("t/b")) is Code.POOL_EXHAUSTED
    assert refused(world.add("t/b", ips=("192.0.2.3",))) is Code.ADDRESS_TAKEN
    assert refused(world.reserve("t/b", ips=("192.0.2.3",))) is Code.ADDRESS_TAKEN
    assert is_withheld(world.state, "default", parse_address("192.0.2.6"))
    assert not is_withheld(world.state, "blue", parse_address("192.0.2.6"))


def test_what_cooled_is_withheld_too(old: World) -> None:
    old.replace("p", "192.0.2.0/29", cooldown_s=60)
    old.add("t/b", "c2")
    old.delete("c2")
    world = restored(old)
    assert world.state.all(Cooling) == []
    assert refused(world.add("t/b", "c3")) is Code.POOL_EXHAUSTED, "another pod may have had it meanwhile"


def test_what_is_given_back_stays_withheld_but_for_its_pod(old: World) -> None:
    old.replace("p", "192.0.2.0/30", cooldown_s=60)
    world = restored(old)
    world.lists(Living("c1", "t/a", "192.0.2.1"))
    world.delete("c1")
    assert refused(world.add("t/b")) is Code.POOL_EXHAUSTED
    assert granted(world.add("t/a", "c2")) == "192.0.2.1"
    world.delete("c2")
    world.wait(61)
    assert refused(world.add("t/a", "c3")) is Code.POOL_EXHAUSTED


def test_a_known_pod_has_its_address_back_once_every_node_has_reported(world: RestoredWorld) -> None:
    assert refused(world.add("t/a", "c2")) is Code.CONTESTED
    assert refused(world.add("t/a", "c1")) is Code.CONTESTED, "it may have been deleted since, and started anew"


def test_and_its_own_node_may_say_so(world: RestoredWorld) -> None:
    world.lists()
    assert granted(world.add("t/a", "c2")) == "192.0.2.1"


def test_one_node_that_is_silent_is_enough(old: World) -> None:
    old.add("t/z", "c9", node="n2")
    old.report("n2", c9=True)
    world = restored(old)
    world.lists(node="n1")
    assert refused(world.add("t/a", "c2")) is Code.CONTESTED
    world.lists(Living("c1", "t/a", "192.0.2.1"), node="n1")
    assert granted(world.add("t/a", "c2")) == "192.0.2.1", "it was seen alive: nobody else can have it"
    assert refused(world.add("t/z", "c8", node="n2")) is Code.CONTESTED


def test_a_node_that_never_reported_is_not_waited_for(old: World) -> None:
    old.add("t/z", "c9", node="n3")
    world = restored(old)
    world.lists(node="n1")
    assert granted(world.add("t/z", "c8", node="n3")) == "192.0.2.2"


def test_a_report_claims_what_is_free_for_its_pod(world: RestoredWorld) -> None:
    world.lists(Living("c1", "t/a", "192.0.2.1"), Living("c5", "t/q", "192.0.2.4"))
    assert world.holders() == {"192.0.2.1": "t/a eth0", "192.0.2.4": "t/q eth0"}
    mine = world.bound("t/q")
    assert mine.owner == Owner("c5", "n1", "k")
    assert granted(world.add("t/q", "c6")) == "192.0.2.4"


def test_one_that_cannot_be_told_dead_claims_too_and_a_dead_one_does_not(world: RestoredWorld) -> None:
    unsure, dead = Living("c5", "t/q", "192.0.2.4", alive=None), Living("c6", "t/r", "192.0.2.5", alive=False)
    world.lists(unsure, dead)
    assert sorted(world.holders()) == ["192.0.2.1", "192.0.2.4"]


def test_one_that_was_deleted_meanwhile_claims_nothing(world: RestoredWorld) -> None:
    world.delete("c5")
    world.lists(Living("c5", "t/q", "192.0.2.4"))
    assert sorted(world.holders()) == ["192.0.2.1"]


def test_what_is_recorded_for_another_is_in_dispute_and_given_to_neither(world: RestoredWorld) -> None:
    theirs = Living("c5", "t/q", "192.0.2.1", node="n2")
    world.lists(Living("c1", "t/a", "192.0.2.1"))
    world.lists(theirs, node="n2")
    (disputed,) = world.state.disputes()
    assert (disputed.pod_ref, disputed.node, disputed.container_id) == ("t/q", "n2", "c5")
    assert world.holders() == {"192.0.2.1": "t/a eth0"}
    for container in ("c1", "c2"):
        assert refused(world.add("t/a", container)) is Code.CONTESTED
    assert refused(world.add("t/q", "c6", node="n2")) is Code.POOL_EXHAUSTED
    assert refused(world.confirm_pool()) is Code.IN_CONFLICT


def test_a_container_has_no_dispute_with_itself_under_another_name(world: RestoredWorld) -> None:
    """As one that an import named after its container, since it knew no more."""
    world.lists(Living("c1", "t/other", "192.0.2.1"))
    assert world.state.disputes() == []
    assert world.holders() == {"192.0.2.1": "t/a eth0"}


def test_it_ends_when_the_other_is_listed_no_more(world: RestoredWorld) -> None:
    world.lists(Living("c5", "t/q", "192.0.2.1", node="n2"), node="n2")
    world.lists(node="n2", boot=None)
    assert world.state.disputes(), "somebody else who speaks of the node takes nothing away"
    world.lists(node="n2")
    assert world.state.disputes() == []
    world.lists(Living("c1", "t/a", "192.0.2.1"))
    assert granted(world.add("t/a", "c1")) == "192.0.2.1"


def test_or_when_its_node_is_forgotten_and_it_follows_its_nodes_name(world: RestoredWorld) -> None:
    world.lists(Living("c5", "t/q", "192.0.2.1", node="n2"), node="n2")
    world.run(RenameNode(ORIGIN, "n2", "n3"))
    assert [one.node for one in world.state.disputes()] == ["n3"]
    world.run(ForgetNode(ORIGIN, "n3"))
    assert world.state.disputes() == []


def test_and_when_who_is_recorded_lets_go_it_is_the_others(world: RestoredWorld) -> None:
    theirs = Living("c5", "t/q", "192.0.2.1", node="n2")
    world.lists(theirs, node="n2")
    world.release("t/a", force=True)
    assert world.state.disputes() == []
    assert world.holders() == {}
    world.lists(theirs, node="n2")
    assert world.holders() == {"192.0.2.1": "t/q eth0"}
    assert EventKind.CONFLICT_ENDED in world.kinds()


def test_a_pool_that_holds_for_its_pods_does_not_hold_what_another_one_claims(old: World) -> None:
    old.pool("sticky", "198.51.100.0/29", hold_s=-1)
    old.add("t/s", "c7", pools="sticky")
    world = restored(old)
    world.lists(theirs := Living("c8", "t/z", "198.51.100.1", node="n2"), node="n2")
    world.delete("c7")
    assert world.state.disputes() == []
    world.lists(theirs, node="n2")
    assert world.holders("sticky") == {"198.51.100.1": "t/z eth0"}


@pytest.mark.parametrize("order", [1, -1])
def test_a_pod_has_what_its_node_says_not_what_the_backup_said(world: RestoredWorld, order: int) -> None:
    """It was deleted and made anew after the backup, and another one got its old address."""
    listed = (Living("c3", "t/a", "192.0.2.2"), Living("c5", "t/q", "192.0.2.1"))[::order]
    world.lists(*listed)
    assert world.holders() == {"192.0.2.2": "t/a eth0"}
    world.lists(*listed)
    assert world.holders() == {"192.0.2.2": "t/a eth0", "192.0.2.1": "t/q eth0"}
    assert world.state.disputes() == []
    before = world.state.last_event
    world.lists(*listed)
    assert world.events(before) == [], "what was claimed is claimed again"


def test_a_dispute_ends_once_where_both_its_ends_are_in_one_report(world: RestoredWorld) -> None:
    """Who used the address is gone, and who was recorded with it has another one: either would end it."""
    world.lists(Living("c5", "t/q", "192.0.2.1"))
    before = world.state.last_event
    world.lists(Living("c3", "t/a", "192.0.2.2"))
    assert world.state.disputes() == []
    assert world.holders() == {"192.0.2.2": "t/a eth0"}
    assert [one.kind for one in world.events(before)].count(EventKind.CONFLICT_ENDED) == 1


def test_a_pod_that_moved_to_another_container_is_bound_there(world: RestoredWorld) -> None:
    world.lists(Living("c2", "t/a", "192.0.2.1", node="n2"), node="n2")
    assert world.bound("t/a").owner == Owner("c2", "n2", "k")
    assert world.kinds()[-1] is EventKind.REBOUND


def test_a_stale_list_takes_nothing_from_a_container_that_called_since(world: RestoredWorld) -> None:
    world.lists()
    world.add("t/a", "c2")
    world.lists(Living("c1", "t/a", "192.0.2.5"))
    assert world.holders() == {"192.0.2.1": "t/a eth0"}
    assert world.bound("t/a").owner == Owner("c2", "n1", "k")


def test_confirmed_it_is_as_ever(world: RestoredWorld) -> None:
    found = world.confirm_pool()
    assert found == Confirmed("p", True, ("n1",))
    assert world.state.restored() is None
    assert granted(world.add("t/a", "c2")) == "192.0.2.1"
    assert granted(world.add("t/b")) == "192.0.2.2"
    assert world.confirm_pool() == Confirmed("p", changed=False)


def test_by_force_the_record_stands(world: RestoredWorld) -> None:
    world.lists(Living("c5", "t/q", "192.0.2.1", node="n2"), node="n2")
    found = world.confirm_pool(force=True)
    assert isinstance(found, Confirmed)
    assert [str(one.address) for one in found.disputed] == ["192.0.2.1"]
    assert granted(world.add("t/a", "c2")) == "192.0.2.1"


def test_a_pool_that_another_overlaps_waits_for_both(old: World) -> None:
    old.pool("q", "192.0.2.0/28", allow_overlap=True)
    world = restored(old)
    assert world.confirm_pool("q") == Confirmed("q", True, ("n1",), left=("p",))
    assert granted(world.add("t/b", pools="q")) == "192.0.2.7", "what p gives is withheld still"
    world.confirm_pool("p")
    assert granted(world.add("t/c", pools="q")) == "192.0.2.2"
    assert world.state.restored() is None


def test_pools_made_since_and_what_they_gain_are_withheld_too(world: RestoredWorld) -> None:
    """They may have been there when the backup was taken no more: given after it, and lost with it."""
    world.pool("q", "198.51.100.0/29")
    assert refused(world.add("t/b", pools="q")) is Code.POOL_EXHAUSTED
    world.confirm_pool("q")
    assert granted(world.add("t/b", pools="q")) == "198.51.100.1"
    world.replace("q", "198.51.100.0/29", "203.0.113.0/29")
    assert refused(world.add("t/c", pools="q")) is Code.POOL_EXHAUSTED
    world.confirm_pool("q")
    assert isinstance(world.add("t/c", pools="q"), Granted)


def test_an_inline_pool_that_the_backup_lacks_is_made_to_be_confirmed(world: RestoredWorld) -> None:
    subnet = range_of("198.51.100.0/29")
    inline = InlinePool("default", (Limits(subnet.subnet, subnet.first, subnet.last),))
    name = inline_name("default", inline.subnets)
    add = Add(ORIGIN, (PoolRequest(name, inline),), "t/b", "eth0", Owner("c7", "n1", "k"))
    assert refused(world.run(add)) is Code.POOL_EXHAUSTED
    world.lists(Living("c5", "t/q", "198.51.100.1"))
    assert world.confirm_pool(name) == Confirmed(name, True, (), left=("p",))
    assert granted(world.run(add)) == "198.51.100.2"


def test_the_same_address_in_two_spaces_is_claimed_in_neither_unless_the_pool_is_named(old: World) -> None:
    old.pool("blue", "192.0.2.0/29", space="blue")
    world = restored(old)
    world.lists(Living("c5", "t/q", "192.0.2.4"))
    assert world.holders("p") == {"192.0.2.1": "t/a eth0"}
    assert world.holders("blue") == {}


def test_what_the_backup_alone_says_is_not_kept_for_who_lets_it_go(world: RestoredWorld) -> None:
    """A repeated DEL of a container that was gone long ago, and whose address another has."""
    world.delete("c1")
    assert world.occupied() == []
    assert refused(world.add("t/a", "c2")) is Code.POOL_EXHAUSTED


def test_once_all_nodes_have_reported_a_pod_that_restarts_has_its_address_back(old: World) -> None:
    old.replace("p", "192.0.2.0/29", cooldown_s=60)
    world = restored(old)
    world.lists()
    world.delete("c1")
    assert granted(world.add("t/a", "c2")) == "192.0.2.1"


def test_but_not_what_another_one_claims(old: World) -> None:
    old.replace("p", "192.0.2.0/29", cooldown_s=60)
    world = restored(old)
    theirs = Living("c5", "t/q", "192.0.2.1")
    world.lists(theirs)
    world.delete("c1")
    assert refused(world.add("t/a", "c2")) is Code.POOL_EXHAUSTED
    world.lists(theirs)
    assert world.holders() == {"192.0.2.1": "t/q eth0"}


def test_claims_are_parted_by_their_addresses() -> None:
    """One entry's work stays bounded, however many a line lists."""
    counts = [3, 3, 3, 9, 1, 0, 7]
    living = tuple(
        LivingClaim(f"t/{number}", "eth0", f"c{number}", (parse_address("192.0.2.1"),) * count)
        for number, count in enumerate(counts)
    )
    settled = tuple(Settled("default", parse_address(f"192.0.2.{number}"), "n1", "c") for number in range(17))
    parts = list(Claims(living, settled).parts(8))
    assert [[len(one.addresses) for one in part.living] for part in parts] == [[3, 3], [3], [9], [1, 0, 7]]
    assert [len(part.settled) for part in parts] == [8, 8, 1, 0]
    assert tuple(one for part in parts for one in part.living) == living
    assert tuple(one for part in parts for one in part.settled) == settled
    assert [len(part.settled) for part in Claims((), settled).parts(8)] == [8, 8, 1]
    assert list(Claims().parts(8)) == []


def test_a_deleted_pool_takes_its_mark_along(world: RestoredWorld) -> None:
    world.drop_pool("p", force=True)
    assert list(world.state.unconfirmed()) == []
    assert isinstance(world.state.restored(), Restored)
    assert world.state.all(Disputed) == []
