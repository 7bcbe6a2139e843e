"""Cooldown: a freed address is the last to be handed out, never before its least time, and its own pod's at any time."""

from __future__ import annotations

import pytest

from ipamd.core.model import Cooling
from ipamd.core.outcomes import Code
from tests.core.world import World, granted, range_of, refused, texts


def pool_of(*, cooldown_s: int | None = 60, cooldown_min_s: int = 0, end: str = "192.0.2.3") -> World:
    world = World()
    world.pool("p", range_of("192.0.2.0/29", end=end), cooldown_s=cooldown_s, cooldown_min_s=cooldown_min_s)
    return world


def test_a_freed_address_comes_last() -> None:
    world = pool_of()
    world.add("t/a", "c1")
    world.delete("c1")
    assert [granted(world.add(f"t/b{number}")) for number in range(3)] == ["192.0.2.2", "192.0.2.3", "192.0.2.1"]
    assert refused(world.add("t/late")) is Code.POOL_EXHAUSTED


def test_of_several_the_one_freed_first_comes_first() -> None:
    world = pool_of()
    for name in ("a", "b", "c"):
        world.add(f"t/{name}", name)
    for name in ("b", "c", "a"):
        world.wait(1)
        world.delete(name)
    assert [granted(world.add(f"t/n{number}")) for number in range(3)] == ["192.0.2.2", "192.0.2.3", "192.0.2.1"]


def test_freed_in_one_moment_the_lowest_comes_first() -> None:
    world = pool_of()
    for name in ("a", "b", "c"):
        world.add(f"t/{name}", name)
    for name in ("c", "b", "a"):
        world.delete(name)
    assert granted(world.add("t/n")) == "192.0.2.1"


def test_after_its_time_it_is_free_like_any_other() -> None:
    world = pool_of()
    world.add("t/a", "c1")
    world.delete("c1")
    world.wait(59.999)
    assert world.occupied() == ["192.0.2.1"]
    world.wait(0.001)
    assert world.occupied() == []
    assert granted(world.add("t/b")) == "192.0.2.1"


def test_the_pod_gets_its_own_address_back() -> None:
    world = pool_of(cooldown_min_s=30)
    world.add("t/a", "c1")
    world.add("t/b", "c2")
    world.delete("c2")
    assert granted(world.add("t/b", "c3")) == "192.0.2.2"
    assert world.state.all(Cooling) == []


def test_of_several_own_ones_it_gets_the_one_held_last() -> None:
    world = pool_of()
    for address in ("192.0.2.2", "192.0.2.3", "192.0.2.1", "192.0.2.2"):
        world.wait(1)
        world.add("t/a", "c1", ips=(address,))
        world.delete("c1")
    assert granted(world.add("t/a", "c2")) == "192.0.2.2"


def test_another_interface_is_another_holder() -> None:
    world = pool_of()
    world.add("t/a", "c1", ifname="net1")
    world.delete("c1", ifname="net1")
    assert granted(world.add("t/a", "c2", ifname="net2")) == "192.0.2.2"
    assert granted(world.add("t/a", "c2", ifname="net1")) == "192.0.2.1"


def test_the_least_time_is_never_cut_short() -> None:
    world = pool_of(cooldown_min_s=5, end="192.0.2.1")
    world.add("t/a", "c1")
    world.delete("c1")
    assert refused(world.add("t/b")) is Code.POOL_EXHAUSTED
    world.wait(4.999)
    assert refused(world.add("t/b")) is Code.POOL_EXHAUSTED
    world.wait(0.001)
    assert granted(world.add("t/b")) == "192.0.2.1"


@pytest.mark.parametrize("lift_after_s", [0, 3])
def test_a_quarantine_does_not_cut_it_short_either(lift_after_s: int) -> None:
    world = pool_of(cooldown_min_s=5, end="192.0.2.1")
    world.add("t/a", "c1")
    world.delete("c1")
    world.quarantine("192.0.2.1")
    world.wait(lift_after_s)
    world.lift("192.0.2.1")
    assert refused(world.add("t/b")) is Code.POOL_EXHAUSTED
    world.wait(5 - lift_after_s)
    assert granted(world.add("t/b")) == "192.0.2.1"


