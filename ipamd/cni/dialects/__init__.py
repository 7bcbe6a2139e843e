"""The dialects of the `ipam` section. A dialect is a module with one function `read`: configuration in, Ipam out."""

from __future__ import annotations

from ipamd.cni import config
from ipamd.cni.config import Json
from ipamd.cni.dialects import host_local, native, whereabouts
from ipamd.cni.dialects.host_local import runtime_ranges
from ipamd.cni.dialects.ipam import Ipam
from ipamd.cni.errors import BAD_CONFIG, CniError

_WHEREABOUTS = ("range", "ipRanges")
_HOST_LOCAL = ("subnet", "ranges")


def read_ipam(conf: Json) -> Ipam:
    """The `ipam` section of a configuration, in whatever dialect it is. Raises CniError with code 7."""
    section = conf.get("ipam")
    if section is None:
        raise CniError(BAD_CONFIG, "the network configuration has no ipam section")
    ipam = config.mapping(section, "ipam")
    named, theirs, local = (_first(ipam, keys) for keys in (("pool",), _WHEREABOUTS, _HOST_LOCAL))
    if named and (theirs or local):
        raise CniError(BAD_CONFIG, f"ipam has both pool and {theirs or local}; it must have one of them")
    if theirs and local:
        detail = f"ipam has {theirs}, as whereabouts has, and {local}, as host-local has; it must have one of them"
        raise CniError(BAD_CONFIG, detail)
    if theirs:
        return whereabouts.read(conf, ipam)
    if local or (not named and runtime_ranges(conf)):
        return host_local.read(conf, ipam)
    return native.read(conf, ipam)


def _first(ipam: Json, keys: tuple[str, ...]) -> str | None:
    """The first of some keys that a section has."""
    return next((key for key in keys if ipam.get(key) is not None), None)
