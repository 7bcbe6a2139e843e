"""ADDs of pools that are described and not named: which pool is meant, and what the limits leave of it."""

from __future__ import annotations

import pytest

from ipamd.core.addresses import parse_address
from ipamd.core.asked import NOBODY, NOT_MADE, Asked, asked_of
from ipamd.core.commands import Add, CallStart, PoolRequest, decode_command, encode_command
from ipamd.core.inline import InlinePool, Limits, inline_name
from ipamd.core.intervals import normalise
from ipamd.core.model import EventKind, Owner, Pool, Range, Strategy
from ipamd.core.outcomes import Code, Granted, Outcome, Refused
from tests.core.world import ORIGIN, World, addresses, granted, range_of, refused, texts

PLAIN = "192.0.2.0/28"


def inline(*ranges: str | Range, space: str = "default", spare: bool = False) -> PoolRequest:
    """A request for an inline pool."""
    made = [range_of(one) if isinstance(one, str) else one for one in ranges]
    limits = [Limits(one.subnet, one.first, one.last, normalise(one.excludes), one.gateway) for one in made]
    it = InlinePool(space, tuple(limits))
    return PoolRequest(inline_name(space, it.subnets), it, spare)


def ask(world: World, pod: str, *requests: PoolRequest, ifname: str = "eth0", ips: tuple[str, ...] = ()) -> Outcome:
    """The ADD of a pod's container."""
    owner, call = Owner(pod.replace("/", "-"), "n1", "k"), CallStart("b1", world.log_ms)
    return world.run(Add(ORIGIN, requests, pod, ifname, owner, call, addresses=addresses(*ips)))


def names(world: World) -> list[str]:
    return sorted(pool.name for pool in world.state.all(Pool))


@pytest.fixture
def world() -> World:
    made = World()
    made.settings(cooldown_s=0)
    return made


def test_a_pool_is_made_with_its_first_address(world: World) -> None:
    before = world.state.last_event
    assert granted(ask(world, "t/a", inline(PLAIN))) == "192.0.2.1"
    (pool,) = world.state.all(Pool)
    assert (pool.name, pool.definition.inline, pool.created_ms) == ("192.0.2.0-28", True, world.stamp.wall_ms)
    assert [(one.kind, one.pool) for one in world.events(before)] == [
        (EventKind.POOL_CREATED, "192.0.2.0-28"),
        (EventKind.BOUND, "192.0.2.0-28"),
    ]
    assert granted(ask(world, "t/b", inline(PLAIN))) == "192.0.2.2"
    assert names(world) == ["192.0.2.0-28"]


@pytest.mark.parametrize("ips", [(), ("192.0.2.99",)])
def test_a_refused_add_makes_no_pool(world: World, ips: tuple[str, ...]) -> None:
    ask(world, "t/x", inline("192.0.2.16/32"))
    outcome = ask(world, "t/a", inline(PLAIN), inline("192.0.2.16/32"), ips=ips)
    assert refused(outcome) in (Code.POOL_EXHAUSTED, Code.ADDRESS_NOT_ALLOWED)
    assert names(world) == ["192.0.2.16-32"]


def test_a_refusal_says_which_request_found_nothing(world: World) -> None:
    ask(world, "t/x", inline("192.0.2.16/32"))
    outcome = ask(world, "t/a", inline(PLAIN), inline("192.0.2.16/32"))
    assert isinstance(outcome, Refused)
    assert (outcome.pool, outcome.position, outcome.request) == ("192.0.2.16-32", 0, 1)


def test_a_new_pool_sees_what_others_of_its_space_have_given(world: World) -> None:
    world.settings(cooldown_s=60)
    for number in range(3):
        ask(world, f"t/{number}", inline(PLAIN))
    world.delete("t-1")
    world.quarantine("192.0.2.4")
    assert granted(ask(world, "t/a", inline("192.0.2.0/29"))) == "192.0.2.5"
    assert granted(ask(world, "t/b", inline("192.0.2.0/29", space="blue"))) == "192.0.2.1"
    assert granted(ask(world, "t/c", inline("192.0.2.2/32"))) == "192.0.2.2"  # cools, and nothing else is there


