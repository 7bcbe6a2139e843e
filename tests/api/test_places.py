"""Who gets a connection: strangers make room for each other, and nobody else has to."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from ipamd.api.places import Limits, Places, address_of, network_of

LIMITS = Limits(connections=10, strangers=4, share=6, patience_s=0.5)


@dataclass(eq=False)
class Visitor:
    """A connection without a socket."""

    address: str | None
    came_s: float = 0.0
    is_busy: bool = False
    told: list[str] = field(default_factory=list)

    def turn_away(self, why: str) -> None:
        self.told.append(why)


def enter(places: Places, *visitors: Visitor) -> list[bool]:
    return [places.enter(visitor) for visitor in visitors]


def test_there_are_so_many_places_and_they_come_back() -> None:
    places = Places(LIMITS)
    known = [Visitor("a") for _ in range(10)]
    assert all(enter(places, *known))
    for number, visitor in enumerate(known):
        places.know(visitor, f"token {number % 2}")
    late = Visitor("b", came_s=100.0)
    assert not places.enter(late), "who is known is not turned away for a stranger"
    places.leave(known[3])
    assert places.enter(late)


def test_a_caller_that_has_more_than_its_share_makes_room() -> None:
    places = Places(LIMITS)
    greedy = [Visitor("a", is_busy=number != 2) for number in range(8)]
    others = [Visitor("b") for _ in range(2)]
    enter(places, *greedy, *others)
    for visitor in greedy:
        places.know(visitor, "greedy")
    for visitor in others:
        places.know(visitor, "other")
    assert enter(places, *(Visitor("c") for _ in range(3))) == [True, True, False]
    assert [bool(visitor.told) for visitor in greedy] == [number in {0, 2} for number in range(8)]
    assert not any(visitor.told for visitor in others)


def test_a_connection_counts_for_the_caller_that_used_it_last() -> None:
    places = Places(LIMITS)
    visitors = [Visitor("a") for _ in range(10)]
    enter(places, *visitors)
    for number, visitor in enumerate(visitors):
        places.know(visitor, "first")
        places.know(visitor, f"token {number % 2}")
    assert not places.enter(Visitor("b", came_s=9.0))
    for visitor in visitors:
        places.leave(visitor)
        places.know(visitor, "gone")
    assert enter(places, *(Visitor("b") for _ in range(10))) == [True] * 10


def test_the_oldest_silent_stranger_makes_room() -> None:
    places = Places(LIMITS)
    busy, *silent = [Visitor("a", is_busy=at == 0) for at in range(6)]
    enter(places, busy, *silent, *(Visitor("b") for _ in range(4)))
    assert places.enter(Visitor("c"))
    assert silent[0].told
    assert not busy.told


def test_strangers_within_their_number_are_safe_for_a_moment() -> None:
    places = Places(LIMITS)
    first = [Visitor(str(at // 2)) for at in range(10)]
    enter(places, *first)
    assert not places.enter(Visitor("x", came_s=0.4))
    assert places.enter(Visitor("x", came_s=0.6))
    assert [bool(one.told) for one in first].count(True) == 1


def test_only_strangers_beyond_the_number_of_their_address_are_crowded() -> None:
    places = Places(LIMITS)
    visitors = [Visitor("a") for _ in range(5)]
    enter(places, *visitors)
    assert all(places.is_crowded(one) for one in visitors)
    places.know(visitors[0], "token")
    assert not any(places.is_crowded(one) for one in visitors)


def test_the_node_socket_knows_no_strangers() -> None:
    places = Places(LIMITS)
    visitors = [Visitor(None) for _ in range(11)]
    assert enter(places, *visitors) == [True] * 10 + [False]
    assert not any(places.is_crowded(one) for one in visitors)


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_what_one_host_may_have_counts_as_one(host: str, network: str) -> None:
    assert network_of(host) == network


def test_a_unix_socket_has_no_address() -> None:
    assert address_of("") is None
    assert address_of(b"") is None
    assert address_of(("192.0.2.1", 4)) == "192.0.2.1"
