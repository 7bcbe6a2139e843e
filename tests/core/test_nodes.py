"""Nodes get another name with all that they hold, or are forgotten when they hold nothing."""

from __future__ import annotations

import pytest

from ipamd.core.commands import ForgetNode, RenameNode
from ipamd.core.model import Boot, EventKind, Tombstone
from ipamd.core.outcomes import Code, Done, Outcome, Refused
from tests.core.world import ORIGIN, World, freed, granted, refused, stale


@pytest.fixture
def world() -> World:
    made = World()
    made.pool("p", "192.0.2.0/24")
    return made


def rename(world: World, node: str, to: str) -> Outcome:
    return world.run(RenameNode(ORIGIN, node, to))


def forget(world: World, node: str) -> Outcome:
    return world.run(ForgetNode(ORIGIN, node))


def test_a_renamed_node_keeps_bindings_boots_and_marks(world: World) -> None:
    world.add("t/a", "c1", at=10, boot="b1")
    world.add("t/b", "c2", at=10, boot="b2")
    world.delete("c3", at=50, boot="b2")
    assert rename(world, "n1", "n9") == Done()
    assert world.state.node("n1") is None
    assert [(boot.node, boot.boot_id) for boot in world.state.all(Boot)] == [("n9", "b1"), ("n9", "b2")]
    assert freed(world.delete("c1", node="n1", at=60, boot="b2")) == []
    assert stale(world.delete("c2", node="n9", at=5, boot="b2"))
    assert refused(world.add("t/c", "c3", node="n9", at=50, boot="b2")) is Code.LATE
    assert freed(world.delete("c2", node="n9", at=60, boot="b2")) == ["192.0.2.2"]
    (event,) = [one for one in world.events() if one.kind is EventKind.NODE_RENAMED]
    assert (event.node, event.detail) == ("n9", "from n1")


def test_other_nodes_keep_their_names(world: World) -> None:
    world.add("t/a", "c1", node="n2")
    world.delete("c9", node="n2")
    world.add("t/b", "c2", node="n1")
    rename(world, "n1", "n3")
    assert {one.node for one in world.state.all(Tombstone)} == {"n2"}
    owner = world.bound("t/a").owner
    assert owner is not None
    assert owner.node == "n2"


@pytest.mark.parametrize(("node", "to", "cluster"), [("n1", "n9", ""), ("east:n1", "east:n9", "east:")])
def test_containers_without_pod_data_are_named_after_the_new_name(
    world: World, node: str, to: str, cluster: str
) -> None:
    world.add(f"{cluster}_/n1/c1", "c1", node=node)
    world.add(f"{cluster}_/n1x/c2", "c2", node=node)
    rename(world, node, to)
    assert sorted(world.holders().values()) == [f"{cluster}_/n1x/c2 eth0", f"{cluster}_/n9/c1 eth0"]
    assert granted(world.add(f"{cluster}_/n9/c1", "c1", node=to)) == "192.0.2.1"


def test_what_is_held_for_a_container_or_cools_after_it_goes_along_with_its_node(world: World) -> None:
    world.pool("sticky", "198.51.100.0/29", hold_s=-1)
    world.pool("cools", "203.0.113.0/29", cooldown_s=60)
    for pool in ("sticky", "cools"):
        world.add("_/n1/c1", "c1", pools=pool, at=10)
        world.add("_/n10/c1", "c1", node="n10", pools=pool)
        world.delete("c1", at=20)
        world.delete("c1", node="n10")
    assert rename(world, "n1", "n9") == Done()
    assert sorted(world.holders("sticky").values()) == ["_/n10/c1 eth0", "_/n9/c1 eth0"]
    for pool, address in (("sticky", "198.51.100.1"), ("cools", "203.0.113.1")):
        assert granted(world.add("_/n9/c1", "c1", node="n9", pools=pool, at=30)) == address


def test_a_name_that_is_taken_or_unknown_is_refused(world: World) -> None:
    world.add("t/a", "c1", node="n1")
    world.add("t/b", "c2", node="n2")
    assert refused(rename(world, "n1", "n2")) is Code.INVALID_REQUEST
    assert refused(rename(world, "n1", "n1")) is Code.INVALID_REQUEST
    assert refused(rename(world, "n7", "n8")) is Code.NOT_FOUND


def test_a_name_that_two_hosts_have_goes_to_neither(world: World) -> None:
    world.add("t/a", "c1", boot="b1")
    world.add("t/b", "c2", boot="b2")
    world.add("t/c", "c3", boot="b1")
    outcome = rename(world, "n1", "n9")
    assert refused(outcome) is Code.INVALID_REQUEST
    assert isinstance(outcome, Refused)
    assert "ipamctl node forget n1" in outcome.detail
    assert world.node("n1").clash
    assert forget(world, "n1") == Done()
    assert rename(world, "n1", "n9") == Done()


def test_a_name_that_would_give_a_pod_two_reservations_is_refused(world: World) -> None:
    world.add("_/n1/c1", "c1", node="n1")
    world.reserve("_/n9/c1")
    outcome = rename(world, "n1", "n9")
    assert refused(outcome) is Code.INVALID_REQUEST
    assert isinstance(outcome, Refused)
    assert "_/n9/c1" in outcome.detail
    assert world.state.node("n1") is not None


def test_a_node_with_many_bindings_is_renamed_whole() -> None:
    world = World()
    world.pool("p", "10.0.0.0/16")
    names = [f"t/a{number}" for number in range(1, 40)]
    for name in names:
        world.add(name)
    rename(world, "n1", "n9")
    assert {owner.node for name in names if (owner := world.bound(name).owner)} == {"n9"}


def test_a_forgotten_node_leaves_nothing(world: World) -> None:
    world.add("t/a", "c1")
    outcome = forget(world, "n1")
    assert refused(outcome) is Code.BOUND
    assert isinstance(outcome, Refused)
    assert "ipamctl node release n1" in outcome.detail
    world.delete("c1")
    assert forget(world, "n1") == Done()
    assert world.state.all(Boot) == []
    assert world.state.all(Tombstone) == []
    assert refused(forget(world, "n1")) is Code.NOT_FOUND
    assert world.events()[-1].kind is EventKind.NODE_FORGOTTEN


def test_a_node_whose_pods_are_only_held_is_forgotten(world: World) -> None:
    world.add("t/a", "c1", pin=True)
    world.delete("c1")
    assert forget(world, "n1") == Done()
    assert granted(world.add("t/a", "c2", node="n2")) == "192.0.2.1"