def test_two_new_pools_of_one_add_do_not_give_the_same(world: World) -> None:
    both = ask(world, "t/a", inline("192.0.2.0/30"), inline(range_of("192.0.2.0/29", "192.0.2.1")))
    assert texts(both) == ["192.0.2.1", "192.0.2.2"]


def test_one_pool_is_not_asked_for_twice(world: World) -> None:
    halves = inline(range_of(PLAIN, end="192.0.2.4")), inline(range_of(PLAIN, "192.0.2.5"))
    assert refused(ask(world, "t/a", *halves)) is Code.INVALID_REQUEST
    world.pool("p", PLAIN)
    assert refused(ask(world, "t/a", inline(PLAIN), PoolRequest("p"))) is Code.INVALID_REQUEST


def test_limits_are_for_what_is_new(world: World) -> None:
    first = inline(range_of(PLAIN, "192.0.2.5", "192.0.2.6"))
    edited = inline(
        range_of(PLAIN, "192.0.2.9", "192.0.2.12", exclude=("192.0.2.9", "192.0.2.11"), gateway="192.0.2.14")
    )
    assert granted(ask(world, "t/a", first)) == "192.0.2.5"
    kept = ask(world, "t/a", edited)
    assert granted(kept) == "192.0.2.5"
    assert isinstance(kept, Granted)
    assert kept.grants[0].addresses[0].gateway == parse_address("192.0.2.14")
    assert [granted(ask(world, f"t/{number}", edited)) for number in range(2)] == ["192.0.2.10", "192.0.2.12"]
    assert refused(ask(world, "t/z", edited)) is Code.POOL_EXHAUSTED
    assert granted(ask(world, "t/z", first)) == "192.0.2.6"


def test_what_was_given_back_is_given_again_within_the_limits_only(world: World) -> None:
    world.settings(cooldown_s=60)
    ask(world, "t/a", inline(range_of(PLAIN, "192.0.2.5")))
    world.delete("t-a")
    world.wait(1)
    assert granted(ask(world, "t/a", inline(range_of(PLAIN, end="192.0.2.4")))) == "192.0.2.1"
    world.delete("t-a")
    world.wait(1)
    assert granted(ask(world, "t/a", inline(PLAIN))) == "192.0.2.1"


@pytest.mark.parametrize(
    ("ip", "reason"),
    [
        ("192.0.2.3", "it lies outside 192.0.2.4-192.0.2.9"),
        ("192.0.2.5", "it is excluded"),
        ("192.0.2.6", "it is the gateway"),
        ("192.0.2.16", "lies in no subnet of pool 192.0.2.0-28"),
    ],
)
def test_what_is_insisted_on_must_lie_within_the_limits(world: World, ip: str, reason: str) -> None:
    request = inline(range_of(PLAIN, "192.0.2.4", "192.0.2.9", exclude=("192.0.2.5",), gateway="192.0.2.6"))
    outcome = ask(world, "t/a", request, ips=(ip,))
    assert isinstance(outcome, Refused)
    assert (outcome.code, reason in outcome.detail) == (Code.ADDRESS_NOT_ALLOWED, True)


def test_ranges_are_tried_in_the_order_of_the_request(world: World) -> None:
    ranges = [range_of("192.0.2.16/30"), range_of(PLAIN, "192.0.2.13"), range_of(PLAIN, "192.0.2.4", "192.0.2.4")]
    given = [granted(ask(world, f"t/{number}", inline(*ranges))) for number in range(5)]
    assert given == ["192.0.2.17", "192.0.2.18", "192.0.2.13", "192.0.2.14", "192.0.2.4"]
    assert names(world) == ["192.0.2.16-30+192.0.2.0-28"]
    assert granted(ask(world, "t/z", inline(PLAIN, "192.0.2.16/30"))) == "192.0.2.1"
    assert names(world) == ["192.0.2.16-30+192.0.2.0-28"]


# A bridge


