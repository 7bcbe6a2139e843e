"""A pod comes up on another node: it gets its address there, unless the old node still sees the old one alive."""

from __future__ import annotations

import pytest

from ipamd.core.model import EventKind, Owner
from ipamd.core.outcomes import Code, Refused
from tests.core.world import World, freed, granted, refused

FRESH_S = 90


@pytest.fixture
def world() -> World:
    made = World()
    made.pool("p", "192.0.2.0/29", cooldown_s=60)
    made.add("t/a", "c1", inode=7)
    made.report(c1=True)
    return made


def owner_of(world: World) -> Owner:
    owner = world.bound("t/a").owner
    assert owner is not None
    return owner


def test_what_a_reporting_node_sees_alive_is_not_taken_over(world: World) -> None:
    world.wait(FRESH_S)
    outcome = world.add("t/a", "c2", node="n2")
    assert refused(outcome) is Code.CONTESTED
    assert isinstance(outcome, Refused)
    assert "n1" in outcome.detail
    assert "n2" in outcome.detail
    assert "ipamctl reservation release p t/a --force" in outcome.detail
    assert owner_of(world).container_id == "c1"


def test_that_is_told_once(world: World) -> None:
    for _ in range(3):
        assert refused(world.add("t/a", "c2", node="n2")) is Code.CONTESTED
        world.wait(10)
    (event,) = [one for one in world.events() if one.kind is EventKind.CONTESTED]
    assert (event.node, str(event.address), event.pod_ref) == ("n2", "192.0.2.1", "t/a")
    assert event.detail == "alive on node n1 container c1, wanted by container c2"
    world.report(c1=True)
    assert refused(world.add("t/a", "c2", node="n2")) is Code.CONTESTED
    assert world.kinds().count(EventKind.CONTESTED) == 1


def test_it_passes_when_the_node_has_not_reported_for_long(world: World) -> None:
    world.wait(FRESH_S + 0.001)
    assert granted(world.add("t/a", "c2", node="n2")) == "192.0.2.1"
    assert world.events()[-1].kind is EventKind.MOVED


@pytest.mark.parametrize("state", [False, None])
def test_it_passes_at_the_next_report_without_it(world: World, state: bool | None) -> None:
    assert refused(world.add("t/a", "c2", node="n2")) is Code.CONTESTED
    world.report(c1=state)
    assert granted(world.add("t/a", "c2", node="n2")) == "192.0.2.1"
    assert freed(world.delete("c1")) == []


def test_it_passes_at_the_del(world: World) -> None:
    assert refused(world.add("t/a", "c2", node="n2")) is Code.CONTESTED
    assert freed(world.delete("c1")) == ["192.0.2.1"]
    assert granted(world.add("t/a", "c2", node="n2")) == "192.0.2.1"


def test_it_passes_by_force(world: World) -> None:
    assert refused(world.add("t/a", "c2", node="n2")) is Code.CONTESTED
    world.release("t/a", force=True)
    assert granted(world.add("t/a", "c2", node="n2")) == "192.0.2.1"


def test_on_its_own_node_a_pod_is_bound_anew_however_alive_the_old_one_is(world: World) -> None:
    assert granted(world.add("t/a", "c2")) == "192.0.2.1"


def test_until_the_next_report_what_was_seen_at_the_add_counts_as_alive(world: World) -> None:
    world.add("t/b", "c3", inode=9)
    assert refused(world.add("t/b", "c4", node="n2")) is Code.CONTESTED
    world.report(c1=True)
    assert granted(world.add("t/b", "c4", node="n2")) == "192.0.2.2"


def test_what_was_seen_of_an_older_binding_says_nothing_of_this_one(world: World) -> None:
    world.report(c1=False)
    world.add("t/a", "c1", inode=8)
    assert refused(world.add("t/a", "c2", node="n2")) is Code.CONTESTED
    world.report(c1=True)
    world.add("t/a", "c1")
    assert granted(world.add("t/a", "c2", node="n2")) == "192.0.2.1"


def test_an_add_that_its_pods_next_life_overtook_on_another_node_takes_nothing(world: World) -> None:
    """It comes late, with a uid that nobody has seen; the next life is on a node that reports."""
    world.report("n2")
    world.add("t/b", "c4", node="n2", uid="u2", inode=9)
    assert refused(world.add("t/b", "c3", node="n1", uid="u1")) is Code.CONTESTED
    world.report("n2", c4=True)
    assert refused(world.add("t/b", "c3", node="n1", uid="u1")) is Code.CONTESTED
    assert freed(world.delete("c3")) == []
    assert world.bound("t/b").owner == Owner("c4", "n2", "k", "/run/netns/x", 9)
    assert granted(world.add("t/b", "c4", node="n2", uid="u2", inode=9)) == "192.0.2.2"


def test_what_nobody_ever_saw_moves(world: World) -> None:
    world.add("t/b", "c3")
    assert granted(world.add("t/b", "c4", node="n2")) == "192.0.2.2"


def test_a_node_that_never_reported_holds_nothing_back() -> None:
    world = World()
    world.pool("p", "192.0.2.0/29")
    world.add("t/a", "c1", inode=7)
    assert granted(world.add("t/a", "c2", node="n2")) == "192.0.2.1"


def test_a_name_with_two_hosts_holds_nothing_back(world: World) -> None:
    world.report(boot="b2", c1=True)
    world.report(boot="b1", c1=True)
    assert granted(world.add("t/a", "c2", node="n2")) == "192.0.2.1"


def test_all_or_nothing() -> None:
    world = World()
    world.pool("p", "192.0.2.0/29")
    world.pool("q", "198.51.100.0/29")
    world.add("t/a", "c1", pools="q", inode=7)
    world.report(c1=True)
    assert refused(world.add("t/a", "c2", pools="p q", node="n2")) is Code.CONTESTED
    assert world.holders("p") == {}


def test_a_reservation_made_ahead_finds_its_pod_there(world: World) -> None:
    assert granted(world.reserve("t/a")) == "192.0.2.1"
    assert refused(world.add("t/a", "c2", node="n2")) is Code.CONTESTED
