"""Letting go: what DEL, an API release and a reclaim free, and what they leave alone."""

from __future__ import annotations

from typing import Any

import pytest

from ipamd.core.commands import Binding, CallStart, Del, ReclaimCause
from ipamd.core.model import FOREVER, AttachmentState, EventKind, Owner
from ipamd.core.outcomes import Code, Outcome, Refused, Released
from tests.core.world import ORIGIN, World, freed, granted, refused, stale


@pytest.fixture
def world() -> World:
    made = World()
    made.pool("p", "192.0.2.0/24")
    return made


def binding(world: World, pod: str, ifname: str = "eth0") -> Binding:
    found = world.bound(pod, ifname)
    return Binding(found.id, found.generation)


def held(outcome: Outcome) -> list[str]:
    assert isinstance(outcome, Released)
    return [f"{item.pod_ref} {item.ifname}" for item in outcome.items if item.held]


def test_del_frees_what_its_container_holds(world: World) -> None:
    world.add("t/a", "c1")
    outcome = world.delete("c1")
    assert freed(outcome) == ["192.0.2.1"]
    assert not stale(outcome)
    assert world.reservation("t/a") is None
    assert world.occupied() == []
    assert world.events()[-1].kind is EventKind.RELEASED


@pytest.mark.parametrize(
    "other", [{"container": "c2"}, {"ifname": "net1"}, {"node": "n2"}, {"net": "other"}], ids=lambda it: next(iter(it))
)
def test_del_of_anything_else_frees_nothing(world: World, other: dict[str, Any]) -> None:
    world.add("t/a", "c1")
    outcome = world.delete(**({"container": "c1"} | other))
    assert outcome == Released(())
    assert world.holders() == {"192.0.2.1": "t/a eth0"}


def test_del_succeeds_for_what_is_not_there_and_again(world: World) -> None:
    assert world.delete("never") == Released(())
    world.add("t/a", "c1")
    world.delete("c1")
    assert world.delete("c1") == Released(())


def test_del_of_one_interface_leaves_the_other(world: World) -> None:
    world.add("t/a", "c1", ifname="net1")
    world.add("t/a", "c1", ifname="net2")
    world.delete("c1", ifname="net1")
    assert world.holders() == {"192.0.2.2": "t/a net2"}
    world.delete("c1", ifname="net2")
    assert world.reservation("t/a") is None


def test_one_del_frees_all_pools_of_the_call(world: World) -> None:
    world.pool("q", "198.51.100.0/24", "2001:db8::/64")
    world.add("t/a", "c1", pools="q p")
    assert sorted(freed(world.delete("c1"))) == ["192.0.2.1", "198.51.100.1", "2001:db8::1"]
    assert world.occupied() == []


def test_del_matches_what_an_import_did_not_know(world: World) -> None:
    world.add("t/a", "c1", node=None)
    world.run(Del(ORIGIN, "n1", "other", "c1", "eth0"))
    assert "192.0.2.1" in world.holders()
    world.run(Del(ORIGIN, "n1", "k", "c1", "eth0"))
    assert world.holders() == {}


def test_without_a_container_or_generation_a_bound_one_is_refused(world: World) -> None:
    world.add("t/a", "c1")
    outcome = world.release("t/a")
    assert refused(outcome) is Code.BOUND
    assert isinstance(outcome, Refused)
    assert "bound to container c1 on node n1" in outcome.detail
    assert freed(world.release("t/a", force=True)) == ["192.0.2.1"]


@pytest.mark.parametrize("wrong", [{"container_id": "c9"}, {"generation": 1}, {"container_id": "c2", "generation": 1}])
def test_what_is_not_current_is_stale_and_changes_nothing(world: World, wrong: dict[str, Any]) -> None:
    world.add("t/a", "c1")
    world.add("t/a", "c2")
    events = len(world.events())
    for force in (False, True):
        outcome = world.release("t/a", force=force, **wrong)
        assert outcome == Released((), stale=True)
    assert len(world.events()) == events


@pytest.mark.parametrize("right", [{"container_id": "c2"}, {"generation": 2}, {"container_id": "c2", "generation": 2}])
def test_the_current_one_is_released(world: World, right: dict[str, Any]) -> None:
    world.add("t/a", "c1")
    world.add("t/a", "c2")
    assert freed(world.release("t/a", **right)) == ["192.0.2.1"]


def test_an_unknown_reservation_pool_or_interface_is_said(world: World) -> None:
    world.add("t/a", "c1")
    assert refused(world.release("t/b")) is Code.RESERVATION_NOT_FOUND
    assert refused(world.release("t/a", ifname="net9")) is Code.RESERVATION_NOT_FOUND
    assert refused(world.release("t/a", pool="nosuch")) is Code.POOL_NOT_FOUND


def test_one_interface_can_be_released_alone(world: World) -> None:
    world.add("t/a", "c1", ifname="net1")
    world.add("t/a", "c1", ifname="net2")
    assert freed(world.release("t/a", ifname="net1", force=True)) == ["192.0.2.1"]
    assert freed(world.release("t/a", container_id="c1")) == ["192.0.2.2"]


