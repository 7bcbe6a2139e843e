"""What an import left open is claimed by whoever names the container: by a DEL, an ADD, or a claim."""

from __future__ import annotations

import pytest

from ipamd.core.commands import Binding, Claim, PoolRequest, Reclaim, ReclaimCause
from ipamd.core.imports import is_named_after, is_open_pod, open_ifname, pod_ref_of
from ipamd.core.model import EventKind, Owner
from tests.core.bringing import SUBNET, add, bring, found, inline, of_container
from tests.core.world import ORIGIN, World, freed, granted


def test_a_known_pod_keeps_its_address_through_a_new_container() -> None:
    world = World()
    bring(world, found("192.0.2.6"))
    assert granted(add(world, "t/a", "c2", node="n2")) == "192.0.2.6"
    mine = world.bound("t/a", pool="192.0.2.0-28")
    assert mine.owner == Owner("c2", "n2", "k")
    assert freed(world.delete("c1", node="n9", net="other")) == []
    assert freed(world.delete("c2", node="n2")) == ["192.0.2.6"]


@pytest.mark.parametrize(("node", "net"), [("n1", "k"), ("n2", "other")])
def test_a_del_from_wherever_the_container_is_frees_it(node: str, net: str) -> None:
    world = World()
    bring(world, found("192.0.2.6"), of_container("192.0.2.7", "c2", None))
    assert freed(world.delete("c1", node=node, net=net)) == ["192.0.2.6"]
    assert freed(world.delete("c2", node=node, net=net, ifname="net9")) == ["192.0.2.7"]
    assert freed(world.delete("c3", node=node, net=net)) == []


def test_a_del_of_another_place_than_the_source_names_frees_nothing() -> None:
    world = World()
    bring(world, found("192.0.2.6", node="n1", net="k"))
    assert freed(world.delete("c1", node="n2", net="k")) == []
    assert freed(world.delete("c1", node="n1", net="other")) == []
    assert freed(world.delete("c1", node="n1", net="k")) == ["192.0.2.6"]


def test_a_named_interface_is_freed_before_an_open_one() -> None:
    world = World()
    bring(world, found("192.0.2.6"), found("192.0.2.7", ifname=None))
    assert freed(world.delete("c1")) == ["192.0.2.6"]
    assert freed(world.delete("c1", ifname="net1")) == ["192.0.2.7"]


def test_open_interfaces_are_adopted_one_after_the_other() -> None:
    world = World()
    bring(world, found("192.0.2.6", ifname=None), found("192.0.2.7", ifname=None))
    assert granted(add(world, "t/a", "c1", ifname="net1")) == "192.0.2.6"
    assert granted(add(world, "t/a", "c1", ifname="net2")) == "192.0.2.7"
    assert granted(add(world, "t/a", "c1", ifname="net1")) == "192.0.2.6"
    assert granted(add(world, "t/a", "c1", ifname="net3")) == "192.0.2.1"


def test_a_container_whose_pod_was_not_known_gets_it_with_its_add() -> None:
    world = World()
    bring(world, of_container("192.0.2.6"))
    assert granted(add(world, "t/a", "c1")) == "192.0.2.6"
    assert world.holders("192.0.2.0-28") == {"192.0.2.6": "t/a eth0"}
    assert [one.kind for one in world.events()][-1] is EventKind.CLAIMED
    assert granted(add(world, "t/a", "c2")) == "192.0.2.6"


def test_without_pod_data_the_container_keeps_its_own_name() -> None:
    world = World()
    bring(world, of_container("192.0.2.6"), of_container("192.0.2.7", "c2", node="n1"))
    assert granted(add(world, "_/n1/c1", "c1")) == "192.0.2.6"
    assert granted(add(world, "_/n1/c2", "c2")) == "192.0.2.7"
    assert world.holders("192.0.2.0-28") == {"192.0.2.6": "_/n1/c1 eth0", "192.0.2.7": "_/n1/c2 eth0"}


def test_another_container_does_not_get_what_nobody_has_claimed() -> None:
    world = World()
    bring(world, of_container("192.0.2.6"))
    assert granted(add(world, "t/a", "c9")) == "192.0.2.1"
    assert granted(add(world, "t/b", "c1", ifname="net1")) == "192.0.2.2"


def test_an_add_brings_along_what_lies_in_the_pool_of_a_smaller_subnet() -> None:
    world = World()
    small = inline("192.0.2.0/28")
    large = inline("192.0.2.0/24")
    bring(world, of_container("192.0.2.6"), of_container("192.0.2.7", "c2", None), pools=(small,))
    assert granted(add(world, "t/a", "c1", large)) == "192.0.2.6"
    assert world.holders("192.0.2.0-24") == {"192.0.2.6": "t/a eth0"}
    assert world.holders("192.0.2.0-28") == {"192.0.2.7": "_//c2 :1"}
    (assigned,) = world.state.assigned(world.bound("t/a", pool="192.0.2.0-24").id)
    assert assigned.prefix == 24
    assert granted(add(world, "t/b", "c2", large, ifname="net1")) == "192.0.2.7"
    assert world.holders("192.0.2.0-28") == {}
    assert freed(world.delete("c1")) == ["192.0.2.6"]


