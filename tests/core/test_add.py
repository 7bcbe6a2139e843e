"""The ADD: the same pod keeps its addresses, one interface has its own, several pools are all or nothing."""

from __future__ import annotations

import pytest

from ipamd.core.addresses import parse_address, parse_network
from ipamd.core.commands import Add, CallStart, Expire, Origin, PoolRequest
from ipamd.core.decide import decide
from ipamd.core.model import OLDEST, AttachmentState, Dns, EventKind, Owner, Route, Start
from ipamd.core.outcomes import Code, Granted, Refused
from ipamd.core.values import replace
from tests.core.world import ORIGIN, World, addresses, definition, granted, range_of, refused, texts


@pytest.fixture
def world() -> World:
    made = World()
    made.pool("p", "192.0.2.0/29")
    return made


def test_the_lowest_addresses_go_first_and_then_the_pool_is_full(world: World) -> None:
    given = [granted(world.add(f"t/a{number}")) for number in range(6)]
    assert given == [f"192.0.2.{number}" for number in range(1, 7)]
    outcome = world.add("t/late")
    assert outcome == Refused(Code.POOL_EXHAUSTED, "pool p has no free address", "p", 0, request=0)


def test_a_pod_keeps_its_address_whatever_container_carries_it(world: World) -> None:
    first = granted(world.add("t/a", "c1"))
    world.add("t/b")
    generation = world.bound("t/a").generation
    assert granted(world.add("t/a", "c2")) == first
    assert granted(world.add("t/a", "c3", node="n2", net="other")) == first
    mine = world.bound("t/a")
    assert mine.owner == Owner("c3", "n2", "other")
    assert mine.generation == generation + 2


def test_a_pod_that_comes_back_is_answered_from_a_full_pool(world: World) -> None:
    for number in range(6):
        world.add(f"t/a{number}")
    assert granted(world.add("t/a3", "again")) == "192.0.2.4"
    assert len(world.holders()) == 6


def test_two_interfaces_have_two_addresses(world: World) -> None:
    one, two = granted(world.add("t/a", ifname="net1")), granted(world.add("t/a", ifname="net2"))
    assert one != two
    assert granted(world.add("t/a", "c2", ifname="net2")) == two
    assert granted(world.add("t/a", "c2", ifname="net1")) == one


def test_an_unknown_pool_keeps_nothing_in_the_known_one(world: World) -> None:
    assert refused(world.add("t/a", pools="p nosuch")) is Code.POOL_NOT_FOUND
    assert world.holders() == {}
    assert world.state.node("n1") is None


def test_a_full_pool_keeps_nothing_in_the_other(world: World) -> None:
    world.pool("q", "2001:db8::1/128")
    world.add("t/other", pools="q")
    outcome = world.add("t/a", pools="p q")
    assert isinstance(outcome, Refused)
    assert (outcome.code, outcome.pool, outcome.position) == (Code.POOL_EXHAUSTED, "q", 0)
    assert world.holders("p") == {}
    assert world.reservation("t/a") is None


def test_several_pools_are_granted_in_the_order_asked_for(world: World) -> None:
    world.pool("q", "198.51.100.0/29", space="blue")
    outcome = world.add("t/a", pools="q p")
    assert texts(outcome) == ["198.51.100.1", "192.0.2.1"]
    assert isinstance(outcome, Granted)
    assert [(grant.pool, grant.space) for grant in outcome.grants] == [("q", "blue"), ("p", "default")]
    assert outcome.created
    again = world.add("t/a", "c2", pools="q p")
    assert texts(again) == texts(outcome)
    assert isinstance(again, Granted)
    assert not again.created


def test_one_pool_asked_for_twice_is_refused(world: World) -> None:
    assert refused(world.add("t/a", pools="p p")) is Code.INVALID_REQUEST
    assert world.holders() == {}


def test_an_add_without_any_pool_is_refused() -> None:
    command = Add(ORIGIN, (), "t/a", "eth0", Owner("c1", "n1"), addresses=addresses("192.0.2.1"))
    assert refused(World().run(command)) is Code.INVALID_REQUEST


