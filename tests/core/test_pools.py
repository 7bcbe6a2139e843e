"""Making, changing and deleting pools: nobody who holds an address loses it because a definition changed."""

from __future__ import annotations

import pytest

from ipamd.core.commands import CreatePool, ReplacePool
from ipamd.core.model import Cursor, EventKind, Range, Strategy
from ipamd.core.outcomes import Code, Outcome, PoolDropped, PoolStored, Refused
from ipamd.core.values import replace
from tests.core.world import ORIGIN, World, definition, granted, range_of, refused, texts


@pytest.fixture
def world() -> World:
    made = World()
    made.pool("p", range_of("192.0.2.0/28", gateway="192.0.2.14"))
    return made


def stranded(outcome: Outcome) -> list[str]:
    assert isinstance(outcome, PoolStored | PoolDropped | Refused)
    return [f"{one.pod_ref} {one.ifname} {one.address}" for one in outcome.stranded]


def fill(world: World, number: int, prefix: str = "t/a") -> list[str]:
    return [granted(world.add(f"{prefix}{at}")) for at in range(number)]


def test_an_equal_pool_is_no_error_and_a_different_one_is(world: World) -> None:
    again = world.pool("p", range_of("192.0.2.0/28", gateway="192.0.2.14"))
    assert isinstance(again, PoolStored)
    assert not again.created
    assert refused(world.pool("p", range_of("192.0.2.0/28", gateway="192.0.2.13"))) is Code.POOL_EXISTS
    assert refused(world.pool("p", range_of("192.0.2.0/28", gateway="192.0.2.14"), space="blue")) is Code.POOL_EXISTS
    assert [event.kind for event in world.events()] == [EventKind.POOL_CREATED]


def test_what_is_left_open_equals_what_the_settings_say() -> None:
    world = World()
    world.settings(cooldown_s=9, reclaim="after:60")
    made = world.pool("p", "192.0.2.0/28", cooldown_s=None)
    assert isinstance(made, PoolStored)
    assert (made.created, made.cooldown_s, made.reclaim) == (True, 9, "after:60")
    again = world.pool("p", "192.0.2.0/28", cooldown_s=9, reclaim="after:60")
    assert isinstance(again, PoolStored)
    assert not again.created


def test_a_pool_made_on_first_use_can_be_declared_as_it_is(world: World) -> None:
    inline = replace(definition("i", "198.51.100.0/24", cooldown_s=0), inline=True)
    world.run(CreatePool(ORIGIN, inline))
    again = world.pool("i", "198.51.100.0/24")
    assert isinstance(again, PoolStored)
    assert not again.created


@pytest.mark.parametrize(
    ("subnet", "clash"),
    [
        ("192.0.2.0/28", True),
        ("192.0.2.8/29", True),
        ("192.0.0.0/16", True),
        ("192.0.2.16/28", False),
        ("192.0.2.14/32", False),
        ("2001:db8::/64", False),
    ],
)
def test_what_overlaps_in_its_space_is_refused_unless_allowed(world: World, subnet: str, clash: bool) -> None:
    outcome = world.pool("q", subnet)
    if clash:
        assert refused(outcome) is Code.POOL_OVERLAPS
        assert isinstance(outcome, Refused)
        assert "overlaps pool p in 192.0.2." in outcome.detail
    assert isinstance(world.pool("r", subnet, space="blue"), PoolStored)
    assert isinstance(world.pool("s", subnet, allow_overlap=True), PoolStored)
    inline = replace(definition("t", subnet), inline=True)
    assert isinstance(world.run(CreatePool(ORIGIN, inline)), PoolStored)


def test_excluded_addresses_do_not_overlap(world: World) -> None:
    assert isinstance(world.pool("q", range_of("192.0.2.0/24", exclude=("192.0.2.0/28",))), PoolStored)


def test_overlapping_pools_never_hand_out_the_same_address(world: World) -> None:
    world.pool("q", "192.0.2.0/24", allow_overlap=True)
    assert fill(world, 3) == ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    assert granted(world.add("t/q", pools="q")) == "192.0.2.4"
    assert granted(world.add("t/p")) == "192.0.2.5"


