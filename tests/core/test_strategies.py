"""Which of the free addresses is chosen: lowest, round-robin, random; ranges that are alternatives; both families."""

from __future__ import annotations

import pytest

from ipamd.core.model import Cursor, Strategy
from ipamd.core.outcomes import Code
from tests.core.world import World, granted, range_of, refused, texts

ALTERNATIVES = (
    range_of("192.0.2.0/24", "192.0.2.10", "192.0.2.11"),
    range_of("192.0.2.0/24", "192.0.2.140", "192.0.2.141"),
    range_of("198.51.100.0/24", "198.51.100.250", "198.51.100.250"),
)
EVERY_ONE = ["192.0.2.10", "192.0.2.11", "192.0.2.140", "192.0.2.141", "198.51.100.250"]


def world_of(strategy: Strategy = Strategy.LOWEST, *sets: object) -> World:
    world = World()
    world.pool("p", *(sets or (ALTERNATIVES,)), strategy=strategy)  # type: ignore[arg-type]
    return world


def fill(world: World, number: int, prefix: str = "t/a") -> list[str]:
    return [granted(world.add(f"{prefix}{at}")) for at in range(number)]


def test_the_lowest_of_the_first_range_that_has_one() -> None:
    world = world_of()
    assert fill(world, 5) == EVERY_ONE
    assert refused(world.add("t/late")) is Code.POOL_EXHAUSTED
    world.delete("t/a1")
    world.delete("t/a3")
    assert fill(world, 2, "t/b") == ["192.0.2.11", "192.0.2.141"]


@pytest.mark.parametrize("strategy", list(Strategy))
def test_every_strategy_hands_out_each_address_once_and_then_is_full(strategy: Strategy) -> None:
    world = world_of(strategy)
    assert sorted(fill(world, 5)) == EVERY_ONE
    assert refused(world.add("t/late")) is Code.POOL_EXHAUSTED


@pytest.mark.parametrize("strategy", list(Strategy))
def test_gateway_excludes_network_and_broadcast_are_never_handed_out(strategy: Strategy) -> None:
    whole = range_of("192.0.2.0/28", exclude=("192.0.2.3-192.0.2.6", "192.0.2.5/32"), gateway="192.0.2.14")
    world = world_of(strategy, whole)
    expected = {1, 2, 7, 8, 9, 10, 11, 12, 13}
    assert set(fill(world, len(expected))) == {f"192.0.2.{number}" for number in expected}
    assert refused(world.add("t/late")) is Code.POOL_EXHAUSTED


def test_round_robin_goes_on_after_the_last_one_and_wraps() -> None:
    world = world_of(Strategy.ROUND_ROBIN)
    given = []
    for number in range(7):
        given.append(granted(world.add("t/a", f"c{number}")))
        world.delete(f"c{number}")
    assert given == [*EVERY_ONE, *EVERY_ONE[:2]]


def test_round_robin_passes_over_what_is_taken() -> None:
    world = world_of(Strategy.ROUND_ROBIN, range_of("192.0.2.0/29", gateway="192.0.2.1"))
    world.add("t/a", "c1")
    world.delete("c1")
    assert fill(world, 4, "t/b") == ["192.0.2.3", "192.0.2.4", "192.0.2.5", "192.0.2.6"]
    assert granted(world.add("t/c")) == "192.0.2.2"
    assert refused(world.add("t/d")) is Code.POOL_EXHAUSTED


def test_round_robin_goes_on_after_what_was_asked_for_by_name() -> None:
    world = world_of(Strategy.ROUND_ROBIN)
    world.add("t/a", ips=("192.0.2.140",))
    assert fill(world, 4, "t/b") == ["192.0.2.141", "198.51.100.250", "192.0.2.10", "192.0.2.11"]


def test_each_set_has_its_own_cursor() -> None:
    world = world_of(Strategy.ROUND_ROBIN, "192.0.2.0/29", "2001:db8::/125")
    world.add("t/a", ips=("192.0.2.4",))
    assert texts(world.add("t/b")) == ["192.0.2.5", "2001:db8::2"]
    assert [str(cursor.address) for cursor in world.state.all(Cursor)] == ["192.0.2.5", "2001:db8::2"]


def test_random_depends_on_the_log_alone() -> None:
    orders = [fill(world_of(Strategy.RANDOM, "10.0.0.0/16"), 8) for _ in range(2)]
    assert orders[0] == orders[1]
    assert orders[0] != sorted(orders[0])
    assert len(set(orders[0])) == 8


def test_random_reaches_every_range_by_its_size() -> None:
    small, large = range_of("192.0.2.0/30"), range_of("198.51.100.0/24")
    given = fill(world_of(Strategy.RANDOM, (small, large)), 40)
    share = sum(address.startswith("192.0.2.") for address in given)
    assert share < 10


def test_random_in_an_ipv6_prefix_is_exact() -> None:
    world = world_of(Strategy.RANDOM, "2001:db8::/64")
    given = fill(world, 8)
    assert len(set(given)) == 8
    assert all(address.startswith("2001:db8::") for address in given)


def test_each_family_gets_one_in_the_order_of_the_sets() -> None:
    world = world_of(Strategy.LOWEST, "2001:db8::/126", range_of("192.0.2.0/24", gateway="192.0.2.1"))
    assert texts(world.add("t/a")) == ["2001:db8::1", "192.0.2.2"]
    assert texts(world.add("t/b")) == ["2001:db8::2", "192.0.2.3"]
    assert texts(world.add("t/c")) == ["2001:db8::3", "192.0.2.4"]
    assert refused(world.add("t/d")) is Code.POOL_EXHAUSTED
    assert len(world.holders()) == 6


@pytest.mark.parametrize(
    ("subnet", "all_of_it"),
    [
        ("192.0.2.6/31", ["192.0.2.6", "192.0.2.7"]),
        ("192.0.2.7/32", ["192.0.2.7"]),
        ("192.0.2.4/30", ["192.0.2.5", "192.0.2.6"]),
        ("2001:db8::/127", ["2001:db8::", "2001:db8::1"]),
        ("2001:db8::5/128", ["2001:db8::5"]),
    ],
)
def test_the_smallest_subnets(subnet: str, all_of_it: list[str]) -> None:
    world = world_of(Strategy.LOWEST, subnet)
    assert fill(world, len(all_of_it)) == all_of_it
    assert refused(world.add("t/late")) is Code.POOL_EXHAUSTED
