"""What is told of an `ipam` section to a person who checks one."""

from __future__ import annotations

from typing import Any

import pytest

from ipamd.cni.dialects import read_ipam
from ipamd.cni.dialects.known import reading_of
from ipamd.cni.errors import CniError


def test_keys_that_nobody_reads_are_told_in_their_order():
    ipam = {"type": "ipamd", "pol": "web", "pool": "web", "mtu": 1400, "routes": []}
    assert reading_of({"ipam": ipam}, "native") == (
        "native",
        ("pol", "mtu"),
        ("pol is ignored: no such key is known; pool may be meant", "mtu is ignored: no such key is known"),
    )


def test_keys_are_looked_for_in_all_depths():
    ipam = {
        "type": "ipamd",
        "ranges": [[{"subnet": "10.0.0.0/24", "rangestart": "10.0.0.5"}, {"subnet": "10.0.1.0/24"}], [{"x": None}]],
        "routes": [{"dst": "0.0.0.0/0", "via": "10.0.0.1"}],
        "dns": {"nameserver": ["10.0.0.2"]},
        "dataDir": "/run/ipam",
    }
    reading = reading_of({"ipam": ipam}, "host-local")
    assert reading.ignored == (
        "ranges[0][0].rangestart",
        "ranges[1][0].x",
        "routes[0].via",
        "dns.nameserver",
        "dataDir",
    )
    assert reading.notes[0] == "ranges[0][0].rangestart is ignored: no such key is known; rangeStart may be meant"
    assert reading.notes[3].endswith("nameservers may be meant")
    assert reading.notes[4].endswith("ipamctl import host-local takes over what lies there")


def test_keys_of_the_other_projects_that_have_no_use_are_told_why():
    ipam = {
        "type": "whereabouts",
        "range": "10.0.0.0/24",
        "kubernetes": {"kubeconfig": "/x"},
        "node_slice_size": "/26",
        "ipRanges": [{"range": "fd00::/64", "log_level": "debug"}],
    }
    reading = reading_of({"ipam": ipam}, "whereabouts")
    assert reading.ignored == ("kubernetes", "node_slice_size", "ipRanges[0].log_level")
    assert reading.notes == (
        'ipam.type is "whereabouts": the runtime asks the plugin of that name until it is ipamd',
        "kubernetes is ignored: it steers the Kubernetes back end of whereabouts, which ipamd does without",
        "node_slice_size is ignored: a node has no slice of its own, all of them share the range",
        "ipRanges[0].log_level is ignored: no such key is known",
    )


def test_a_section_that_is_no_object_is_refused():
    with pytest.raises(CniError):
        reading_of({"ipam": []}, "native")


class Watched(dict[str, Any]):
    """An object that notes which of its keys are asked for."""

    def __init__(self, asked: set[str], path: str, items: dict[str, Any]) -> None:
        super().__init__({key: watched(value, asked, f"{path}{key}") for key, value in items.items()})
        self._asked, self._path = asked, path

    def get(self, key: str, default: Any = None) -> Any:
        self._asked.add(self._path + key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self._asked.add(self._path + key)
        return super().__getitem__(key)


def watched(value: Any, asked: set[str], path: str) -> Any:
    if isinstance(value, dict):
        return Watched(asked, f"{path}.", value)
    return [watched(item, asked, path) for item in value] if isinstance(value, list) else value


RESULT = {
    "routes": [{"dst": "10.9.0.0/16", "gw": "10.9.0.1", "mtu": 1, "advmss": 1, "priority": 1, "table": 1, "scope": 1}],
    "dns": {"nameservers": [], "domain": "a", "search": [], "options": []},
    "addresses": [{"address": "10.8.0.1/24", "gateway": "10.8.0.2"}],
    "pod_annotations": False,
}
RANGE = {"range": "10.0.0.0/25", "range_start": "10.0.0.2", "range_end": "10.0.0.9", "exclude": []}
SUBNET = {"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.2", "rangeEnd": "10.0.0.9", "gateway": "10.0.0.1"}
SPACE = {"space": "blue", "network_name": "blue"}
WHOLE = {
    "native": {"pool": "p", **RESULT},
    "whereabouts": {
        **RANGE,
        **SPACE,
        **RESULT,
        "gateway": "10.0.0.1",
        "ipRanges": [{**RANGE, "range": "10.0.0.128/25", "range_start": "10.0.0.200", "range_end": "10.0.0.201"}],
        "enable_overlapping_ranges": True,
        "node_slice_size": "/26",
    },
    "host-local": {
        **SUBNET,
        **SPACE,
        **RESULT,
        "ranges": [[{**SUBNET, "subnet": "10.1.0.0/24", "rangeStart": "10.1.0.2", "rangeEnd": "10.1.0.9"}]],
        "resolvConf": "/etc/resolv.conf",
    },
}


@pytest.mark.parametrize("dialect", WHOLE)
def test_known_keys_are_those_that_a_dialect_reads(dialect: str) -> None:
    asked: set[str] = set()
    section = {"type": "ipamd", **WHOLE[dialect]}
    assert read_ipam(Watched(asked, "", {"ipam": section})).dialect == dialect
    ignored = reading_of({"ipam": section}, dialect).ignored
    assert ignored == (("node_slice_size",) if dialect == "whereabouts" else ())
    written = set(paths(section, "ipam"))
    assert written - asked == {"ipam.type"}, "what is known is read"
    others = {"ipam.pool", "ipam.range", "ipam.ipRanges", "ipam.subnet", "ipam.ranges"}
    assert {path for path in asked - written if path.startswith("ipam.")} <= others, "what is read is known"


def paths(value: Any, path: str) -> list[str]:
    """All keys in all depths, without the numbers of list items."""
    if isinstance(value, list):
        return [found for item in value for found in paths(item, path)]
    if not isinstance(value, dict):
        return []
    return [found for key, item in value.items() for found in (f"{path}.{key}", *paths(item, f"{path}.{key}"))]