def test_an_outer_entry_that_came_later_is_added(world: World) -> None:
    world.add("t/a", "c1")
    world.replace("p", "192.0.2.0/29", "2001:db8::/64")
    assert texts(world.add("t/a", "c2")) == ["192.0.2.1", "2001:db8::1"]
    assert texts(world.add("t/a", "c3")) == ["192.0.2.1", "2001:db8::1"]


def test_an_outer_entry_without_room_refuses_the_whole_add(world: World) -> None:
    world.add("t/a", "c1")
    world.replace("p", "192.0.2.0/29", range_of("2001:db8::/127", exclude=("2001:db8::/127",)))
    assert refused(world.add("t/a", "c2")) is Code.POOL_EXHAUSTED
    assert world.bound("t/a").owner == Owner("c1", "n1", "k")


def test_overlapping_pools_of_one_space_give_one_add_two_addresses(world: World) -> None:
    world.pool("q", "192.0.2.0/28", allow_overlap=True)
    assert texts(world.add("t/a", pools="p q")) == ["192.0.2.1", "192.0.2.2"]
    assert texts(world.add("t/b", pools="q p")) == ["192.0.2.3", "192.0.2.4"]


def test_the_same_subnet_in_two_spaces_gives_the_same_address_twice(world: World) -> None:
    world.pool("q", "192.0.2.0/29", space="blue")
    assert texts(world.add("t/a", pools="p q")) == ["192.0.2.1", "192.0.2.1"]


def test_the_grant_tells_prefix_gateway_routes_and_dns() -> None:
    world = World()
    default4, default6 = Route(parse_network("0.0.0.0/0")), Route(parse_network("::/0"))
    plain = Route(parse_network("198.51.100.0/24"))
    via = Route(parse_network("10.0.0.0/8"), parse_address("192.0.2.9"))
    world.pool(
        "p",
        range_of("192.0.2.0/24", gateway="192.0.2.1"),
        range_of("2001:db8::/64", gateway="fe80::1"),
        routes=(default4, plain, via, default6),
        dns=Dns(("192.0.2.53",)),
    )
    outcome = world.add("t/a")
    assert isinstance(outcome, Granted)
    (grant,) = outcome.grants
    assert [(str(one.address), one.prefix, str(one.gateway)) for one in grant.addresses] == [
        ("192.0.2.2", 24, "192.0.2.1"),
        ("2001:db8::1", 64, "fe80::1"),
    ]
    gateways = [None if route.gw is None else str(route.gw) for route in grant.routes]
    assert gateways == ["192.0.2.1", None, "192.0.2.9", "fe80::1"]
    assert grant.dns == Dns(("192.0.2.53",))


def test_without_a_gateway_a_default_route_stays_on_link() -> None:
    world = World()
    world.pool("p", "192.0.2.0/24", routes=(Route(parse_network("0.0.0.0/0")),))
    outcome = world.add("t/a")
    assert isinstance(outcome, Granted)
    assert outcome.grants[0].addresses[0].gateway is None
    assert outcome.grants[0].routes == (Route(parse_network("0.0.0.0/0")),)


def test_the_grant_lists_all_attachments_of_the_reservation(world: World) -> None:
    world.add("t/a", ifname="net1")
    outcome = world.add("t/a", ifname="eth0")
    assert isinstance(outcome, Granted)
    (grant,) = outcome.grants
    assert [one.attachment.ifname for one in grant.held] == ["eth0", "net1"]
    assert [str(held.addresses[0].address) for held in grant.held] == ["192.0.2.2", "192.0.2.1"]
    assert grant.reservation == world.reservation("t/a")


def test_events_tell_bound_rebound_and_moved(world: World) -> None:
    world.add("t/a", "c1")
    world.add("t/a", "c1")
    world.add("t/a", "c2")
    world.add("t/a", "c3", node="n2")
    told = [(event.kind, event.node, event.detail) for event in world.events() if event.address]
    assert told == [
        (EventKind.BOUND, "n1", ""),
        (EventKind.REBOUND, "n1", "from container c1"),
        (EventKind.MOVED, "n2", "from node n1 container c2"),
    ]


