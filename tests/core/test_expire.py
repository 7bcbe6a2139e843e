"""What time ends: holds, cooldowns, quarantines and marks, a bounded number at once, in a fixed order."""

from __future__ import annotations

import pytest

from ipamd.core.decide import EXPIRE_LIMIT, expire
from ipamd.core.model import Cooling, Tombstone
from tests.core.world import World, granted, range_of


def test_nothing_is_due_in_an_empty_state() -> None:
    world = World()
    decision = expire(world.state, world.stamp)
    assert (decision.changes, decision.last_id, decision.last_event) == ((), 0, 0)


def test_what_is_due_ends_before_the_command_of_the_entry() -> None:
    world = World()
    world.pool("p", range_of("192.0.2.1/32"), cooldown_s=5, cooldown_min_s=5)
    world.add("t/a", "c1")
    world.delete("c1")
    world.log_ms += 5000
    assert granted(world.add("t/b")) == "192.0.2.1"


@pytest.mark.parametrize("limit", [1, 2, 3, EXPIRE_LIMIT])
def test_a_backlog_ends_in_bounded_steps_the_earliest_first(limit: int) -> None:
    world = World()
    world.pool("p", "192.0.2.0/28", cooldown_s=10)
    for name in ("c3", "c1", "c2", "c4"):
        world.add(f"t/{name}", name)
    for name in ("c1", "c2", "c3", "c4"):
        world.log_ms += 1
        world.delete(name)
    world.log_ms += 10_000
    left = [4]
    while world.state.all(Cooling):
        world.state.carry_out(expire(world.state, world.stamp, limit))
        left.append(len(world.state.all(Cooling)))
        assert all(one.pod_ref > f"t/c{4 - left[-1]}" for one in world.state.all(Cooling))
    assert left == [*range(4, 0, -limit), 0]


def test_a_reservation_goes_with_its_last_interface_even_if_they_end_in_several_steps() -> None:
    world = World()
    world.pool("p", "192.0.2.0/28", hold_s=5)
    for ifname in ("net1", "net2", "net3"):
        world.add("t/a", "c1", ifname=ifname)
        world.delete("c1", ifname=ifname)
    world.log_ms += 5000
    world.state.carry_out(expire(world.state, world.stamp, 2))
    assert world.holders() == {"192.0.2.3": "t/a net3"}
    world.state.carry_out(expire(world.state, world.stamp, 2))
    assert world.reservation("t/a") is None


@pytest.mark.parametrize("cooldown_s", [0, 30])
def test_a_hold_and_the_quarantine_of_its_address_end_in_one_moment(cooldown_s: int) -> None:
    world = World()
    world.pool("p", "192.0.2.0/28", hold_s=5, cooldown_s=cooldown_s)
    world.add("t/a", "c1")
    world.quarantine("192.0.2.1", for_s=5)
    world.delete("c1")
    world.wait(5)
    assert world.occupied() == (["192.0.2.1"] if cooldown_s else [])
    world.wait(cooldown_s)
    assert world.occupied() == []


def test_a_cooldown_and_the_quarantine_of_its_address_end_in_one_moment() -> None:
    world = World()
    world.pool("p", "192.0.2.0/28", cooldown_s=5)
    world.add("t/a", "c1")
    world.delete("c1")
    world.quarantine("192.0.2.1", for_s=5)
    world.wait(4)
    assert world.occupied() == ["192.0.2.1"]
    world.wait(1)
    assert world.occupied() == []


def test_marks_go_when_their_time_is_over() -> None:
    world = World()
    world.settings(tombstone_s=60)
    world.delete("c1")
    world.wait(30)
    world.delete("c2")
    world.wait(30)
    assert [mark.container_id for mark in world.state.all(Tombstone)] == ["c2"]
    world.wait(30)
    assert world.state.all(Tombstone) == []


def test_what_time_ends_is_told_as_the_systems_doing() -> None:
    world = World()
    world.pool("p", "192.0.2.0/28", hold_s=5)
    world.add("t/a", "c1")
    world.delete("c1")
    world.wait(5)
    event = world.events()[-1]
    assert (event.by, event.request_id, event.kind) == ("system", "expiry", "released")
