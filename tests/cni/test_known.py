"""What is told of an `ipam` section to a person who checks one."""

from __future__ import annotations

import pytest

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
