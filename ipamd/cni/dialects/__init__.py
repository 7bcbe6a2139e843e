"""The dialects of the `ipam` section. A dialect is a module with one function: `ipam` object in, Ipam out."""

from __future__ import annotations

from ipamd.cni import config
from ipamd.cni.config import Json
from ipamd.cni.dialects import native
from ipamd.cni.dialects.ipam import Ipam
from ipamd.cni.errors import BAD_CONFIG, CniError

_INLINE = ("range", "ipRanges", "ranges", "subnet")
"""Keys that describe addresses in the configuration itself, as whereabouts and host-local do."""


def read_ipam(conf: Json) -> Ipam:
    """The `ipam` section of a configuration, in whatever dialect it is. Raises CniError with code 7."""
    section = conf.get("ipam")
    if section is None:
        raise CniError(BAD_CONFIG, "the network configuration has no ipam section")
    ipam = config.mapping(section, "ipam")
    inline = [key for key in _INLINE if ipam.get(key) is not None]
    if inline and ipam.get("pool") is not None:
        raise CniError(BAD_CONFIG, f"ipam has both pool and {inline[0]}; it must have one of them")
    if inline:
        raise CniError(BAD_CONFIG, f"ipam has {inline[0]}, but this server knows no such dialect; name a pool instead")
    return native.read(ipam)