def test_the_first_host_is_spared_where_no_gateway_is(world: World) -> None:
    assert granted(ask(world, "t/a", inline(PLAIN, spare=True))) == "192.0.2.2"
    assert granted(ask(world, "t/b", inline(PLAIN))) == "192.0.2.1"
    other = inline(range_of("198.51.100.0/28", gateway="198.51.100.9"), spare=True)
    assert granted(ask(world, "t/c", other)) == "198.51.100.1"
    assert granted(ask(world, "t/d", inline("203.0.113.7/32", spare=True))) == "203.0.113.7"
    assert granted(ask(world, "t/e", inline("2001:db8::/127", spare=True))) == "2001:db8::"
    assert refused(ask(world, "t/f", inline("2001:db8::/127", spare=True))) is Code.POOL_EXHAUSTED


def test_the_first_host_is_spared_in_a_named_pool_too(world: World) -> None:
    world.pool("p", PLAIN, range_of("2001:db8::/64", gateway="fe80::1"))
    assert texts(ask(world, "t/a", PoolRequest("p", spare_first_hosts=True))) == ["192.0.2.2", "2001:db8::1"]
    outcome = ask(world, "t/b", PoolRequest("p", spare_first_hosts=True), ips=("192.0.2.1",))
    assert isinstance(outcome, Refused)
    assert "a bridge takes it" in outcome.detail


# Declared pools


def test_a_declared_pool_of_these_subnets_is_used_with_its_own_bounds(world: World) -> None:
    world.pool("p", range_of(PLAIN, "192.0.2.4", exclude=("192.0.2.5",), gateway="192.0.2.6"))
    request = inline(range_of(PLAIN, end="192.0.2.8"))
    given = [ask(world, f"t/{number}", request) for number in range(3)]
    assert [granted(one) for one in given] == ["192.0.2.4", "192.0.2.7", "192.0.2.8"]
    assert isinstance(given[0], Granted)
    assert (given[0].grants[0].pool, str(given[0].grants[0].addresses[0].gateway)) == ("p", "192.0.2.6")
    assert refused(ask(world, "t/z", request)) is Code.POOL_EXHAUSTED
    assert names(world) == ["p"]


def test_the_gateway_of_the_request_is_told_and_the_pools_own_is_not_given(world: World) -> None:
    world.pool("p", range_of("192.0.2.0/30", gateway="192.0.2.1"))
    request = inline(range_of("192.0.2.0/30", gateway="192.0.2.2"))
    assert refused(ask(world, "t/a", request)) is Code.POOL_EXHAUSTED
    for gateway in ("192.0.2.1", "192.0.2.2"):
        assert refused(ask(world, "t/a", request, ips=(gateway,))) is Code.ADDRESS_NOT_ALLOWED


@pytest.mark.parametrize(
    "sets",
    [
        (PLAIN, "2001:db8::/64"),
        ((range_of(PLAIN), range_of("192.0.2.16/28")),),
        ("192.0.2.0/29",),
    ],
)
def test_a_declared_pool_of_other_subnets_is_not(world: World, sets: tuple[str | tuple[Range, ...], ...]) -> None:
    world.pool("p", *sets)
    ask(world, "t/a", inline(PLAIN))
    assert names(world) == ["192.0.2.0-28", "p"]


def test_a_declared_pool_of_another_space_is_not(world: World) -> None:
    world.pool("p", PLAIN, space="blue")
    ask(world, "t/a", inline(PLAIN))
    assert names(world) == ["192.0.2.0-28", "p"]


def test_a_pod_keeps_to_the_pool_that_it_is_in_and_others_go_to_the_declared_one(world: World) -> None:
    ask(world, "t/a", inline(PLAIN))
    world.pool("z", PLAIN, allow_overlap=True)
    world.pool("p", PLAIN, allow_overlap=True)
    assert granted(ask(world, "t/a", inline(PLAIN))) == "192.0.2.1"
    assert granted(ask(world, "t/b", inline(PLAIN))) == "192.0.2.2"
    assert sorted(world.holders("p")) == ["192.0.2.2"]
    assert sorted(world.holders("192.0.2.0-28")) == ["192.0.2.1"]


@pytest.mark.parametrize("strategy", [Strategy.ROUND_ROBIN, Strategy.RANDOM])
def test_a_declared_pool_keeps_its_strategy_within_the_limits(world: World, strategy: Strategy) -> None:
    world.pool("p", PLAIN, strategy=strategy)
    limited = inline(range_of(PLAIN, "192.0.2.4", "192.0.2.6"), range_of(PLAIN, "192.0.2.9", "192.0.2.10"))
    given = [granted(ask(world, f"t/{number}", limited)) for number in range(5)]
    assert sorted(given) == sorted(["192.0.2.4", "192.0.2.5", "192.0.2.6", "192.0.2.9", "192.0.2.10"])
    assert refused(ask(world, "t/z", limited)) is Code.POOL_EXHAUSTED