def test_a_binding_whose_node_was_not_known_has_not_moved(world: World) -> None:
    world.run(Add(ORIGIN, (PoolRequest("p"),), "t/a", "eth0", Owner("c1")))
    world.add("t/a", "c1")
    assert world.bound("t/a").owner == Owner("c1", "n1", "k")
    assert [event.kind for event in world.events() if event.address] == [EventKind.BOUND, EventKind.REBOUND]


def test_since_tells_when_the_container_got_it(world: World) -> None:
    world.add("t/a", "c1")
    since = world.bound("t/a").since_ms
    world.wait(5)
    world.add("t/a", "c1")
    assert world.bound("t/a").since_ms == since
    world.add("t/a", "c2")
    assert world.bound("t/a").since_ms == since + 5000


def test_a_call_binds_with_its_start_and_one_without_is_the_oldest(world: World) -> None:
    world.add("t/a", at=77)
    assert world.bound("t/a").start == Start(1, 77)
    world.run(Add(ORIGIN, (PoolRequest("p"),), "t/a", "eth0", Owner("c9", "n1")))
    assert world.bound("t/a").start == OLDEST
    assert world.bound("t/a").state is AttachmentState.BOUND


def test_a_reservation_remembers_eight_uids_and_refuses_an_earlier_one(world: World) -> None:
    for number in range(10):
        world.add("t/a", f"c{number}", uid=f"u{number}")
    reservation = world.reservation("t/a")
    assert reservation is not None
    assert reservation.pod_uids == tuple(f"u{number}" for number in range(2, 10))
    assert reservation.pod_uid == "u9"
    assert refused(world.add("t/a", "late", uid="u8")) is Code.LATE
    assert granted(world.add("t/a", "again", uid="u9")) == "192.0.2.1"
    assert granted(world.add("t/a", "plain")) == "192.0.2.1"


def test_a_note_stays_until_another_one_comes(world: World) -> None:
    command = Add(ORIGIN, (PoolRequest("p"),), "t/a", "eth0", None, note="for the printer")
    world.run(command)
    world.run(replace(command, note=""))
    reservation = world.reservation("t/a")
    assert reservation is not None
    assert reservation.note == "for the printer"


def test_a_node_is_known_from_its_first_call_on(world: World) -> None:
    world.add("t/a", node="n7")
    world.delete("c9", node="n8")
    world.add("t/b", node="n9", boot="never-seen", spooled=True)
    assert [world.state.node(name) is not None for name in ("n7", "n8", "n9")] == [True, True, True]


def test_a_decision_changes_nothing_by_itself(world: World) -> None:
    owner, call = Owner("c1", "n1", "k"), CallStart("b1", 1)
    command = Add(ORIGIN, (PoolRequest("p"),), "t/a", "eth0", owner, call)
    first, second = (decide(world.state, command, world.stamp) for _ in range(2))
    assert first == second
    assert world.holders() == {}


def test_an_equal_pool_needs_no_name_of_a_node(world: World) -> None:
    assert granted(world.run(Add(ORIGIN, (PoolRequest("p"),), "t/a", "eth0", Owner("c1")))) == "192.0.2.1"
    assert world.bound("t/a").owner == Owner("c1")


def test_who_asked_is_kept_with_the_event(world: World) -> None:
    origin = Origin("token:ops", "r-9")
    world.run(Add(origin, (PoolRequest("p"),), "t/a", "eth0", Owner("c1", "n1")))
    event = world.events()[-1]
    assert (event.by, event.request_id, event.at_ms) == ("token:ops", "r-9", world.stamp.wall_ms)
    assert (event.space, event.pool, event.pod_ref, event.ifname) == ("default", "p", "t/a", "eth0")
    world.run(Expire(ORIGIN))
    assert world.events()[-1] == event


def test_a_range_that_is_wholly_excluded_is_full() -> None:
    world = World()
    world.pool("p", range_of("192.0.2.0/29", exclude=("192.0.2.0/29",)))
    assert refused(world.add("t/a")) is Code.POOL_EXHAUSTED


def test_a_pool_is_made_in_the_words_of_its_definition() -> None:
    made = definition("p", "192.0.2.0/29", (range_of("10.0.0.0/30"), range_of("10.0.0.4/30")))
    assert [len(ranges) for ranges in made.sets] == [1, 2]
