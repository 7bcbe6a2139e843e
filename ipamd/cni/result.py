"""Owns the result of an ADD: the exact bytes to print, in the abbreviated IPAM form of each version."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ipamd.cni.errors import BAD_CONFIG, CniError
from ipamd.cni.overrides import NO_OVERRIDES, Overrides
from ipamd.cni.versions import ONE_OF_FAMILY, WITH_FAMILY
from ipamd.core.addresses import Address, Network
from ipamd.core.model import Dns
from ipamd.core.outcomes import Grant, Granted

_write = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class _Ip(NamedTuple):
    address: Address
    prefix: int
    gateway: Address | None

    @property
    def text(self) -> str:
        return f"{self.address}/{self.prefix}"


class _Route(NamedTuple):
    dst: Network
    gw: Address | None
    numbers: tuple[tuple[str, int], ...]


def check_room(version: str, families: Iterable[int]) -> None:
    """Refuse two addresses of one family under the versions that have room for one: ask before anything is kept."""
    found = list(families)
    if version in ONE_OF_FAMILY and len(set(found)) < len(found):
        raise CniError(
            BAD_CONFIG, f"cniVersion {version} has room for one address of each family, this request has more"
        )


def render_result(version: str, granted: Granted, overrides: Overrides = NO_OVERRIDES) -> bytes:
    """The result of an ADD. Raises CniError where the version has no room for it (see `check_room`)."""
    ips = [*_granted_ips(granted), *(_Ip(own.address, own.prefix, own.gateway) for own in overrides.addresses)]
    routes = list(_routes(granted, overrides, ips))
    dns = _dns_shape(overrides.dns if overrides.dns is not None else _joined_dns(granted.grants))
    if version in ONE_OF_FAMILY:
        check_room(version, (ip.address.family for ip in ips))
        return _encode({"cniVersion": version, **_by_family(ips, routes), "dns": dns})
    shapes: dict[str, Any] = {"ips": [_ip_shape(ip, named=version in WITH_FAMILY) for ip in ips]}
    if routes:
        shapes["routes"] = [_route_shape(route) for route in routes]
    return _encode({"cniVersion": version, **shapes, "dns": dns})


def _encode(shape: dict[str, Any]) -> bytes:
    return _write(shape).encode()


def _granted_ips(granted: Granted) -> Iterator[_Ip]:
    for grant in granted.grants:
        for given in grant.addresses:
            yield _Ip(given.address, given.prefix, given.gateway)


def _routes(granted: Granted, overrides: Overrides, ips: list[_Ip]) -> Iterator[_Route]:
    """Those of the configuration, else those of the pools; a destination that two pools have goes by the first."""
    if overrides.routes is not None:
        for route in overrides.routes:
            yield _Route(route.dst, route.gw or _default_gateway(route.dst, ips), route.numbers)
        return
    seen: set[Network] = set()
    for grant in granted.grants:
        own = [_Ip(given.address, given.prefix, given.gateway) for given in grant.addresses]
        for pool_route in grant.routes:
            if pool_route.dst not in seen:
                seen.add(pool_route.dst)
                yield _Route(pool_route.dst, pool_route.gw or _default_gateway(pool_route.dst, own), ())


def _default_gateway(dst: Network, ips: list[_Ip]) -> Address | None:
    """Where a default route without `gw` goes: through the first gateway of its family. Other routes are on link."""
    if dst.prefix:
        return None
    return next((ip.gateway for ip in ips if ip.address.family == dst.family and ip.gateway is not None), None)


def _joined_dns(grants: tuple[Grant, ...]) -> Dns:
    """The settings of all pools, in order, each value once; the first domain."""
    if len(grants) == 1:
        return grants[0].dns
    return Dns(
        tuple(dict.fromkeys(text for grant in grants for text in grant.dns.nameservers)),
        next((grant.dns.domain for grant in grants if grant.dns.domain), ""),
        tuple(dict.fromkeys(text for grant in grants for text in grant.dns.search)),
        tuple(dict.fromkeys(text for grant in grants for text in grant.dns.options)),
    )


def _by_family(ips: list[_Ip], routes: list[_Route]) -> dict[str, Any]:
    """The form of 0.1 and 0.2: an object for each family, with the family's own routes."""
    shapes: dict[str, Any] = {}
    for ip in ips:
        shape = {"ip": ip.text, **_gateway_shape(ip.gateway)}
        own = [_route_shape(route) for route in routes if route.dst.family == ip.address.family]
        shapes[f"ip{ip.address.family}"] = {**shape, "routes": own} if own else shape
    return shapes


def _ip_shape(ip: _Ip, *, named: bool) -> dict[str, Any]:
    family = {"version": str(ip.address.family)} if named else {}
    return {**family, "address": ip.text, **_gateway_shape(ip.gateway)}


def _gateway_shape(gateway: Address | None) -> dict[str, str]:
    return {} if gateway is None else {"gateway": str(gateway)}


def _route_shape(route: _Route) -> dict[str, Any]:
    shape: dict[str, Any] = {"dst": str(route.dst)}
    if route.gw is not None:
        shape["gw"] = str(route.gw)
    return {**shape, **dict(route.numbers)}


def _dns_shape(dns: Dns) -> dict[str, Any]:
    """Only what is set; an empty object otherwise, as the reference implementation prints it."""
    shape: dict[str, Any] = {}
    if dns.nameservers:
        shape["nameservers"] = dns.nameservers
    if dns.domain:
        shape["domain"] = dns.domain
    if dns.search:
        shape["search"] = dns.search
    if dns.options:
        shape["options"] = dns.options
    return shape
