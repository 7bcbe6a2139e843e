"""Owns the rules for what a pool may be: from the texts that an operator writes to a PoolDefinition, or one sentence.

Every error names the field and quotes the value. What an operator wrote is kept as written beside the bounds that
count, so that a definition is shown as it was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ipamd.core.addresses import Address, AddressError, Network, has_mapped, parse_address, parse_network, usable_bounds
from ipamd.core.intervals import Span
from ipamd.core.model import DEFAULT_SPACE, FOREVER, Dns, PoolDefinition, Range, RangeSet, Route, Strategy
from ipamd.core.names import InvalidName, check_name
from ipamd.core.values import replace

MAX_SECONDS = 10 * 366 * 24 * 3600
"""The longest duration that is taken: ten years."""

LEAST_RECLAIM_S = 60
"""The addresses of a lost node are not freed sooner: it may be back, with its pods."""

MAX_RANGES = 256
MAX_EXCLUDES = 4096
MAX_ROUTES = 256
MAX_LABELS = 64
MAX_TEXT_BYTES = 253

_reclaim = re.compile(r"never|after:([0-9]{1,9})").fullmatch


NO_DNS = Dns()


class DefinitionError(ValueError):
    """A definition that breaks a rule; the message names the field and the value."""


@dataclass(frozen=True, slots=True)
class RangeText:
    """A range as it is written."""

    subnet: str
    range_start: str | None = None
    range_end: str | None = None
    exclude: tuple[str, ...] = ()
    gateway: str | None = None


class RangeKeys(NamedTuple):
    """What the fields of a range are called where it is written, so that an error names what is to be changed."""

    subnet: str = "subnet"
    start: str = "range_start"
    end: str = "range_end"
    exclude: str = "exclude"


_KEYS = RangeKeys()


@dataclass(frozen=True, slots=True)
class RouteText:
    """A route as it is written."""

    dst: str
    gw: str | None = None


@dataclass(frozen=True, slots=True)
class PoolText:
    """A pool as it is written."""

    name: str
    ranges: tuple[tuple[RangeText, ...], ...]
    space: str = DEFAULT_SPACE
    routes: tuple[RouteText, ...] = ()
    dns: Dns = NO_DNS
    strategy: str = Strategy.LOWEST.value
    cooldown_s: int | None = None
    cooldown_min_s: int = 0
    hold_s: int = 0
    reclaim: str | None = None
    allow_overlap: bool = False
    labels: tuple[tuple[str, str], ...] = ()


def define(text: PoolText) -> PoolDefinition:
    """The definition that a text means. Raises DefinitionError."""
    try:
        check_name(text.name, "name")
        check_name(text.space, "space")
    except InvalidName as error:
        raise DefinitionError(str(error)) from None
    sets = _without_gateways(read_sets(text.ranges))
    definition = PoolDefinition(text.name, sets, text.space, read_routes(text.routes, sets), read_dns(text.dns))
    return replace(
        definition,
        strategy=_strategy(text.strategy),
        cooldown_s=None if text.cooldown_s is None else check_seconds(text.cooldown_s, "cooldown_s"),
        cooldown_min_s=_cooldown_min_s(text),
        hold_s=check_seconds_or_forever(text.hold_s, "hold_s"),
        reclaim=None if text.reclaim is None else check_reclaim(text.reclaim),
        allow_overlap=text.allow_overlap,
        labels=_labels(dict(text.labels)),
    )


def read_sets(ranges: Sequence[Sequence[RangeText]]) -> tuple[RangeSet, ...]:
    """The outer entries of `ranges`. Raises DefinitionError."""
    if not ranges:
        raise DefinitionError("ranges must have at least one entry")
    if sum(len(inner) for inner in ranges) > MAX_RANGES:
        raise DefinitionError(f"ranges has over {MAX_RANGES} ranges")
    sets = tuple(_read_set(inner, f"ranges[{position}]") for position, inner in enumerate(ranges))
    refuse_overlaps(one for ranges in sets for one in ranges)
    return sets


def read_range(text: RangeText, where: str = "range", keys: RangeKeys = _KEYS) -> Range:
    """One range. Raises DefinitionError, naming the field in `where`."""
    subnet = read_network(text.subnet, f"{where}.{keys.subnet}")
    start = _bound(text.range_start, subnet, f"{where}.{keys.start}")
    end = _bound(text.range_end, subnet, f"{where}.{keys.end}")
    if start is not None and end is not None and start > end:
        raise DefinitionError(
            f"{where}.{keys.start} {text.range_start!r} lies behind {where}.{keys.end} {text.range_end!r}"
        )
    lowest, highest = usable_bounds(subnet)
    first, last = max(lowest, start if start is not None else lowest), min(highest, end if end is not None else highest)
    if first > last:
        raise DefinitionError(f"{where} has no address that can be handed out between its bounds in {subnet}")
    if has_mapped(subnet.family, first, last):
        raise DefinitionError(f"{where} has IPv4-mapped addresses (::ffff:0:0/96) between its bounds in {subnet}")
    if len(text.exclude) > MAX_EXCLUDES:
        raise DefinitionError(f"{where}.{keys.exclude} has over {MAX_EXCLUDES} entries")
    excludes = tuple(
        read_exclude(exclude, subnet.family, f"{where}.{keys.exclude}[{at}]") for at, exclude in enumerate(text.exclude)
    )
    return Range(subnet, first, last, start, end, excludes, _gateway(text.gateway, subnet, f"{where}.gateway"))


def read_exclude(text: str, family: int, where: str) -> Span:
    """An exclude: a CIDR, an address, or `a-b`. Raises DefinitionError."""
    first_text, dash, last_text = text.partition("-")
    if dash:
        first, last = _address(first_text.strip(), where, text), _address(last_text.strip(), where, text)
        if first.family != last.family or first.value > last.value:
            raise DefinitionError(f"{where} {text!r} does not run from a lower to a higher address")
        found, span = first.family, Span(first.value, last.value)
    elif "/" in text:
        network = read_network(text, where)
        found, span = network.family, Span(network.value, network.last)
    else:
        address = _address(text, where, text)
        found, span = address.family, Span(address.value, address.value)
    if found != family:
        raise DefinitionError(f"{where} {text!r} is IPv{found}, its subnet is IPv{family}")
    return span


def read_routes(texts: Sequence[RouteText], sets: tuple[RangeSet, ...]) -> tuple[Route, ...]:
    """The routes of a pool: each destination once, of a family that the pool has. Raises DefinitionError."""
    if len(texts) > MAX_ROUTES:
        raise DefinitionError(f"routes has over {MAX_ROUTES} entries")
    families = {ranges[0].family for ranges in sets}
    routes: dict[Network, Route] = {}
    for at, text in enumerate(texts):
        where = f"routes[{at}]"
        dst = read_network(text.dst, f"{where}.dst")
        if dst.family not in families:
            raise DefinitionError(f"{where}.dst {text.dst!r} is IPv{dst.family}, and the pool has no such range")
        if dst in routes:
            raise DefinitionError(f"{where}.dst {text.dst!r} is there twice")
        gw = None if text.gw is None else _address(text.gw, f"{where}.gw", text.gw)
        if gw is not None and gw.family != dst.family:
            raise DefinitionError(f"{where}.gw {text.gw!r} is not of the family of {dst}")
        routes[dst] = Route(dst, gw)
    return tuple(routes.values())


def read_dns(dns: Dns) -> Dns:
    """Name service settings, with canonical name server addresses. Raises DefinitionError."""
    nameservers = tuple(str(_address(text, f"dns.nameservers[{at}]", text)) for at, text in enumerate(dns.nameservers))
    for field in ("search", "options"):
        for at, text in enumerate(getattr(dns, field)):
            _check_text(text, f"dns.{field}[{at}]")
    if dns.domain:
        _check_text(dns.domain, "dns.domain")
    return replace(dns, nameservers=nameservers)


def read_network(text: str, where: str) -> Network:
    """A CIDR, host bits masked. Raises DefinitionError."""
    try:
        return parse_network(text)
    except AddressError as error:
        raise DefinitionError(f"{where}: {error}") from None


def check_seconds(value: int, where: str) -> int:
    """A duration in seconds. Raises DefinitionError."""
    if not 0 <= value <= MAX_SECONDS:
        raise DefinitionError(f"{where} {value} must be between 0 and {MAX_SECONDS}")
    return value


def check_seconds_or_forever(value: int, where: str) -> int:
    """A duration in seconds, or FOREVER. Raises DefinitionError."""
    if value != FOREVER and not 0 <= value <= MAX_SECONDS:
        raise DefinitionError(f"{where} {value} must be between 0 and {MAX_SECONDS}, or {FOREVER}: for ever")
    return value


def check_reclaim(text: str, where: str = "reclaim") -> str:
    """When the addresses of a lost node are freed. Raises DefinitionError."""
    match = _reclaim(text)
    if match is None:
        raise DefinitionError(f"{where} {text!r} must be 'never' or 'after:SECONDS'")
    if match[1] is None:
        return text
    seconds = check_seconds(int(match[1]), where)
    if seconds < LEAST_RECLAIM_S:
        raise DefinitionError(f"{where} {text!r} must be 'after:{LEAST_RECLAIM_S}' at least")
    return f"after:{seconds}"


def _read_set(inner: Sequence[RangeText], where: str) -> RangeSet:
    if not inner:
        raise DefinitionError(f"{where} must have at least one range")
    ranges = tuple(read_range(text, f"{where}[{order}]") for order, text in enumerate(inner))
    if len({one.family for one in ranges}) > 1:
        raise DefinitionError(f"{where} mixes IPv4 and IPv6: the ranges of one entry are alternatives for one address")
    return ranges


def refuse_overlaps(ranges: Iterable[Range]) -> None:
    """Sorted by their first address, some neighbours overlap if any two ranges do. Raises DefinitionError."""
    ranges = sorted(ranges, key=lambda one: (one.family, one.first))
    for left, right in pairwise(ranges):
        if left.family == right.family and right.first <= left.last:
            first, last = Address(right.family, right.first), Address(right.family, min(left.last, right.last))
            raise DefinitionError(f"ranges overlap in {first}-{last}: {left.subnet} and {right.subnet}")


def _without_gateways(sets: tuple[RangeSet, ...]) -> tuple[RangeSet, ...]:
    """A gateway is no pod's: another range of the pool in which it lies has it among its excludes."""
    gateways = {Address(one.family, one.gateway): None for inner in sets for one in inner if one.gateway is not None}
    return tuple(tuple(_without(one, gateways) for one in inner) for inner in sets)


