"""Owns who may have a connection: how many in all, how many strangers an address, and who has to make room.

A stranger is who has not shown yet that it may do anything. Strangers over the number of their address have half a
second to do so; where there is no place left, the one of them that has been silent for longest gives its own up, and
after them a caller that has more than its share.
"""

from __future__ import annotations

import ipaddress
from typing import Final, NamedTuple, Protocol


class Limits(NamedTuple):
    """What clients may take. Times in seconds."""

    connections: int = 512
    strangers: int = 64
    """Connections of one address that have not yet completed an authorised request."""

    share: int = 64
    """Connections of one caller that nobody takes from it where places are short."""

    patience_s: float = 0.5
    """How long strangers beyond that number may stay, and how long a silent one is safe where places are short."""

    header_s: float = 5.0
    idle_s: float = 60.0
    unread_s: float = 60.0
    """How long an answer waits for a client that does not read it."""


TOO_MANY: Final = "there are too many connections"
TOO_MANY_STRANGERS: Final = "there are too many connections from this address that have shown no token"
TOO_MANY_OF_CALLER: Final = "there are too many connections of this caller, and others need places"
_V6_NETWORK_BITS: Final = 64


class Guest(Protocol):
    """A connection. `address` None: it came over the node socket, and is no stranger."""

    address: str | None
    came_s: float

    @property
    def is_busy(self) -> bool:
        """Whether it has a request under way that may be, or one that nobody has looked at yet."""

    def turn_away(self, why: str) -> None:
        """Tell it why it has to go, and close it."""


class Places:
    """The places of one listener."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._inside: set[Guest] = set()
        self._strangers: dict[str, dict[Guest, None]] = {}
        self._known: dict[str, dict[Guest, None]] = {}
        self._callers: dict[Guest, str] = {}

    def enter(self, guest: Guest) -> bool:
        """Give it a place, if there is one or a stranger can make room."""
        if len(self._inside) >= self._limits.connections and not self._make_room(guest.came_s):
            return False
        self._inside.add(guest)
        if guest.address is not None:
            self._strangers.setdefault(guest.address, {})[guest] = None
        return True

    def leave(self, guest: Guest) -> None:
        """Take its place back."""
        self._inside.discard(guest)
        _drop(self._strangers, guest.address or "", guest)
        _drop(self._known, self._callers.pop(guest, ""), guest)

    def know(self, guest: Guest, caller: str) -> None:
        """It is a stranger no longer: a caller has used it who may do something."""
        if guest not in self._inside or self._callers.get(guest) == caller:
            return
        _drop(self._strangers, guest.address or "", guest)
        _drop(self._known, self._callers.get(guest, ""), guest)
        self._callers[guest] = caller
        self._known.setdefault(caller, {})[guest] = None

    def is_crowded(self, guest: Guest) -> bool:
        """Whether it is one of too many strangers from its address."""
        own = self._strangers.get(guest.address or "", ())
        return guest in own and len(own) > self._limits.strangers

    def _make_room(self, now_s: float) -> bool:
        """Turn somebody away: a stranger, or who has more than its share. Whether there was one."""
        return self._turn_stranger(now_s) or self._turn_greedy()

    def _turn_stranger(self, now_s: float) -> bool:
        """The oldest silent one, of the address that has the most."""
        for own in sorted(self._strangers.values(), key=len, reverse=True):
            silent = next((guest for guest in own if not guest.is_busy), None)
            if silent is None:
                continue
            if len(own) <= self._limits.strangers and now_s - silent.came_s < self._limits.patience_s:
                continue
            self.leave(silent)
            silent.turn_away(TOO_MANY_STRANGERS)
            return True
        return False

    def _turn_greedy(self) -> bool:
        """One of the caller that has the most: one without work if there is one."""
        own = max(self._known.values(), key=len, default={})
        if len(own) <= self._limits.share:
            return False
        one = next((guest for guest in own if not guest.is_busy), next(iter(own)))
        self.leave(one)
        one.turn_away(TOO_MANY_OF_CALLER)
        return True


def _drop(guests: dict[str, dict[Guest, None]], key: str, guest: Guest) -> None:
    own = guests.get(key)
    if own is not None:
        own.pop(guest, None)
        if not own:
            del guests[key]


def network_of(host: str) -> str:
    """What counts as one address: an IPv4 address, and the /64 of an IPv6 address, all of which one host may have."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _V6_NETWORK_BITS), strict=False))


def address_of(peer: object) -> str | None:
    """The network of a socket's other end, as `getpeername` tells it; None: a unix socket."""
    return network_of(str(peer[0])) if isinstance(peer, tuple) and peer else None