def test_a_held_one_goes_without_more_and_by_its_generation_too(world: World) -> None:
    world.reserve("t/a")
    world.reserve("t/b", pin=True)
    assert freed(world.release("t/a", generation=world.bound("t/a").generation)) == ["192.0.2.1"]
    assert freed(world.release("t/b", generation=world.bound("t/b").generation)) == ["192.0.2.2"]
    world.reserve("t/c", pin=True)
    assert freed(world.release("t/c")) == ["192.0.2.1"]


def test_bound_and_held_interfaces_of_one_generation_go_together(world: World) -> None:
    world.add("t/a", "c1", ifname="net1")
    world.reserve("t/a", ifname="net2")
    assert freed(world.release("t/a", generation=1)) == ["192.0.2.1", "192.0.2.2"]
    assert world.reservation("t/a") is None


def test_a_reclaim_frees_the_bindings_that_are_still_current(world: World) -> None:
    world.add("t/a", "c1")
    world.add("t/b", "c2")
    world.add("t/c", "c3", node="n2")
    seen = (binding(world, "t/a"), binding(world, "t/b"), binding(world, "t/c"))
    world.add("t/b", "c4")
    outcome = world.reclaim(cause=ReclaimCause.GC, node="n1", bindings=seen)
    assert freed(outcome) == ["192.0.2.1"]
    assert stale(outcome)
    assert sorted(world.holders().values()) == ["t/b eth0", "t/c eth0"]
    assert world.events()[-1].detail == "gc"


def test_a_reclaim_leaves_what_started_later_than_it(world: World) -> None:
    world.add("t/a", "c1", at=10)
    world.add("t/b", "c2", at=30)
    both = (binding(world, "t/a"), binding(world, "t/b"))
    outcome = world.reclaim(cause=ReclaimCause.GC, node="n1", bindings=both, call=CallStart("b1", 20))
    assert freed(outcome) == ["192.0.2.1"]


def test_a_reclaim_names_each_binding_once(world: World) -> None:
    world.add("t/a", "c1")
    outcome = world.reclaim(cause=ReclaimCause.GC, node="n1", bindings=(binding(world, "t/a"),) * 2)
    assert freed(outcome) == ["192.0.2.1"]
    assert not stale(outcome)


def test_a_reclaim_keeps_what_the_pool_holds_or_a_pin_keeps(world: World) -> None:
    world.add("t/a", "c1", pin=True)
    world.add("t/b", "c2")
    both = (binding(world, "t/a"), binding(world, "t/b"))
    outcome = world.reclaim(cause=ReclaimCause.NODE_RELEASE, node="n1", bindings=both)
    assert freed(outcome) == ["192.0.2.2"]
    assert held(outcome) == ["t/a eth0"]
    assert world.bound("t/a").state is AttachmentState.HELD


def test_the_reclaim_of_a_pool_frees_for_good(world: World) -> None:
    world.add("t/a", "c1", pin=True)
    world.reserve("t/b")
    both = (binding(world, "t/a"), binding(world, "t/b"))
    assert freed(world.reclaim(cause=ReclaimCause.POOL_DELETE, node=None, bindings=both)) == ["192.0.2.1", "192.0.2.2"]


def test_what_a_node_has_claimed_since_is_not_unclaimed(world: World) -> None:
    world.add("t/a", "c1", node=None)
    world.add("t/b", "c2", node="n1")
    both = (binding(world, "t/a"), binding(world, "t/b"))
    outcome = world.reclaim(cause=ReclaimCause.UNCLAIMED, node=None, bindings=both)
    assert freed(outcome) == ["192.0.2.1"]
    assert stale(outcome)
    assert world.bound("t/b").owner is not None


def test_an_unbound_attachment_is_on_no_node(world: World) -> None:
    world.reserve("t/a")
    seen = (binding(world, "t/a"),)
    assert world.reclaim(cause=ReclaimCause.GC, node="n1", bindings=seen) == Released((), stale=True)
    assert world.bound("t/a").hold_until_log_ms == FOREVER


def test_del_keeps_a_pinned_address_for_its_pod(world: World) -> None:
    world.add("t/a", "c1", pin=True)
    assert held(world.delete("c1")) == ["t/a eth0"]
    mine = world.bound("t/a")
    assert (mine.owner, mine.hold_until_log_ms) == (None, FOREVER)
    assert granted(world.add("t/b")) == "192.0.2.2"
    assert granted(world.add("t/a", "c2")) == "192.0.2.1"
    assert world.bound("t/a").owner == Owner("c2", "n1", "k")


def test_a_generation_never_comes_twice_for_a_pod(world: World) -> None:
    world.add("t/a", "c1")
    first = world.bound("t/a").generation
    world.delete("c1")
    world.add("t/a", "c2")
    assert world.bound("t/a").generation > first
    assert stale(world.release("t/a", generation=first))
    assert world.holders() == {"192.0.2.1": "t/a eth0"}


def test_a_generation_never_comes_twice_after_several_were_freed_at_once(world: World) -> None:
    world.add("t/a", "c1", ifname="net1")
    for container in ("c1", "c2", "c3"):
        world.add("t/a", container, ifname="net2")
    last = world.bound("t/a", "net2").generation
    world.release("t/a", force=True)
    world.add("t/a", "c4", ifname="net1")
    assert world.bound("t/a", "net1").generation > last
