"""Owns what an ADD answers of one pool: each address with its prefix and gateway, the routes, the name service."""

from __future__ import annotations

from collections.abc import Mapping

from ipamd.core.addresses import Address, Network
from ipamd.core.asked import Asked
from ipamd.core.commands import Add
from ipamd.core.model import AssignedAddress, Held, Range, Reservation, Route
from ipamd.core.outcomes import Grant, GrantedAddress

_DEFAULTS = (Network(4, 0, 0), Network(6, 0, 0))


def grant_of(
    command: Add,
    asked: Asked,
    reservation: Reservation,
    addresses: Mapping[int, AssignedAddress],
    held: tuple[Held, ...],
) -> Grant:
    """The grant of one pool: `addresses` are the interface's own by position, `held` all of the reservation."""
    pool = asked.pool
    granted = tuple(_granted(asked, addresses[position]) for position in sorted(addresses))
    return Grant(
        pool.name,
        pool.space,
        command.ifname,
        granted,
        tuple(_route(route, granted) for route in pool.definition.routes),
        pool.definition.dns,
        reservation,
        held,
    )


def _granted(asked: Asked, assigned: AssignedAddress) -> GrantedAddress:
    one = _range_around(asked, assigned)
    if one is None:  # stranded outside every subnet
        return GrantedAddress(assigned.address, assigned.prefix, None)
    gateway = None if one.gateway is None else Address(one.family, one.gateway)
    return GrantedAddress(assigned.address, one.subnet.prefix, gateway)


def _range_around(asked: Asked, assigned: AssignedAddress) -> Range | None:
    """The range that gives an address, else one whose subnet it lies in: limits may have moved away from it."""
    ranges = asked.sets[assigned.position]
    giving = next((one for one in ranges if one.gives(assigned.address)), None)
    return giving or next((one for one in ranges if one.subnet.covers(assigned.address)), None)


def _route(route: Route, granted: tuple[GrantedAddress, ...]) -> Route:
    """A default route without next hop goes through the gateway of its family."""
    if route.gw is not None or route.dst not in _DEFAULTS:
        return route
    gateways = (one.gateway for one in granted if one.gateway and one.gateway.family == route.dst.family)
    return Route(route.dst, next(gateways, None))
