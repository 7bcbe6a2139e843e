"""Nodes that fall silent: who counts as lost, what that frees, and when many at once free nothing."""

from __future__ import annotations

import pytest

from ipamd.core.commands import Binding, ReclaimCause
from ipamd.core.lost import reclaim_after_s
from ipamd.core.model import EventKind, Pool, Settings
from ipamd.core.outcomes import Code, Outcome
from tests.core.world import World, definition, freed, granted, refused

LOST_S = 300


@pytest.fixture
def world() -> World:
    """Eight nodes with a pod each."""
    made = World()
    made.pool("p", "192.0.2.0/28", reclaim="after:60")
    for number in range(1, 9):
        made.add(f"t/{number}", f"c{number}", node=f"n{number}", inode=number)
        made.report(f"n{number}")
    return made


def reclaim(world: World, *pods: str, node: str = "n1") -> Outcome:
    bindings = tuple(Binding(one.id, one.generation) for one in map(world.bound, pods))
    return world.reclaim(cause=ReclaimCause.LOST, node=node, bindings=bindings)


def is_lost(world: World, node: str = "n1") -> bool:
    return world.node(node).lost_log_ms is not None


def test_a_node_that_was_silent_long_enough_is_lost_and_that_is_told_once(world: World) -> None:
    world.wait(LOST_S)
    world.lose("n1")
    world.lose("n1")
    assert is_lost(world)
    assert world.kinds().count(EventKind.NODE_LOST) == 1
    assert world.node().silent_since_ms is not None


def test_the_log_has_to_agree_that_it_was_silent(world: World) -> None:
    world.wait(LOST_S - 1)
    world.lose("n1")
    assert not is_lost(world)
    world.report("n1", c1=True)
    world.wait(LOST_S - 1)
    world.lose("n1")
    assert not is_lost(world)


def test_a_node_that_never_reported_is_never_lost(world: World) -> None:
    """A hypervisor that is only a name in a reservation, a host whose plugins call a server far away."""
    world.add("t/vm", "vm", node="silent")
    world.wait(10 * LOST_S)
    world.lose("silent", "nobody")
    assert not is_lost(world, "silent")


def test_after_its_time_a_lost_nodes_addresses_are_freed_and_no_others(world: World) -> None:
    world.wait(LOST_S)
    world.lose("n1")
    world.wait(59)
    assert freed(reclaim(world, "t/1")) == []
    world.wait(1)
    assert freed(reclaim(world, "t/1", "t/2")) == ["192.0.2.1"]
    assert world.events()[-1].detail == "lost"
    assert len(world.holders()) == 7


def test_never_means_never() -> None:
    world = World()
    world.pool("p", "192.0.2.0/29")
    world.add("t/1", "c1", inode=1)
    world.report(c1=True)
    world.wait(LOST_S)
    world.lose("n1")
    world.wait(100 * LOST_S)
    assert freed(reclaim(world, "t/1")) == []


def test_the_settings_say_it_where_the_pool_does_not() -> None:
    def after_s(own: str | None, general: str) -> int | None:
        return reclaim_after_s(Pool(1, definition("p", "192.0.2.0/29", reclaim=own), 0), Settings(reclaim=general))

    assert after_s(None, "after:900") == 900
    assert after_s("never", "after:900") is None
    assert after_s("after:60", "never") == 60
    assert after_s(None, "never") is None


@pytest.mark.parametrize("sign", ["report", "add", "heartbeat"])
def test_a_node_that_gives_a_sign_of_life_is_back_and_keeps_all(world: World, sign: str) -> None:
    world.wait(LOST_S)
    world.lose("n1")
    world.wait(60)
    match sign:
        case "report":
            world.report(c1=True)
        case "add":
            world.add("t/new", "c9")
        case "heartbeat":
            world.find("n1")
    assert not is_lost(world)
    assert world.kinds().count(EventKind.NODE_BACK) == 1
    assert freed(reclaim(world, "t/1")) == []
    world.lose("n1")
    assert not is_lost(world), "it was just heard"
    world.wait(LOST_S)
    world.lose("n1")
    assert is_lost(world)


def test_a_call_from_the_spool_is_no_sign_of_life(world: World) -> None:
    world.wait(LOST_S)
    world.lose("n1")
    world.delete("c9", spooled=True)
    assert is_lost(world)


def test_a_pod_that_was_bound_elsewhere_meanwhile_keeps_its_address(world: World) -> None:
    world.wait(LOST_S)
    world.lose("n1")
    old = world.bound("t/1")
    assert granted(world.add("t/1", "c1b", node="n2")) == "192.0.2.1"
    world.wait(60)
    outcome = world.reclaim(cause=ReclaimCause.LOST, node="n1", bindings=(Binding(old.id, old.generation),))
    assert freed(outcome) == []
    assert freed(reclaim(world, "t/1")) == []
    assert world.holders()["192.0.2.1"] == "t/1 eth0"