def test_excluding_addresses_in_use_leaves_them_to_their_holders(world: World) -> None:
    fill(world, 4)
    outcome = world.replace("p", range_of("192.0.2.0/28", exclude=("192.0.2.2-192.0.2.6",)))
    assert stranded(outcome) == [f"t/a{number - 1} eth0 192.0.2.{number}" for number in (2, 3, 4)]
    assert granted(world.add("t/e")) == "192.0.2.7"
    assert granted(world.add("t/a1", "again")) == "192.0.2.2"
    world.delete("again")
    assert granted(world.add("t/h")) == "192.0.2.8"
    world.replace("p", "192.0.2.0/28")
    assert granted(world.add("t/i")) == "192.0.2.2"
    assert granted(world.add("t/j")) == "192.0.2.5"


def test_a_holder_outside_every_subnet_needs_force_and_keeps_its_address(world: World) -> None:
    fill(world, 2)
    outcome = world.replace("p", "198.51.100.0/24")
    assert refused(outcome) is Code.POOL_IN_USE
    assert stranded(outcome) == ["t/a0 eth0 192.0.2.1", "t/a1 eth0 192.0.2.2"]
    assert granted(world.add("t/b")) == "192.0.2.3"
    forced = world.replace("p", "198.51.100.0/24", force=True)
    assert len(stranded(forced)) == 3
    again = world.add("t/a0", "again")
    assert texts(again) == ["192.0.2.1"]
    world.delete("again")
    assert granted(world.add("t/a0", "once more")) == "198.51.100.1"


def test_a_replacement_by_the_same_changes_nothing(world: World) -> None:
    fill(world, 1)
    events = len(world.events())
    outcome = world.replace("p", range_of("192.0.2.0/28", gateway="192.0.2.14"))
    assert isinstance(outcome, PoolStored)
    assert not outcome.created
    assert len(world.events()) == events


def test_a_replacement_still_tells_who_is_stranded(world: World) -> None:
    fill(world, 2)
    narrow = range_of("192.0.2.0/28", "192.0.2.2")
    for _ in range(2):
        assert stranded(world.replace("p", narrow)) == ["t/a0 eth0 192.0.2.1"]
    assert stranded(world.replace("p", narrow, hold_s=5)) == ["t/a0 eth0 192.0.2.1"]


def test_a_pool_does_not_change_its_space_and_must_be_there(world: World) -> None:
    assert refused(world.replace("p", "192.0.2.0/28", space="blue")) is Code.INVALID_REQUEST
    assert refused(world.replace("nosuch", "192.0.2.0/28")) is Code.POOL_NOT_FOUND


def test_a_replacement_must_not_come_to_overlap(world: World) -> None:
    world.pool("q", "192.0.2.16/28")
    assert refused(world.replace("q", "192.0.2.0/27")) is Code.POOL_OVERLAPS
    assert isinstance(world.replace("q", "192.0.2.0/27", allow_overlap=True), PoolStored)
    assert refused(world.replace("q", "192.0.2.0/27", allow_overlap=False)) is Code.POOL_OVERLAPS


def test_other_things_of_a_pool_can_change_while_an_inline_one_overlaps(world: World) -> None:
    inline = replace(definition("i", "192.0.2.0/24", cooldown_s=0), inline=True)
    world.run(CreatePool(ORIGIN, inline))
    same = range_of("192.0.2.0/28", gateway="192.0.2.14")
    assert isinstance(world.replace("p", same, hold_s=60), PoolStored)
    assert isinstance(world.replace("p", "192.0.2.0/29"), PoolStored)
    assert refused(world.replace("p", "192.0.2.0/27")) is Code.POOL_OVERLAPS
    changed = world.run(ReplacePool(ORIGIN, definition("i", "192.0.2.0/24", hold_s=60)))
    assert isinstance(changed, PoolStored)
    assert changed.pool.definition.inline


def test_addresses_follow_their_subnet_into_another_set() -> None:
    world = World()
    world.pool("p", "192.0.2.0/28", "2001:db8::/64")
    assert texts(world.add("t/a", "c1")) == ["192.0.2.1", "2001:db8::1"]
    world.replace("p", "2001:db8::/64", "192.0.2.0/28")
    assert texts(world.add("t/a", "c2")) == ["2001:db8::1", "192.0.2.1"]
    world.replace("p", "192.0.2.0/24", force=True)
    outcome = world.add("t/a", "c3")
    assert texts(outcome) == ["192.0.2.1"]
    assert sorted(world.holders()) == ["192.0.2.1", "2001:db8::1"]
    world.delete("c3")
    assert world.occupied() == []


