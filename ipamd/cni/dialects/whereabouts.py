"""Owns the dialect of whereabouts: `range` in all its forms, `ipRanges`, and what goes with them.

As there, the first address of a request comes from `range`, those after it from the entries of `ipRanges`; and bounds
that stand in `range` itself (`10.0.0.5-10.0.0.9/24`) count instead of `range_start` and `range_end`.
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
from ipamd.core.addresses import Address
from ipamd.core.definition import RangeKeys, RangeText
from ipamd.core.model import Range

NAME = "whereabouts"

_KEYS = RangeKeys("range", "range_start", "range_end", "exclude")
_DASH_KEYS = RangeKeys("range", "range (its start)", "range (its end)", "exclude")


def read(conf: Json, ipam: Json) -> Ipam:
    """Read an `ipam` section as whereabouts has it. Raises CniError with code 7."""
    gateway = read_gateway(ipam.get("gateway"), "ipam.gateway")
    sets = [[_written(one, gateway)] for one in _ranges(ipam)]
    if not sets:
        raise CniError(BAD_CONFIG, "ipam has no range: range is empty, and so is ipRanges")
    overrides = read_overrides(ipam)
    check_routes(overrides, sets)
    return Ipam(
        NAME,
        tuple(make_requests(sets, read_space(ipam), conf, separate=not _overlapping(ipam))),
        overrides,
        config.flag(ipam.get("pod_annotations"), "ipam.pod_annotations"),
        warnings=tuple(_warnings(ipam)),
    )


def _ranges(ipam: Json) -> Iterator[Range]:
    if ipam.get("range") not in (None, ""):
        yield _range(ipam, "ipam")
    for number, value in enumerate(config.sequence(ipam.get("ipRanges"), "ipam.ipRanges")):
        where = f"ipam.ipRanges[{number}]"
        item = config.mapping(value, where)
        if item.get("range") in (None, ""):
            raise CniError(BAD_CONFIG, f"{where} has no range")
        yield _range(item, where)


def _range(item: Json, where: str) -> Range:
    whole = config.text(item["range"], f"{where}.range").strip()
    excludes = config.texts(item.get("exclude"), f"{where}.exclude")
    start = optional_text(item.get("range_start"), f"{where}.range_start")
    end = optional_text(item.get("range_end"), f"{where}.range_end")
    first, dash, last = whole.partition("-")
    if not dash:
        return read_written(RangeText(whole, start, end, excludes), where, _KEYS)
    first, last = first.strip(), last.strip()
    return read_written(RangeText(last, first, last.partition("/")[0], excludes), where, _DASH_KEYS)


def _written(one: Range, gateway: Address | None) -> Written:
    """The gateway is that of all ranges of its family."""
    return Written(one, gateway if gateway is not None and gateway.family == one.family else None)


def _overlapping(ipam: Json) -> bool:
    """Whether ranges that overlap see each other's addresses; they do unless it is said otherwise."""
    value = ipam.get("enable_overlapping_ranges")
    return value is None or config.flag(value, "ipam.enable_overlapping_ranges")


def _warnings(ipam: Json) -> Iterator[str]:
    if ipam.get("node_slice_size") is not None:
        yield "ipam.node_slice_size is ignored: a node has no slice of its own, all of them share the range"
