"""Owns what is told of an `ipam` section to a person who checks one: its dialect, and keys that nobody reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from ipamd.cni import config
from ipamd.cni.config import Json

Keys = Mapping[str, "Keys"]
"""Known keys of an object. A value that is read as a whole has no keys of its own; a list is what its items are."""

_WHOLE: Keys = {}
_ROUTES: Keys = dict.fromkeys(("dst", "gw", "mtu", "advmss", "priority", "table", "scope"), _WHOLE)
_DNS: Keys = dict.fromkeys(("nameservers", "domain", "search", "options"), _WHOLE)
_ADDRESSES: Keys = dict.fromkeys(("address", "gateway"), _WHOLE)
_COMMON: Keys = {
    "type": _WHOLE,
    "routes": _ROUTES,
    "dns": _DNS,
    "addresses": _ADDRESSES,
    "pod_annotations": _WHOLE,
}
_RANGE: Keys = dict.fromkeys(("range", "range_start", "range_end", "exclude"), _WHOLE)
_SUBNET: Keys = dict.fromkeys(("subnet", "rangeStart", "rangeEnd", "gateway"), _WHOLE)
_SPACE: Keys = dict.fromkeys(("network_name", "space"), _WHOLE)

_KNOWN: Mapping[str, Keys] = {
    "native": {**_COMMON, "pool": _WHOLE},
    "whereabouts": {
        **_COMMON,
        **_RANGE,
        **_SPACE,
        "gateway": _WHOLE,
        "ipRanges": _RANGE,
        "enable_overlapping_ranges": _WHOLE,
    },
    "host-local": {**_COMMON, **_SUBNET, **_SPACE, "ranges": _SUBNET, "resolvConf": _WHOLE},
}

_KUBERNETES = "it steers the Kubernetes back end of whereabouts, which ipamd does without"
_LEASES = "it times the leases of whereabouts; ipamd has none"
_LOGS = "the server has a log of its own"
_ETCD = "it leads whereabouts to etcd, which ipamd does without"
_NO_USE: Mapping[str, str] = {
    "kubernetes": _KUBERNETES,
    "datastore": _KUBERNETES,
    "configuration_path": "no such file is read, what it says of addresses belongs into ipam itself",
    "reconciler_cron_expression": "addresses of pods that are gone are not looked for by the clock",
    "sleep_for_race": _LEASES,
    "leader_lease_duration": _LEASES,
    "leader_renew_deadline": _LEASES,
    "leader_retry_period": _LEASES,
    "node_slice_size": "a node has no slice of its own, all of them share the range",
    "log_file": _LOGS,
    "log_level": _LOGS,
    "etcd_host": _ETCD,
    "etcd_username": _ETCD,
    "etcd_password": _ETCD,
    "etcd_key_file": _ETCD,
    "etcd_cert_file": _ETCD,
    "etcd_ca_cert_file": _ETCD,
    "dataDir": "the server keeps the state, ipamctl import host-local takes over what lies there",
}
"""Keys of the other projects that have no use here, and why."""


class Reading(NamedTuple):
    """How a section is read. `ignored` are paths of keys that nobody reads; `notes` has a sentence for each, and more.

    An ignored key that is of no other project is often a slip of the pen.
    """

    dialect: str
    ignored: tuple[str, ...]
    notes: tuple[str, ...] = ()


def reading_of(conf: Json, dialect: str) -> Reading:
    """How the `ipam` section of a configuration is read in a dialect. Raises CniError."""
    ipam = config.mapping(conf.get("ipam"), "ipam")
    found = list(_unknown(ipam, _KNOWN[dialect], ""))
    notes = [*_on_type(ipam.get("type")), *(_note(path, known) for path, known in found)]
    return Reading(dialect, tuple(path for path, _ in found), tuple(notes))


def _unknown(value: object, known: Keys, path: str) -> Iterator[tuple[str, Keys]]:
    """The paths of unknown keys, each with the keys that could be meant."""
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield from _unknown(item, known, f"{path}[{at}]")
    elif isinstance(value, dict) and known:
        for key, item in value.items():
            here = f"{path}.{key}" if path else key
            if key not in known:
                yield here, known
            elif item is not None:
                yield from _unknown(item, known[key], here)


def _note(path: str, known: Keys) -> str:
    key = path.rpartition(".")[2]
    if path in _NO_USE:
        return f"{path} is ignored: {_NO_USE[path]}"
    close = [one for one in known if one.lower() == key.lower()] or get_close_matches(key, known, 1)
    meant = f"; {close[0]} may be meant" if close else ""
    return f"{path} is ignored: no such key is known{meant}"


def _on_type(kind: object) -> Iterator[str]:
    if kind != "ipamd":
        yield f"ipam.type is {config.shown(kind)}: the runtime asks the plugin of that name until it is ipamd"
