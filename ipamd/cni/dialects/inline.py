"""Owns what the dialects that name no pool have in common: ranges, gateways and the space, and the requests they make.

The core's rules for the ranges of a pool hold for those of a configuration, too; only a gateway may lie anywhere,
since whereabouts and host-local take it as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ipamd.cni import config
from ipamd.cni.config import Json
from ipamd.cni.errors import BAD_CONFIG, CniError
from ipamd.cni.overrides import Overrides
from ipamd.core.addresses import Address, AddressError, Network, parse_address
from ipamd.core.asked import first_hosts
from ipamd.core.commands import PoolRequest
from ipamd.core.definition import DefinitionError, RangeKeys, RangeText, read_range, refuse_overlaps
from ipamd.core.inline import InlinePool, Limits, inline_name, separate_name
from ipamd.core.intervals import Span, intersect, normalise
from ipamd.core.model import DEFAULT_SPACE, Range
from ipamd.core.names import InvalidName, check_name

MAX_POOLS = 16
"""How many pools one request may ask: an attachment with more addresses than this is a mistake."""

MAX_RANGES = 256


class Written(NamedTuple):
    """A range of a configuration: its subnet, bounds and excludes, and the gateway that it has, wherever that lies."""

    range: Range
    gateway: Address | None


def read_written(text: RangeText, where: str, keys: RangeKeys) -> Range:
    """Subnet, bounds and excludes of a range. Raises CniError with code 7, naming key and value."""
    try:
        return read_range(text, where, keys)
    except DefinitionError as error:
        raise CniError(BAD_CONFIG, str(error)) from None


def optional_text(value: object, where: str) -> str | None:
    """A string that may be absent, or empty, which says the same. Raises CniError."""
    return None if value is None or value == "" else config.text(value, where)


def read_gateway(value: object, where: str) -> Address | None:
    """A gateway. Raises CniError."""
    text = optional_text(value, where)
    try:
        return None if text is None else parse_address(text)
    except AddressError as error:
        raise CniError(BAD_CONFIG, f"{where}: {error}") from None


def read_space(ipam: Json) -> str:
    """The space: `space`, which whereabouts calls `network_name`. Raises CniError."""
    named = {key: text for key in ("space", "network_name") if (text := optional_text(ipam.get(key), f"ipam.{key}"))}
    if len(set(named.values())) > 1:
        raise CniError(BAD_CONFIG, f"ipam.space {named['space']!r} is not ipam.network_name {named['network_name']!r}")
    try:
        return next((check_name(text, f"ipam.{key}") for key, text in named.items()), DEFAULT_SPACE)
    except InvalidName as error:
        raise CniError(BAD_CONFIG, str(error)) from None


def takes_first_host(conf: Json) -> bool:
    """Whether the plugin around this one takes the first host of each range without gateway, as a bridge does."""
    return conf.get("isGateway") is True or conf.get("isDefaultGateway") is True


def make_requests(sets: Sequence[Sequence[Written]], space: str, conf: Json, *, separate: bool) -> list[PoolRequest]:
    """A request for each set of ranges. `separate`: each in a space of its own. Raises CniError."""
    if len(sets) > MAX_POOLS or sum(map(len, sets)) > MAX_RANGES:
        most = f"{MAX_POOLS} addresses out of {MAX_RANGES} ranges"
        raise CniError(BAD_CONFIG, f"ipam asks for {len(sets)} addresses out of {sum(map(len, sets))}; at most {most}")
    _refuse_overlaps(one.range for inner in sets for one in inner)
    spare = takes_first_host(conf)
    routers = [router for inner in sets for one in inner for router in _routers(one, spare)]
    requests = [_request([_limits(one, routers) for one in inner], space, spare, separate=separate) for inner in sets]
    names = [request.pool for request in requests]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise CniError(BAD_CONFIG, f"ipam asks for two addresses of pool {twice}, which gives an interface one")
    return requests


def check_routes(overrides: Overrides, sets: Sequence[Sequence[Written]]) -> None:
    """Refuse a route of a family of which there is no address. Raises CniError."""
    families = {inner[0].range.family for inner in sets} | {own.address.family for own in overrides.addresses}
    for at, route in enumerate(overrides.routes or ()):
        if route.dst.family not in families:
            reason = f"is IPv{route.dst.family}, and the configuration has no such address"
            raise CniError(BAD_CONFIG, f"ipam.routes[{at}].dst {route.dst} {reason}")


def _request(limits: Sequence[Limits], space: str, spare: bool, *, separate: bool) -> PoolRequest:
    inline = InlinePool(space, tuple(limits))
    name = inline_name(space, inline.subnets)
    if separate:
        name = separate_name(name)
        inline = InlinePool(name, inline.ranges)
    return PoolRequest(name, inline, spare)


class _Router(NamedTuple):
    """An address that a router has. `named`: it is the gateway of a range, else what a bridge takes in the subnet."""

    subnet: Network
    address: Address
    named: bool

    def is_of(self, one: Written) -> bool:
        """Whether it is the router of a range itself, which the core leaves out where it has to."""
        return self.address == one.gateway if self.named else self.subnet == one.range.subnet


def _routers(one: Written, spare: bool) -> Iterator[_Router]:
    if one.gateway is not None:
        yield _Router(one.range.subnet, one.gateway, named=True)
    elif spare:
        yield from (_Router(one.range.subnet, host, named=False) for host in first_hosts([one.range]))


def _limits(one: Written, routers: Iterable[_Router]) -> Limits:
    """What a range allows: no router of another range of the configuration is given."""
    it = one.range
    others = [router.address for router in routers if not router.is_of(one)]
    holes = normalise([*it.excludes, *(Span(at.value, at.value) for at in others if at.family == it.family)])
    gateway = None if one.gateway is None else one.gateway.value
    return Limits(it.subnet, it.first, it.last, intersect(holes, (Span(it.first, it.last),)), gateway)


def _refuse_overlaps(ranges: Iterable[Range]) -> None:
    try:
        refuse_overlaps(ranges)
    except DefinitionError as error:
        raise CniError(BAD_CONFIG, f"ipam: {error}") from None