def test_nor_does_one_that_was_there_when_it_was_freed() -> None:
    world = pool_of(cooldown_min_s=5, end="192.0.2.1")
    world.add("t/a", "c1")
    world.quarantine("192.0.2.1")
    world.delete("c1")
    world.lift("192.0.2.1")
    assert refused(world.add("t/b")) is Code.POOL_EXHAUSTED
    assert granted(world.add("t/a", "c2")) == "192.0.2.1"


def test_while_in_quarantine_not_even_its_own_pod_gets_it() -> None:
    world = pool_of(end="192.0.2.1")
    world.add("t/a", "c1")
    world.delete("c1")
    world.quarantine("192.0.2.1")
    assert refused(world.add("t/a", "c2")) is Code.POOL_EXHAUSTED
    assert refused(world.add("t/b")) is Code.POOL_EXHAUSTED
    world.wait(100)
    assert world.occupied() == ["192.0.2.1"]
    world.lift("192.0.2.1")
    assert granted(world.add("t/b")) == "192.0.2.1"


def test_the_pools_own_time_goes_before_the_settings() -> None:
    for own, settings, expected in ((None, 7, 7), (3, 7, 3), (0, 7, 0)):
        world = World()
        world.settings(cooldown_s=settings)
        world.pool("p", "192.0.2.0/29", cooldown_s=own)
        world.add("t/a", "c1")
        world.delete("c1")
        cooling = world.state.all(Cooling)
        assert [one.until_log_ms - one.freed_log_ms for one in cooling] == [expected * 1000] * bool(expected)


def test_the_least_time_lengthens_a_shorter_one() -> None:
    world = pool_of(cooldown_s=0, cooldown_min_s=5)
    world.add("t/a", "c1")
    world.delete("c1")
    (cooling,) = world.state.all(Cooling)
    assert cooling.until_log_ms == cooling.hard_until_log_ms == world.log_ms + 5000


def test_a_cooling_address_waits_for_every_pool_of_its_space() -> None:
    world = pool_of(cooldown_min_s=5)
    world.pool("q", "192.0.2.0/28", allow_overlap=True)
    world.add("t/a", "c1")
    world.delete("c1")
    assert granted(world.add("t/b", pools="q")) == "192.0.2.2"
    assert granted(world.add("t/a", "c2")) == "192.0.2.1"


def test_it_waits_on_when_its_pool_is_gone() -> None:
    world = pool_of(cooldown_min_s=5)
    world.add("t/a", "c1")
    world.delete("c1")
    world.drop_pool("p")
    world.pool("q", "192.0.2.1/32")
    assert refused(world.add("t/b", pools="q")) is Code.POOL_EXHAUSTED
    world.wait(5)
    assert granted(world.add("t/b", pools="q")) == "192.0.2.1"


def test_two_sets_of_one_add_do_not_take_the_same_cooled_address() -> None:
    world = pool_of(end="192.0.2.2")
    world.pool("q", "192.0.2.0/30", allow_overlap=True)
    for name in ("a", "b"):
        world.add(f"t/{name}", name)
    for name in ("a", "b"):
        world.delete(name)
    assert texts(world.add("t/n", pools="p q")) == ["192.0.2.1", "192.0.2.2"]


def test_nor_does_the_own_one_go_twice() -> None:
    world = pool_of(end="192.0.2.1")
    world.pool("q", "192.0.2.0/29", allow_overlap=True, cooldown_s=60)
    world.add("t/a", "c1", pools="q")
    world.delete("c1")
    assert texts(world.add("t/a", "c2", pools="p q")) == ["192.0.2.1", "192.0.2.2"]