def test_a_stranded_address_makes_room_for_one_of_its_set() -> None:
    world = World()
    world.pool("p", "192.0.2.0/28", "198.51.100.0/28")
    world.add("t/a", "c1")
    world.replace("p", "198.51.100.0/28", "203.0.113.0/28", force=True)
    assert texts(world.add("t/a", "c2")) == ["198.51.100.1", "203.0.113.1"]
    assert sorted(world.holders()) == ["192.0.2.1", "198.51.100.1", "203.0.113.1"]


def test_the_prefix_of_a_result_is_that_of_the_new_subnet(world: World) -> None:
    fill(world, 1)
    world.replace("p", "192.0.2.0/24")
    (assigned,) = world.state.assigned(world.bound("t/a0").id)
    assert assigned.prefix == 24


def test_a_full_pool_can_be_made_larger() -> None:
    world = World()
    world.pool("p", range_of("192.0.2.0/28", end="192.0.2.2"))
    fill(world, 2)
    assert refused(world.add("t/b")) is Code.POOL_EXHAUSTED
    world.replace("p", range_of("192.0.2.0/28", end="192.0.2.5"))
    assert granted(world.add("t/b")) == "192.0.2.3"


@pytest.mark.parametrize("one", [range_of("192.0.2.0/29"), range_of("198.51.100.0/24")])
def test_a_changed_pool_forgets_where_round_robin_was(one: Range) -> None:
    world = World()
    world.pool("p", (one, range_of("203.0.113.0/29")), strategy=Strategy.ROUND_ROBIN)
    world.add("t/a", "c1", ips=("203.0.113.3",))
    world.delete("c1")
    world.replace("p", one, strategy=Strategy.ROUND_ROBIN)
    assert world.state.all(Cursor) == []
    world.add("t/b")
    world.replace("p", one, strategy=Strategy.ROUND_ROBIN, hold_s=5)
    assert len(world.state.all(Cursor)) == 1


def test_the_refusal_to_delete_a_pool_counts_its_pods(world: World) -> None:
    for pod, ifname in (("t/a", "eth0"), ("t/a", "eth1"), ("t/b", "eth0")):
        world.add(pod, f"c{pod[-1]}", ifname=ifname)
    outcome = world.drop_pool("p")
    assert isinstance(outcome, Refused)
    assert outcome.detail == "pool p is in use by t/a and 1 other pod; force frees its addresses"
    world.add("t/c", "cc")
    outcome = world.drop_pool("p")
    assert isinstance(outcome, Refused)
    assert "by t/a and 2 other pods;" in outcome.detail


def test_a_pool_in_use_is_deleted_by_force_alone(world: World) -> None:
    world.add("t/a", "c1")
    outcome = world.drop_pool("p")
    assert refused(outcome) is Code.POOL_IN_USE
    assert stranded(outcome) == ["t/a eth0 192.0.2.1"]
    assert isinstance(outcome, Refused)
    assert outcome.detail == "pool p is in use by t/a; force frees its addresses"
    assert stranded(world.drop_pool("p", force=True)) == ["t/a eth0 192.0.2.1"]
    assert world.state.pool("p") is None
    assert world.occupied() == []
    kinds = [event.kind for event in world.events()]
    assert kinds[-2:] == [EventKind.RELEASED, EventKind.POOL_DELETED]
    assert world.state.all(Cursor) == []
    assert refused(world.add("t/a", "c2")) is Code.POOL_NOT_FOUND


def test_an_empty_pool_is_deleted_and_made_again(world: World) -> None:
    world.add("t/a", "c1")
    world.delete("c1")
    assert stranded(world.drop_pool("p")) == []
    assert refused(world.drop_pool("p")) is Code.POOL_NOT_FOUND
    made = world.pool("p", "192.0.2.0/28")
    assert isinstance(made, PoolStored)
    assert made.created


def test_held_and_pinned_reservations_are_in_use_too(world: World) -> None:
    world.reserve("t/a", pin=True)
    assert refused(world.drop_pool("p")) is Code.POOL_IN_USE
    world.drop_pool("p", force=True)
    assert world.occupied() == []


def test_a_round_robin_pool_takes_its_cursors_with_it() -> None:
    world = World()
    world.pool("p", "192.0.2.0/28", "2001:db8::/64", strategy=Strategy.ROUND_ROBIN)
    world.add("t/a", "c1")
    world.drop_pool("p", force=True)
    assert world.state.all(Cursor) == []
