"""What is kept for its pod without a container: sticky pools, reservations made ahead, pins."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ipamd.core.model import FOREVER, AttachmentState, EventKind
from ipamd.core.outcomes import Code, Outcome
from tests.core.world import World, freed, granted, range_of, refused


def sticky(hold_s: int, **rest: int) -> World:
    world = World()
    world.pool("p", range_of("192.0.2.0/29", end="192.0.2.2"), hold_s=hold_s, **rest)
    return world


def test_a_sticky_pool_keeps_a_released_address_for_its_pod() -> None:
    world = sticky(FOREVER)
    world.add("t/a", "c1")
    world.delete("c1")
    assert world.bound("t/a").state is AttachmentState.HELD
    world.wait(10**6)
    assert granted(world.add("t/b")) == "192.0.2.2"
    assert refused(world.add("t/c")) is Code.POOL_EXHAUSTED
    assert granted(world.add("t/a", "c2")) == "192.0.2.1"
    assert world.bound("t/a").hold_until_log_ms is None


def test_its_time_over_it_is_freed_and_cools() -> None:
    world = sticky(60, cooldown_s=30)
    world.add("t/a", "c1")
    world.delete("c1")
    world.wait(59.999)
    assert world.reservation("t/a") is not None
    world.wait(0.001)
    assert world.reservation("t/a") is None
    assert world.events()[-1].kind is EventKind.RELEASED
    assert world.events()[-1].detail == "hold ended"
    assert world.occupied() == ["192.0.2.1"]
    world.wait(30)
    assert world.occupied() == []


def test_a_pod_that_comes_back_ends_the_hold() -> None:
    world = sticky(60)
    world.add("t/a", "c1")
    world.delete("c1")
    world.wait(30)
    world.add("t/a", "c2")
    world.wait(1000)
    assert world.holders() == {"192.0.2.1": "t/a eth0"}


def test_a_second_del_does_not_lengthen_it() -> None:
    world = sticky(60)
    world.add("t/a", "c1")
    world.delete("c1")
    until = world.bound("t/a").hold_until_log_ms
    world.wait(30)
    world.delete("c1")
    assert world.bound("t/a").hold_until_log_ms == until


def test_a_release_of_the_held_one_frees_it() -> None:
    world = sticky(FOREVER)
    world.add("t/a", "c1")
    world.release("t/a", container_id="c1")
    assert world.bound("t/a").state is AttachmentState.HELD
    assert freed(world.release("t/a")) == ["192.0.2.1"]


def test_a_reservation_made_ahead_waits_for_its_pod() -> None:
    world = sticky(0)
    assert granted(world.reserve("t/db", ips=("192.0.2.2",))) == "192.0.2.2"
    assert world.bound("t/db").state is AttachmentState.HELD
    assert granted(world.add("t/a")) == "192.0.2.1"
    assert refused(world.add("t/b")) is Code.POOL_EXHAUSTED
    assert granted(world.add("t/db")) == "192.0.2.2"
    assert [event.kind for event in world.events() if event.pod_ref == "t/db"] == [EventKind.HELD, EventKind.BOUND]


def test_it_ends_with_its_ttl_and_a_new_one_counts_from_now() -> None:
    world = sticky(0)
    world.reserve("t/a", ttl_s=10)
    world.wait(9)
    world.reserve("t/a", ttl_s=10)
    world.wait(9)
    assert world.reservation("t/a") is not None
    world.wait(1)
    assert world.reservation("t/a") is None


@pytest.mark.parametrize("ttl_s", [None, 0])
def test_without_ttl_it_stays_and_with_none_left_it_goes(ttl_s: int | None) -> None:
    world = sticky(0)
    world.reserve("t/a", ttl_s=ttl_s)
    world.wait(10**6)
    assert (world.reservation("t/a") is not None) is (ttl_s is None)


def test_every_successful_add_raises_the_generation() -> None:
    world = sticky(0)
    steps: tuple[Callable[[str], Outcome], ...] = (world.reserve, world.reserve, world.add, world.reserve, world.add)
    for expected, step in enumerate(steps, start=1):
        step("t/a")
        assert world.bound("t/a").generation == expected
    assert world.bound("t/a").state is AttachmentState.BOUND


def test_a_pin_keeps_what_is_let_go() -> None:
    world = sticky(0)
    world.add("t/a", "c1")
    world.reserve("t/a", pin=True)
    world.delete("c1")
    world.wait(10**6)
    assert world.bound("t/a").state is AttachmentState.HELD
    assert granted(world.add("t/a", "c2")) == "192.0.2.1"
    reservation = world.reservation("t/a")
    assert reservation is not None
    assert reservation.pinned


def test_a_pin_keeps_the_other_interfaces_that_are_held() -> None:
    """Their hold had an end, which the pin takes away."""
    world = sticky(60)
    world.add("t/a", "c1", ifname="net1")
    world.delete("c1", ifname="net1")
    world.reserve("t/a", ifname="net2", pin=True)
    world.wait(10**6)
    assert world.holders() == {"192.0.2.1": "t/a net1", "192.0.2.2": "t/a net2"}


def test_a_pin_is_for_ever_whatever_ttl_is_named() -> None:
    world = sticky(0)
    world.reserve("t/a", pin=True, ttl_s=5)
    world.reserve("t/a", ttl_s=5)
    world.wait(10)
    assert world.bound("t/a").hold_until_log_ms == FOREVER


def test_holding_one_interface_keeps_the_reservation() -> None:
    world = sticky(60)
    world.add("t/a", "c1", ifname="net1")
    world.wait(1)
    world.add("t/a", "c2", ifname="net2")
    world.delete("c1", ifname="net1")
    world.wait(60)
    assert world.holders() == {"192.0.2.2": "t/a net2"}


def test_a_changed_hold_time_counts_from_the_next_release_on() -> None:
    world = sticky(60)
    world.add("t/a", "c1")
    world.delete("c1")
    world.replace("p", range_of("192.0.2.0/29", end="192.0.2.2"), hold_s=0)
    assert world.bound("t/a").hold_until_log_ms == world.log_ms + 60_000
    world.add("t/a", "c2")
    assert freed(world.delete("c2")) == ["192.0.2.1"]
