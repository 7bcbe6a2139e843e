"""Boots of a node: a new one makes what was bound before suspect, an old one that comes back means two hosts."""

from __future__ import annotations

import pytest

from ipamd.core.commands import Binding, CallStart, ForgetNode, Reclaim, ReclaimCause
from ipamd.core.model import AttachmentState, EventKind, Start
from ipamd.core.outcomes import Done, Outcome, Refused
from tests.core.world import ORIGIN, World, freed, granted, refused, stale

GRACE_S = 120


@pytest.fixture
def world() -> World:
    made = World()
    made.pool("p", "192.0.2.0/28")
    made.add("t/a", "c1", inode=7)
    made.add("t/b", "c2", inode=8)
    return made


def state_of(world: World, pod: str) -> AttachmentState:
    return world.bound(pod).state


def test_the_first_boot_of_a_node_makes_nothing_suspect(world: World) -> None:
    world.add("t/v", "vm", node="n5", at=None, boot="b1", spooled=True)
    world.report("n5", boot="b1")
    assert state_of(world, "t/v") is AttachmentState.BOUND
    assert EventKind.NODE_REBOOTED not in world.kinds()


def test_a_new_boot_makes_older_bindings_suspect_and_frees_nothing(world: World) -> None:
    world.add("t/c", "c3", boot="b2", inode=9)
    assert state_of(world, "t/a") is state_of(world, "t/b") is AttachmentState.SUSPECT
    assert state_of(world, "t/c") is AttachmentState.BOUND
    (event,) = [one for one in world.events() if one.kind is EventKind.NODE_REBOOTED]
    assert (event.node, event.detail) == ("n1", "boot 2 of those seen; 2 interfaces bound before it are suspect")
    assert len(world.holders()) == 3


def test_a_report_is_heard_from_a_new_boot_too(world: World) -> None:
    world.report(boot="b2")
    assert state_of(world, "t/a") is AttachmentState.SUSPECT


def test_other_nodes_are_not_concerned(world: World) -> None:
    world.add("t/d", "c4", node="n2", boot="b1")
    world.report(boot="b2")
    assert state_of(world, "t/d") is AttachmentState.BOUND


def test_who_is_bound_anew_or_seen_alive_is_not_suspect_any_more(world: World) -> None:
    world.report(boot="b2")
    assert granted(world.add("t/a", "c9", boot="b2", inode=9)) == "192.0.2.1"
    assert state_of(world, "t/a") is AttachmentState.BOUND
    world.report(boot="b2", c2=True)
    assert state_of(world, "t/b") is AttachmentState.BOUND


def test_the_call_that_tells_of_the_boot_may_be_about_what_becomes_suspect(world: World) -> None:
    assert freed(world.delete("c1", boot="b2")) == ["192.0.2.1"]
    assert state_of(world, "t/b") is AttachmentState.SUSPECT
    assert granted(world.add("t/b", "c2", boot="b3", inode=9)) == "192.0.2.2"
    assert state_of(world, "t/b") is AttachmentState.BOUND


def test_suspects_are_freed_as_others_are(world: World) -> None:
    world.report(boot="b2", c1=False, c2=None)
    world.wait(GRACE_S)
    assert freed(world.report(boot="b2", c1=False, c2=None)) == ["192.0.2.1"]
    assert state_of(world, "t/b") is AttachmentState.SUSPECT


def test_an_operator_frees_the_suspects_alone(world: World) -> None:
    world.report(boot="b2")
    world.add("t/c", "c3", boot="b2")
    bindings = tuple(Binding(one.id, one.generation) for one in map(world.bound, ("t/a", "t/b", "t/c")))
    world.report(boot="b2", c2=True)
    outcome = world.reclaim(cause=ReclaimCause.SUSPECT_RELEASE, node="n1", bindings=bindings)
    assert freed(outcome) == ["192.0.2.1"]
    assert stale(outcome)


def test_what_waited_on_disk_over_a_reboot_is_no_second_host(world: World) -> None:
    world.report(boot="b2")
    world.delete("c1", boot="b1", spooled=True)
    assert not world.node().clash


@pytest.mark.parametrize("how", ["add", "delete", "report", "gc"])
def test_an_old_boot_that_comes_back_is_a_second_host(world: World, how: str) -> None:
    world.add("t/c", "c3", boot="b2", inode=9)
    match how:
        case "add":
            assert granted(world.add("t/d", "c4", boot="b1")) == "192.0.2.4"
        case "delete":
            world.delete("c9", boot="b1")
        case "report":
            assert stale(world.report(boot="b1", c3=False))
        case "gc":
            assert stale(_gc(world, boot="b1"))
    assert world.node().clash
    (event,) = [one for one in world.events() if one.kind is EventKind.NODE_NAME_CLASH]
    assert event.node == "n1"
    assert len(world.holders()) == (4 if how == "add" else 3)


def _gc(world: World, boot: str) -> Outcome:
    bindings = tuple(Binding(one.id, one.generation) for one in map(world.bound, ("t/a", "t/b", "t/c")))
    return world.run(Reclaim(ORIGIN, ReclaimCause.GC, "n1", bindings, CallStart(boot, 10**18)))


def test_nothing_that_is_said_of_a_name_with_two_hosts_counts(world: World) -> None:
    world.add("t/c", "c3", boot="b2", inode=9)
    world.report(boot="b2", c1=False, c2=False, c3=False)
    world.report(boot="b1", c1=True)
    world.wait(GRACE_S)
    assert stale(world.report(boot="b2", c1=False, c2=False, c3=False))
    world.add("t/d", "c4", boot="b3")
    assert state_of(world, "t/c") is AttachmentState.BOUND
    assert stale(_gc(world, "b3"))
    assert len(world.holders()) == 4
    assert world.kinds().count(EventKind.NODE_NAME_CLASH) == 1
    assert freed(world.delete("c3", boot="b2")) == ["192.0.2.3"]


def test_forgetting_lets_whoever_calls_next_be_the_host(world: World) -> None:
    world.add("t/c", "c3", boot="b2", inode=9)
    world.report(boot="b1")
    assert world.run(ForgetNode(ORIGIN, "n1")) == Done()
    assert not world.node().clash
    world.report(boot="b1", c1=True, c2=True)
    assert not world.node().clash
    assert world.state.boots("n1")[-1].order == 3
    assert state_of(world, "t/a") is AttachmentState.BOUND
    assert state_of(world, "t/c") is AttachmentState.SUSPECT
    assert freed(world.delete("c1", boot="b1")) == ["192.0.2.1"]
    world.report(boot="b2")
    assert world.state.boots("n1")[-1].order == 4
    world.report(boot="b1")
    assert world.node().clash


def test_a_node_of_one_host_that_holds_something_is_not_forgotten(world: World) -> None:
    assert isinstance(world.run(ForgetNode(ORIGIN, "n1")), Refused)


def test_order_goes_on_when_boots_are_forgotten(world: World) -> None:
    for number in range(20):
        world.add("t/a", "c1", boot=f"x{number}", inode=7)
    assert world.bound("t/a").start == Start(21, world.log_ms)
    assert world.node().newest_boot == 21


def test_a_refused_call_makes_nothing_suspect(world: World) -> None:
    assert refused(world.add("t/z", "c9", pools="none", boot="b2"))
    assert state_of(world, "t/a") is AttachmentState.BOUND