@pytest.mark.parametrize(("silent", "mass"), [(1, False), (2, False), (3, True), (8, True)])
def test_more_than_two_and_more_than_a_quarter_are_mass_silence(world: World, silent: int, mass: bool) -> None:
    world.wait(LOST_S)
    names = [f"n{number}" for number in range(1, silent + 1)]
    world.lose(*names)
    assert all(is_lost(world, name) for name in names)
    world.wait(3600)
    assert (freed(reclaim(world, "t/1")) == []) is mass
    assert world.kinds().count(EventKind.MASS_SILENCE) == mass


def test_three_of_many_are_no_mass() -> None:
    world = World()
    world.pool("p", "192.0.2.0/26", reclaim="after:60")
    for number in range(1, 13):
        world.add(f"t/{number}", node=f"n{number}", inode=number)
        world.report(f"n{number}")
    world.wait(LOST_S)
    world.lose("n1", "n2", "n3")
    assert world.state.mass_silence() is None
    world.lose("n4")
    assert world.state.mass_silence() is not None


def test_nodes_that_hold_nothing_do_not_count(world: World) -> None:
    for number in (1, 2):
        world.delete(f"c{number}", node=f"n{number}")
    world.wait(LOST_S)
    world.lose("n1", "n2", "n3", "n4")
    assert world.state.mass_silence() is None


def test_those_that_fall_silent_one_after_the_other_count_together(world: World) -> None:
    world.wait(LOST_S)
    for number, pause_s in ((1, 100), (2, 199)):
        world.lose(f"n{number}")
        world.wait(pause_s)
    world.lose("n3")
    assert world.state.mass_silence() is not None


def test_those_that_fell_silent_longer_ago_do_not_count(world: World) -> None:
    world.wait(LOST_S)
    world.lose("n1")
    world.wait(LOST_S)
    world.lose("n2", "n3")
    assert world.state.mass_silence() is None


def test_those_that_are_silent_and_not_lost_yet_count_with_them(world: World) -> None:
    world.wait(LOST_S)
    world.lose("n1", doubtful=("n2", "n3"))
    assert not is_lost(world, "n2")
    assert world.state.mass_silence() is not None


def test_those_that_fall_silent_before_the_first_are_reclaimed_count_with_them(world: World) -> None:
    """Nobody else is lost yet when n1's time is over: the leader tells who is silent by now."""
    world.wait(LOST_S)
    world.lose("n1")
    world.wait(60)
    world.lose(doubtful=("n2",))
    assert world.state.mass_silence() is None
    world.lose(doubtful=("n2", "n3"))
    assert world.state.mass_silence() is not None
    assert freed(reclaim(world, "t/1")) == []


def test_silence_alone_is_no_mass_while_nobody_is_lost_by_it(world: World) -> None:
    world.lose(doubtful=("n1", "n2", "n3", "n4"))
    assert world.state.mass_silence() is None
    world.wait(LOST_S)
    world.lose("n1")
    world.wait(LOST_S)
    world.lose(doubtful=("n2", "n3", "n4"))
    assert world.state.mass_silence() is None, "n1 was lost longer ago"


def test_a_mass_silence_stands_until_it_is_confirmed_even_if_all_come_back(world: World) -> None:
    world.wait(LOST_S)
    world.lose("n1", "n2", "n3")
    world.find("n2", "n3")
    world.wait(3600)
    assert freed(reclaim(world, "t/1")) == []
    world.confirm()
    assert world.events()[-1].kind is EventKind.MASS_SILENCE_CONFIRMED
    assert freed(reclaim(world, "t/1")) == ["192.0.2.1"]
    assert refused(world.confirm()) is Code.NOT_FOUND


def test_those_that_were_confirmed_do_not_count_again(world: World) -> None:
    world.wait(LOST_S)
    world.lose("n1", "n2", "n3")
    world.wait(10)
    world.confirm()
    world.wait(1)
    world.lose("n4")
    silence = world.state.mass_silence()
    assert silence is not None
    assert not silence.stands
    world.wait(1)
    world.lose("n5", "n6")
    silence = world.state.mass_silence()
    assert silence is not None
    assert silence.stands


def test_a_name_with_two_hosts_is_never_lost(world: World) -> None:
    world.report("n1", boot="b2")
    world.report("n1", boot="b1")
    world.wait(LOST_S)
    world.lose("n1")
    assert not is_lost(world)
