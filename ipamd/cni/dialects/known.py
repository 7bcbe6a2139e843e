"""Owns what is told of an `ipam` section to a person who checks one: its dialect, and keys that nobody reads."""

from __future__ import annotations

from typing import NamedTuple

from ipamd.cni import config
from ipamd.cni.config import Json

_NATIVE = frozenset({"type", "pool", "routes", "dns", "addresses", "pod_annotations"})


class Reading(NamedTuple):
    """How a section is read. An ignored key is often a slip of the pen."""

    dialect: str
    ignored: tuple[str, ...]


def reading_of(conf: Json) -> Reading:
    """How the `ipam` section of a configuration is read. Raises CniError."""
    ipam = config.mapping(conf.get("ipam"), "ipam")
    return Reading("native", tuple(key for key in ipam if key not in _NATIVE))