def test_round_robin_goes_on_where_the_limits_let_it(world: World) -> None:
    world.pool("p", PLAIN, strategy=Strategy.ROUND_ROBIN)
    low, high = inline(range_of(PLAIN, end="192.0.2.5")), inline(range_of(PLAIN, "192.0.2.9", "192.0.2.11"))
    assert [granted(ask(world, f"t/{number}", low)) for number in range(2)] == ["192.0.2.1", "192.0.2.2"]
    world.delete("t-0")
    assert granted(ask(world, "t/a", high)) == "192.0.2.9"
    assert granted(ask(world, "t/b", low)) == "192.0.2.1"  # nothing of it lies behind 192.0.2.9
    assert granted(ask(world, "t/c", high)) == "192.0.2.10"


# What cannot be


def test_inline_pools_may_be_switched_off(world: World) -> None:
    ask(world, "t/a", inline(PLAIN))
    world.settings(inline_pools=False)
    outcome = ask(world, "t/a", inline(PLAIN))
    assert isinstance(outcome, Refused)
    assert (outcome.code, "inline_pools" in outcome.detail) == (Code.INVALID_REQUEST, True)
    world.pool("p", "198.51.100.0/24")
    assert granted(ask(world, "t/a", PoolRequest("p"))) == "198.51.100.1"


def test_a_name_that_another_pool_has_is_not_taken(world: World) -> None:
    world.pool("192.0.2.0-28", "198.51.100.0/24")
    outcome = ask(world, "t/a", inline(PLAIN))
    assert isinstance(outcome, Refused)
    assert (outcome.code, outcome.pool) == (Code.POOL_EXISTS, "192.0.2.0-28")


def test_an_inline_pool_is_deleted_and_made_again_like_any_other(world: World) -> None:
    ask(world, "t/a", inline(PLAIN))
    first = world.state.pool("192.0.2.0-28")
    world.drop_pool("192.0.2.0-28", force=True)
    assert granted(ask(world, "t/a", inline(PLAIN))) == "192.0.2.1"
    second = world.state.pool("192.0.2.0-28")
    assert first is not None
    assert second is not None
    assert first.id < second.id


# The question alone


def test_a_pool_that_is_not_made_is_told_as_such(world: World) -> None:
    asked = asked_of(world.state, inline(PLAIN), NOBODY)
    assert isinstance(asked, Asked)
    assert (asked.pool.id, asked.is_made, names(world)) == (NOT_MADE, False, [])
    ask(world, "t/a", inline(PLAIN))
    asked = asked_of(world.state, inline(PLAIN), NOBODY)
    assert isinstance(asked, Asked)
    assert asked.is_made


def test_ranges_that_the_limits_leave_empty_are_told_too(world: World) -> None:
    world.pool("p", range_of(PLAIN, "192.0.2.9"))
    asked = asked_of(world.state, inline(range_of(PLAIN, end="192.0.2.5")), NOBODY)
    assert isinstance(asked, Asked)
    ((one,),) = asked.sets
    assert (one.usable, one.first > one.last) == ((), True)
    assert refused(ask(world, "t/a", inline(range_of(PLAIN, end="192.0.2.5")))) is Code.POOL_EXHAUSTED


def test_excludes_are_leapt_over(world: World) -> None:
    holes = tuple(f"2001:db8::{number:x}" for number in range(2, 600, 2))
    request = inline(range_of("2001:db8::/64", exclude=holes))
    given = [granted(ask(world, f"t/{number}", request)) for number in range(3)]
    assert given == ["2001:db8::1", "2001:db8::3", "2001:db8::5"]


def test_a_command_of_before_has_its_requests_by_name() -> None:
    command = Add(ORIGIN, (PoolRequest("p"),), "t/a", "eth0", None)
    data = encode_command(command).replace(b'["p",null,false]', b'["p"]')
    assert data != encode_command(command)
    assert decode_command(data) == command