def _without(one: Range, addresses: Iterable[Address]) -> Range:
    given = tuple(Span(address.value, address.value) for address in addresses if one.gives(address))
    return replace(one, excludes=one.excludes + given) if given else one


def _bound(text: str | None, subnet: Network, where: str) -> int | None:
    if text is None:
        return None
    address = _address(text, where, text)
    if not subnet.covers(address):
        raise DefinitionError(f"{where} {text!r} does not lie in {subnet}")
    return address.value


def _gateway(text: str | None, subnet: Network, where: str) -> int | None:
    """An IPv6 gateway may lie elsewhere, since routers are met by their link-local addresses (RFC 4861)."""
    if text is None:
        return None
    address = _address(text, where, text)
    if address.family != subnet.family or (subnet.family == 4 and not subnet.covers(address)):
        raise DefinitionError(f"{where} {text!r} does not lie in {subnet}")
    return address.value


def _address(text: str, where: str, whole: str) -> Address:
    try:
        return parse_address(text)
    except AddressError as error:
        raise DefinitionError(f"{where} {whole!r}: {error}") from None


def _strategy(text: str) -> Strategy:
    try:
        return Strategy(text)
    except ValueError:
        raise DefinitionError(f"strategy {text!r} must be one of {', '.join(Strategy)}") from None


def _cooldown_min_s(text: PoolText) -> int:
    least = check_seconds(text.cooldown_min_s, "cooldown_min_s")
    if text.cooldown_s is not None and least > text.cooldown_s:
        raise DefinitionError(f"cooldown_min_s {least} is longer than cooldown_s {text.cooldown_s}")
    return least


def _labels(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    if len(labels) > MAX_LABELS:
        raise DefinitionError(f"labels has over {MAX_LABELS} entries")
    for key, value in labels.items():
        _check_text(key, f"labels: the key {key!r}")
        if value:
            _check_text(value, f"labels.{key}")
    return tuple(sorted(labels.items()))


def _check_text(text: str, where: str) -> None:
    if not text or len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES or not text.isprintable():
        raise DefinitionError(f"{where} must be 1 to {MAX_TEXT_BYTES} printable bytes")