def test_what_a_declared_pool_holds_stays_there() -> None:
    world = World()
    world.pool("mine", "192.0.2.0/28", allow_overlap=True)
    bring(world, of_container("192.0.2.6"), pools=(PoolRequest("mine"),))
    assert granted(add(world, "t/a", "c1", inline("192.0.2.0/24"))) == "192.0.2.1"


def test_a_pod_that_has_a_reservation_takes_in_what_its_container_has() -> None:
    world = World()
    add(world, "t/a", "c1", ifname="net1")
    bring(world, of_container("192.0.2.6"))
    assert granted(add(world, "t/a", "c1")) == "192.0.2.6"
    assert world.holders("192.0.2.0-28") == {"192.0.2.1": "t/a net1", "192.0.2.6": "t/a eth0"}


def test_an_address_for_each_outer_entry_shares_one_open_interface() -> None:
    world = World()
    world.pool("dual", SUBNET, "2001:db8::/64")
    bring(
        world,
        of_container("192.0.2.6", "c1", None),
        of_container("2001:db8::6", "c1", None),
        of_container("192.0.2.7", "c1", None),
        pools=(PoolRequest("dual"),),
    )
    outcome = world.add("t/a", "c1", pools="dual")
    assert [str(one.address) for one in outcome.grants[0].addresses] == ["192.0.2.6", "2001:db8::6"]  # type: ignore[union-attr]


def test_two_addresses_of_one_interface_go_together() -> None:
    world = World()
    bring(world, found("192.0.2.6"), found("192.0.2.7"))
    assert granted(add(world, "t/a", "c1")) == "192.0.2.6"
    assert freed(world.delete("c1")) == ["192.0.2.6", "192.0.2.7"]


def test_what_has_no_container_is_held_for_its_pod() -> None:
    world = World()
    bring(world, found("192.0.2.6", container=None))
    world.wait(10**6)
    assert granted(add(world, "t/a", "c1")) == "192.0.2.6"


def test_a_pod_that_nobody_knows_is_not_held_for() -> None:
    world = World()
    world.pool("p", SUBNET, hold_s=60)
    bring(world, of_container("192.0.2.6"), found("192.0.2.7", container="c2"), pools=(PoolRequest("p"),))
    assert freed(world.delete("c1")) == ["192.0.2.6"]
    assert freed(world.delete("c2")) == []
    assert world.occupied() == ["192.0.2.7"]


def test_a_claim_fills_in_what_is_open_and_nothing_else() -> None:
    world = World()
    bring(world, of_container("192.0.2.6", "c1", None), found("192.0.2.7", "t/b", "eth0", "c2", node="n1", net="k"))
    opened = world.state.attachments_of_container("c1", "eth0")[0]
    closed = world.state.attachments_of_container("c2", "eth0")[0]
    both = (Binding(opened.id, opened.generation), Binding(closed.id, closed.generation))
    world.run(Claim(ORIGIN, both, "net1", "n2", "k2"))
    now = world.state.attachment_by_id(opened.id)
    assert now is not None
    assert (now.ifname, now.owner, now.generation) == ("net1", Owner("c1", "n2", "k2"), opened.generation)
    assert world.state.attachment_by_id(closed.id) == closed
    assert world.holders("192.0.2.0-28")["192.0.2.6"] == "_/n2/c1 net1"
    assert [one.kind for one in world.events()].count(EventKind.CLAIMED) == 1
    world.run(Claim(ORIGIN, both, "net1", "n2", "k2"))
    assert [one.kind for one in world.events()].count(EventKind.CLAIMED) == 1


def test_a_claim_of_a_binding_that_is_not_current_changes_nothing() -> None:
    world = World()
    bring(world, of_container("192.0.2.6"))
    opened = world.state.attachments_of_container("c1", "eth0")[0]
    add(world, "t/a", "c1")
    before = world.state.attachment_by_id(opened.id)
    world.run(Claim(ORIGIN, (Binding(opened.id, opened.generation), Binding(999, 1)), "eth0", "n9", "k9"))
    assert world.state.attachment_by_id(opened.id) == before


def test_the_release_of_what_nobody_claimed_spares_what_was() -> None:
    world = World()
    bring(world, of_container("192.0.2.6"), of_container("192.0.2.7", "c2"))
    seen = [one for name in ("c1", "c2") for one in world.state.attachments_of_container(name, "eth0")]
    world.run(Claim(ORIGIN, (Binding(seen[0].id, 1),), "eth0", "n1", "k"))
    bindings = tuple(Binding(one.id, one.generation) for one in seen)
    outcome = world.run(Reclaim(ORIGIN, ReclaimCause.UNCLAIMED, None, bindings))
    assert freed(outcome) == ["192.0.2.7"]


def test_what_is_open_has_names_that_nothing_else_has() -> None:
    assert open_ifname(()) == ":1"
    assert open_ifname({":1", "eth0", ":2"}) == ":3"
    assert pod_ref_of(None, "c1") == "_//c1"
    assert pod_ref_of("n1", "c1") == "_/n1/c1"
    assert pod_ref_of("east:n1", "c1") == "east:_/n1/c1"
    assert pod_ref_of(None, "c1", "east") == "east:_//c1"
    assert is_named_after("east:_//c1", "c1")
    assert is_named_after("_/n1/c1", "c1")
    assert not is_named_after("_/n1/c1", "c2")
    assert not is_named_after("t/c1", "c1")
    assert is_open_pod("east:_//c1")
    assert not is_open_pod("_/n1/c1")
