"""Owns what a configuration puts into the result itself: static addresses, and routes and dns instead of the pool's."""

from __future__ import annotations

from dataclasses import dataclass

from ipamd.cni import config
from ipamd.cni.config import Json
from ipamd.cni.errors import BAD_CONFIG, CniError
from ipamd.core.addresses import Address, AddressError, Network, parse_address, parse_interface, parse_network
from ipamd.core.model import Dns

_ROUTE_NUMBERS = ("mtu", "advmss", "priority", "table", "scope")


@dataclass(frozen=True, slots=True)
class StaticAddress:
    """An address that ipamd only repeats: with the prefix length and gateway that the configuration gives."""

    address: Address
    prefix: int
    gateway: Address | None = None


@dataclass(frozen=True, slots=True)
class StaticRoute:
    """A route of the configuration, with the numbers (mtu, priority, ...) that a result may carry beside it."""

    dst: Network
    gw: Address | None = None
    numbers: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Overrides:
    """None: the pools' own count."""

    addresses: tuple[StaticAddress, ...] = ()
    routes: tuple[StaticRoute, ...] | None = None
    dns: Dns | None = None


NO_OVERRIDES = Overrides()


def read_overrides(ipam: Json) -> Overrides:
    """What the `ipam` section says of the result. Raises CniError with code 7."""
    addresses, routes, dns = ipam.get("addresses"), ipam.get("routes"), ipam.get("dns")
    if addresses is None and routes is None and dns is None:
        return NO_OVERRIDES
    return Overrides(
        tuple(_address(item, f"ipam.addresses[{i}]") for i, item in _numbered(addresses, "ipam.addresses")),
        None if routes is None else _routes(routes),
        None if dns is None else _dns(dns),
    )


def _numbered(value: object, where: str) -> list[tuple[int, object]]:
    return list(enumerate(config.sequence(value, where)))


def _address(value: object, where: str) -> StaticAddress:
    item = config.mapping(value, where)
    given, gateway = config.text(item.get("address"), f"{where}.address"), item.get("gateway")
    try:
        address, network = parse_interface(given)
    except AddressError as error:
        raise CniError(BAD_CONFIG, f"{where}.address: {error}") from None
    return StaticAddress(address, network.prefix, _gateway(gateway, f"{where}.gateway", address.family))


def _routes(value: object) -> tuple[StaticRoute, ...]:
    routes = tuple(_route(item, f"ipam.routes[{i}]") for i, item in _numbered(value, "ipam.routes"))
    if len({(route.dst, route.numbers) for route in routes}) < len(routes):
        raise CniError(BAD_CONFIG, "ipam.routes has twice the same route")
    return routes


def _route(value: object, where: str) -> StaticRoute:
    item = config.mapping(value, where)
    try:
        dst = parse_network(config.text(item.get("dst"), f"{where}.dst"))
    except AddressError as error:
        raise CniError(BAD_CONFIG, f"{where}.dst: {error}") from None
    numbers = tuple((key, _number(item[key], f"{where}.{key}")) for key in _ROUTE_NUMBERS if item.get(key) is not None)
    return StaticRoute(dst, _gateway(item.get("gw"), f"{where}.gw", dst.family), numbers)


def _gateway(value: object, where: str, family: int) -> Address | None:
    if value is None or value == "":
        return None
    try:
        gateway = parse_address(config.text(value, where))
    except AddressError as error:
        raise CniError(BAD_CONFIG, f"{where}: {error}") from None
    if gateway.family != family:
        raise CniError(BAD_CONFIG, f"{where} {gateway} is not an IPv{family} address")
    return gateway


def _number(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**32:
        config.wrong(where, "a whole number below 2^32", value)
    return value


def _dns(value: object) -> Dns:
    item = config.mapping(value, "ipam.dns")
    domain = item.get("domain")
    return Dns(
        config.texts(item.get("nameservers"), "ipam.dns.nameservers"),
        "" if domain is None else config.text(domain, "ipam.dns.domain"),
        config.texts(item.get("search"), "ipam.dns.search"),
        config.texts(item.get("options"), "ipam.dns.options"),
    )
