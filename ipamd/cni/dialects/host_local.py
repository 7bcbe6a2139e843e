"""Owns the dialect of host-local: `ranges`, a list of lists, or the old flat form, and `resolvConf`.

As there, ranges that the runtime hands over (`runtimeConfig.ipRanges`) come first, then the flat one, then `ranges`;
and a range that says nothing of its gateway has the first host as its gateway.
"""

from __future__ import annotations

from collections.abc import Iterator

from ipamd.cni import config
from ipamd.cni.config import Json
from ipamd.cni.dialects.inline import (
    Written,
    check_routes,
    make_requests,
    optional_text,
    read_gateway,
    read_space,
    read_written,
)
from ipamd.cni.dialects.ipam import Ipam
from ipamd.cni.errors import BAD_CONFIG, CniError
from ipamd.cni.overrides import read_overrides
from ipamd.core.addresses import BITS, Address, Network
from ipamd.core.definition import RangeKeys, RangeText

NAME = "host-local"

_KEYS = RangeKeys("subnet", "rangeStart", "rangeEnd")


def read(conf: Json, ipam: Json) -> Ipam:
    """Read an `ipam` section as host-local has it. Raises CniError with code 7."""
    sets = list(_sets(conf, ipam))
    if not sets:
        raise CniError(BAD_CONFIG, "ipam has no range: ranges is empty")
    overrides = read_overrides(ipam)
    check_routes(overrides, sets)
    return Ipam(
        NAME,
        tuple(make_requests(sets, read_space(ipam), conf, separate=False)),
        overrides,
        config.flag(ipam.get("pod_annotations"), "ipam.pod_annotations"),
        _resolv_conf(ipam.get("resolvConf")),
    )


def runtime_ranges(conf: Json) -> object:
    """The ranges that the runtime hands over to a plugin with the capability `ipRanges`; None: it does not."""
    return config.mapping(conf.get("runtimeConfig"), "runtimeConfig").get("ipRanges") or None


def _sets(conf: Json, ipam: Json) -> Iterator[list[Written]]:
    yield from _outer(runtime_ranges(conf), "runtimeConfig.ipRanges")
    if ipam.get("subnet") not in (None, ""):
        yield [_written(ipam, "ipam")]
    yield from _outer(ipam.get("ranges"), "ipam.ranges")


def _outer(value: object, where: str) -> Iterator[list[Written]]:
    for position, inner in enumerate(config.sequence(value, where)):
        here = f"{where}[{position}]"
        items = config.sequence(inner, here)
        written = [_written(config.mapping(item, f"{here}[{at}]"), f"{here}[{at}]") for at, item in enumerate(items)]
        if not written:
            raise CniError(BAD_CONFIG, f"{here} is empty; it must have at least one range")
        if len({one.range.family for one in written}) > 1:
            raise CniError(BAD_CONFIG, f"{here} mixes IPv4 and IPv6: its ranges are alternatives for one address")
        yield written


def _written(item: Json, where: str) -> Written:
    subnet = optional_text(item.get("subnet"), f"{where}.subnet")
    if subnet is None:
        raise CniError(BAD_CONFIG, f"{where} has no subnet")
    start = optional_text(item.get("rangeStart"), f"{where}.rangeStart")
    end = optional_text(item.get("rangeEnd"), f"{where}.rangeEnd")
    one = read_written(RangeText(subnet, start, end), where, _KEYS)
    gateway = read_gateway(item.get("gateway"), f"{where}.gateway")
    if gateway is not None and gateway.family != one.family:
        raise CniError(BAD_CONFIG, f"{where}.gateway {gateway} is IPv{gateway.family}, its subnet is IPv{one.family}")
    return Written(one, gateway or _first_host(one.subnet))


def _first_host(subnet: Network) -> Address | None:
    """The gateway of a range that names none; a subnet of one or two addresses has none to spare."""
    if BITS[subnet.family] - subnet.prefix < 2:
        return None
    return Address(subnet.family, subnet.value + 1)


def _resolv_conf(value: object) -> str | None:
    path = optional_text(value, "ipam.resolvConf")
    if path is not None and not path.startswith("/"):
        raise CniError(BAD_CONFIG, f"ipam.resolvConf {config.shown(path)} must be an absolute path")
    return path
