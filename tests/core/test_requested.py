"""Addresses that a caller insists on: each finds its set, is free or the pod's own, or the whole ADD is refused."""

from __future__ import annotations

import pytest

from ipamd.core.outcomes import Code, Outcome, Refused
from tests.core.world import World, granted, range_of, refused, texts


@pytest.fixture
def world() -> World:
    made = World()
    made.pool("p", range_of("10.0.6.0/24", gateway="10.0.6.1", exclude=("10.0.6.16/28",)))
    return made


def detail(outcome: Outcome) -> str:
    assert isinstance(outcome, Refused)
    return outcome.detail


def test_a_free_one_is_given(world: World) -> None:
    assert granted(world.add("t/a", ips=("10.0.6.77",))) == "10.0.6.77"
    assert granted(world.add("t/a", "c2")) == "10.0.6.77"


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("10.0.6.24", "it is excluded"),
        ("10.0.6.1", "it is the gateway"),
        ("10.0.6.0", "it lies outside 10.0.6.1-10.0.6.254"),
        ("10.0.6.255", "it lies outside 10.0.6.1-10.0.6.254"),
        ("10.0.7.1", "10.0.7.1 lies in no subnet of pool p (10.0.6.0/24)"),
        ("2001:db8::1", "2001:db8::1 lies in no subnet of pool p (10.0.6.0/24)"),
    ],
)
def test_what_the_pool_does_not_give_is_refused_with_the_reason(world: World, address: str, why: str) -> None:
    outcome = world.add("t/a", ips=(address,))
    assert refused(outcome) is Code.ADDRESS_NOT_ALLOWED
    assert detail(outcome).endswith(why)
    assert world.holders() == {}


def test_a_taken_one_names_its_holder(world: World) -> None:
    world.add("t/a", ips=("10.0.6.9",), node="n3")
    outcome = world.add("t/b", ips=("10.0.6.9",))
    assert refused(outcome) is Code.ADDRESS_TAKEN
    assert detail(outcome) == "10.0.6.9 of pool p is taken by t/a on node n3"
    assert refused(world.add("t/a", ifname="net1", ips=("10.0.6.9",))) is Code.ADDRESS_TAKEN


def test_the_own_one_is_no_news_and_another_one_is_refused(world: World) -> None:
    world.add("t/a", "c1", ips=("10.0.6.9",))
    assert granted(world.add("t/a", "c2", ips=("10.0.6.9",))) == "10.0.6.9"
    outcome = world.add("t/a", "c3", ips=("10.0.6.10",))
    assert refused(outcome) is Code.ADDRESS_NOT_ALLOWED
    assert "the pod already holds 10.0.6.9" in detail(outcome)
    assert world.bound("t/a").owner is not None
    assert world.bound("t/a").generation == 2


def test_the_own_one_is_given_even_where_the_pool_would_not_any_more(world: World) -> None:
    world.add("t/a", ips=("10.0.6.9",))
    world.replace("p", range_of("10.0.6.0/24", exclude=("10.0.6.9",)))
    world.quarantine("10.0.6.9")
    assert granted(world.add("t/a", "c2", ips=("10.0.6.9",))) == "10.0.6.9"
    world.delete("c2")
    assert refused(world.add("t/a", ips=("10.0.6.9",))) is Code.ADDRESS_NOT_ALLOWED


def test_two_for_one_set_are_refused_and_the_same_one_twice_is_one(world: World) -> None:
    outcome = world.add("t/a", ips=("10.0.6.9", "10.0.6.10"))
    assert refused(outcome) is Code.ADDRESS_NOT_ALLOWED
    assert "not both" in detail(outcome)
    assert granted(world.add("t/a", ips=("10.0.6.9", "10.0.6.9"))) == "10.0.6.9"


def test_each_family_has_its_set() -> None:
    world = World()
    world.pool("p", "2001:db8::/64", "192.0.2.0/24")
    assert texts(world.add("t/a", ips=("192.0.2.9", "2001:db8::9"))) == ["2001:db8::9", "192.0.2.9"]
    assert texts(world.add("t/b", ips=("192.0.2.2",))) == ["2001:db8::1", "192.0.2.2"]


def test_one_that_cannot_be_had_keeps_nothing_of_the_others() -> None:
    world = World()
    world.pool("p", "192.0.2.0/24")
    world.pool("q", "198.51.100.0/24")
    world.add("t/b", pools="q", ips=("198.51.100.9",))
    assert refused(world.add("t/a", pools="p q", ips=("192.0.2.9", "198.51.100.9"))) is Code.ADDRESS_TAKEN
    assert world.holders("p") == {}


@pytest.mark.parametrize("wanted", [("192.0.2.1", "192.0.2.9"), ("192.0.2.9", "192.0.2.1")])
def test_in_overlapping_pools_each_finds_a_set_that_is_open(wanted: tuple[str, str]) -> None:
    """Only the wide pool gives .9, both give .1: whoever is named first, both can be had."""
    world = World()
    world.pool("wide", "192.0.2.0/28")
    world.pool("narrow", "192.0.2.0/29", allow_overlap=True)
    assert texts(world.add("t/a", pools="wide narrow", ips=wanted)) == ["192.0.2.9", "192.0.2.1"]
    assert texts(world.add("t/b", pools="narrow wide", ips=("192.0.2.10", "192.0.2.2"))) == ["192.0.2.2", "192.0.2.10"]


def test_a_set_that_holds_another_address_leaves_it_to_the_next_pool() -> None:
    world = World()
    world.pool("p", "192.0.2.0/28")
    world.pool("q", "192.0.2.0/28", allow_overlap=True)
    world.add("t/a", "c1", pools="p", ips=("192.0.2.5",))
    assert texts(world.add("t/a", "c1", pools="p q", ips=("192.0.2.6",))) == ["192.0.2.5", "192.0.2.6"]


def test_one_in_quarantine_is_refused(world: World) -> None:
    world.quarantine("10.0.6.9")
    outcome = world.add("t/a", ips=("10.0.6.9",))
    assert refused(outcome) is Code.ADDRESS_NOT_ALLOWED
    assert "in quarantine" in detail(outcome)


def test_one_that_cools_can_be_had_once_its_least_time_is_over() -> None:
    world = World()
    world.pool("p", "192.0.2.0/24", cooldown_s=60, cooldown_min_s=5)
    world.add("t/a", "c1", ips=("192.0.2.9",))
    world.delete("c1")
    outcome = world.add("t/b", ips=("192.0.2.9",))
    assert refused(outcome) is Code.ADDRESS_TAKEN
    assert detail(outcome).endswith("cooling for another 5000 ms")
    world.wait(5)
    assert granted(world.add("t/b", ips=("192.0.2.9",))) == "192.0.2.9"


def test_its_former_holder_may_have_it_back_at_once() -> None:
    world = World()
    world.pool("p", "192.0.2.0/24", cooldown_min_s=5)
    world.add("t/a", "c1", ips=("192.0.2.9",))
    world.delete("c1")
    assert granted(world.add("t/a", "c2", ips=("192.0.2.9",))) == "192.0.2.9"
    assert world.occupied() == ["192.0.2.9"]
