"""The dialect of whereabouts."""

from __future__ import annotations

from typing import Any

import pytest

from ipamd.core.model import Dns
from tests.support.cni_calls import refused
from tests.support.dialects import add_call, asked, section

NET = "10.0.0.0-24 in default: 10.0.0.0/24"


@pytest.mark.parametrize(
    ("ipam", "words"),
    [
        ({"range": "10.0.0.0/24"}, f"{NET} 10.0.0.1-10.0.0.254"),
        ({"range": "10.0.0.77/24"}, f"{NET} 10.0.0.1-10.0.0.254"),
        ({"range": "010.000.0.0/24"}, f"{NET} 10.0.0.1-10.0.0.254"),
        ({"range": "10.0.0.5-10.0.0.9/24"}, f"{NET} 10.0.0.5-10.0.0.9"),
        ({"range": " 10.0.0.5 - 10.0.0.9/24 "}, f"{NET} 10.0.0.5-10.0.0.9"),
        ({"range": "10.0.0.0/24", "range_start": "10.0.0.5", "range_end": "10.0.0.9"}, f"{NET} 10.0.0.5-10.0.0.9"),
        ({"range": "10.0.0.0/24", "range_start": "", "range_end": None}, f"{NET} 10.0.0.1-10.0.0.254"),
        ({"range": "10.0.0.0/24", "range_start": "10.0.0.0"}, f"{NET} 10.0.0.1-10.0.0.254"),
        ({"range": "10.0.0.0/24", "range_end": "10.0.0.255"}, f"{NET} 10.0.0.1-10.0.0.254"),
        ({"range": "10.0.0.5-10.0.0.9/24", "range_end": "10.0.0.7"}, f"{NET} 10.0.0.5-10.0.0.9"),
        ({"range": "10.0.0.0/31"}, "10.0.0.0-31 in default: 10.0.0.0/31 10.0.0.0-10.0.0.1"),
        (
            {"range": "2001:db8::/64"},
            "2001-db8---64 in default: 2001:db8::/64 2001:db8::1-2001:db8::ffff:ffff:ffff:ffff",
        ),
        ({"range": "2001:db8::1-2001:db8::3/64"}, "2001-db8---64 in default: 2001:db8::/64 2001:db8::1-2001:db8::3"),
        ({"range": "10.0.0.0/24", "exclude": []}, f"{NET} 10.0.0.1-10.0.0.254"),
        (
            {"range": "10.0.0.0/24", "exclude": ["10.0.0.9", "10.0.0.5/30", "10.0.0.8-10.0.0.8"]},
            f"{NET} 10.0.0.1-10.0.0.254 not 10.0.0.4-10.0.0.9",
        ),
        ({"range": "10.0.0.0/24", "gateway": "10.0.0.1"}, f"{NET} 10.0.0.1-10.0.0.254 gw 10.0.0.1"),
        ({"range": "10.0.0.0/24", "gateway": "192.0.2.1"}, f"{NET} 10.0.0.1-10.0.0.254 gw 192.0.2.1"),
        ({"range": "10.0.0.0/24", "gateway": "fe80::1"}, f"{NET} 10.0.0.1-10.0.0.254"),
        ({"range": "10.0.0.0/24", "gateway": ""}, f"{NET} 10.0.0.1-10.0.0.254"),
        ({"range": "10.0.0.0/24", "network_name": "blue"}, "blue-10.0.0.0-24 in blue: 10.0.0.0/24 10.0.0.1-10.0.0.254"),
        ({"range": "10.0.0.0/24", "space": "blue"}, "blue-10.0.0.0-24 in blue: 10.0.0.0/24 10.0.0.1-10.0.0.254"),
        ({"range": "10.0.0.0/24", "network_name": "default"}, f"{NET} 10.0.0.1-10.0.0.254"),
        ({"range": "10.0.0.0/24", "network_name": ""}, f"{NET} 10.0.0.1-10.0.0.254"),
        ({"range": "10.0.0.0/24", "enable_overlapping_ranges": True}, f"{NET} 10.0.0.1-10.0.0.254"),
        (
            {"range": "10.0.0.0/24", "enable_overlapping_ranges": False},
            "only-10.0.0.0-24 in only-10.0.0.0-24: 10.0.0.0/24 10.0.0.1-10.0.0.254",
        ),
        (
            {"range": "10.0.0.0/24", "network_name": "blue", "enable_overlapping_ranges": False},
            "only-blue-10.0.0.0-24 in only-blue-10.0.0.0-24: 10.0.0.0/24 10.0.0.1-10.0.0.254",
        ),
    ],
)
def test_forms_of_a_range(ipam: dict[str, Any], words: str) -> None:
    assert asked(**ipam) == [words]


def test_the_range_comes_before_the_others_and_the_gateway_is_that_of_its_family() -> None:
    ranges = [{"range": "fd00::/64", "exclude": ["fd00::1"]}, {"range": "10.1.0.0/24", "range_start": "10.1.0.9"}]
    assert asked(range="10.0.0.0/24", exclude=["10.0.0.1"], gateway="10.1.0.10", ipRanges=ranges) == [
        f"{NET} 10.0.0.1-10.0.0.254 gw 10.1.0.10 not 10.0.0.1-10.0.0.1",
        "fd00---64 in default: fd00::/64 fd00::1-fd00::ffff:ffff:ffff:ffff not fd00::1-fd00::1",
        "10.1.0.0-24 in default: 10.1.0.0/24 10.1.0.9-10.1.0.254 gw 10.1.0.10",
    ]


@pytest.mark.parametrize("range_", [None, ""])
def test_there_may_be_others_only(range_: object) -> None:
    assert asked(range=range_, ipRanges=[{"range": "10.0.0.0/24"}]) == [f"{NET} 10.0.0.1-10.0.0.254"]


def test_the_first_host_is_spared_for_a_bridge() -> None:
    assert asked(range="10.0.0.0/24", around={"isGateway": True}) == [
        "10.0.0.0-24 in default spared: 10.0.0.0/24 10.0.0.1-10.0.0.254"
    ]


def test_one_pool_gives_an_interface_one_address() -> None:
    halves: dict[str, Any] = {"range": "10.0.0.1-10.0.0.9/24", "ipRanges": [{"range": "10.0.0.11-10.0.0.19/24"}]}
    assert "two addresses of pool 10.0.0.0-24" in refused("add", section(**halves)).msg


@pytest.mark.parametrize(
    ("ipam", "words"),
    [
        ({"range": ""}, ["no range"]),
        ({"ipRanges": []}, ["no range"]),
        ({"ipRanges": [{}]}, ["ipam.ipRanges[0]", "no range"]),
        ({"ipRanges": [17]}, ["ipam.ipRanges[0]", "17"]),
        ({"ipRanges": {"range": "10.0.0.0/24"}}, ["ipam.ipRanges", "a list"]),
        ({"range": 17}, ["ipam.range", "17"]),
        ({"range": "10.0.0.0"}, ["ipam.range", "'10.0.0.0'", "prefix"]),
        ({"range": "10.0.0.5-10.0.0.9"}, ["ipam.range", "10.0.0.9", "prefix"]),
        ({"range": "10.0.0.9-10.0.0.5/24"}, ["ipam.range", "10.0.0.9", "10.0.0.5"]),
        ({"range": "10.0.1.5-10.0.0.9/24"}, ["ipam.range", "10.0.1.5", "10.0.0.0/24"]),
        ({"range": "fd00::1-10.0.0.9/24"}, ["ipam.range", "fd00::1"]),
        ({"range": "-10.0.0.9/24"}, ["ipam.range"]),
        ({"range": "::ffff:10.0.0.0/120"}, ["IPv4-mapped"]),
        ({"range": "10.0.0.0/24", "range_start": "10.0.1.1"}, ["ipam.range_start", "10.0.1.1"]),
        ({"range": "10.0.0.0/24", "range_end": "fd00::1"}, ["ipam.range_end", "fd00::1"]),
        ({"range": "10.0.0.0/24", "range_start": 5}, ["ipam.range_start", "5"]),
        (
            {"range": "10.0.0.0/24", "range_start": "10.0.0.9", "range_end": "10.0.0.5"},
            ["ipam.range_start", "10.0.0.9", "ipam.range_end", "10.0.0.5"],
        ),
        ({"range": "10.0.0.0/24", "range_start": "10.0.0.255"}, ["ipam", "10.0.0.0/24"]),
        ({"range": "10.0.0.0/24", "exclude": "10.0.0.1"}, ["ipam.exclude", "a list"]),
        ({"range": "10.0.0.0/24", "exclude": [17]}, ["ipam.exclude[0]", "17"]),
        ({"range": "10.0.0.0/24", "exclude": [""]}, ["ipam.exclude[0]"]),
        ({"range": "10.0.0.0/24", "exclude": ["10.0.0.1", "fd00::/64"]}, ["ipam.exclude[1]", "fd00::/64", "IPv6"]),
        ({"range": "10.0.0.0/24", "exclude": ["10.0.0.9-10.0.0.1"]}, ["ipam.exclude[0]", "10.0.0.9-10.0.0.1"]),
        ({"ipRanges": [{"range": "10.0.0.0/24", "exclude": ["x"]}]}, ["ipam.ipRanges[0].exclude[0]", "'x'"]),
        ({"range": "10.0.0.0/24", "gateway": "10.0.0.1/24"}, ["ipam.gateway", "10.0.0.1/24"]),
        ({"range": "10.0.0.0/24", "gateway": 1}, ["ipam.gateway", "1"]),
        ({"range": "10.0.0.0/24", "network_name": "a b"}, ["ipam.network_name", "a b"]),
        ({"range": "10.0.0.0/24", "network_name": 5}, ["ipam.network_name", "5"]),
        ({"range": "10.0.0.0/24", "network_name": "a", "space": "b"}, ["ipam.space 'b'", "ipam.network_name 'a'"]),
        ({"range": "10.0.0.0/24", "enable_overlapping_ranges": "no"}, ["ipam.enable_overlapping_ranges", "no"]),
        ({"range": "10.0.0.0/24", "pod_annotations": 1}, ["ipam.pod_annotations", "1"]),
        ({"range": "10.0.0.0/16", "ipRanges": [{"range": "10.0.9.0/24"}]}, ["overlap", "10.0.9.0/24"]),
        ({"range": "10.0.0.0/24", "ipRanges": [{"range": "10.0.0.0/24"}]}, ["overlap"]),
        ({"range": "10.0.0.0/24", "ranges": [[{"subnet": "10.0.0.0/24"}]]}, ["range,", "ranges,"]),
        ({"ipRanges": [{"range": "10.0.0.0/24"}], "subnet": "10.0.0.0/24"}, ["ipRanges,", "subnet,"]),
        ({"range": "10.0.0.0/24", "routes": [{"dst": "::/0"}]}, ["ipam.routes[0].dst", "::/0", "IPv6"]),
        ({"ipRanges": [{"range": f"10.0.{number}.0/24"} for number in range(17)]}, ["17 addresses", "16"]),
    ],
)
def test_a_bad_section_has_code_7_and_names_key_and_value(ipam: dict[str, Any], words: list[str]) -> None:
    error = refused("add", section(**ipam))
    assert error.code == 7
    assert [word for word in words if word not in error.msg] == [], error.msg
    assert refused("check", {**section(**ipam), "prevResult": {"ips": []}}).code == 7
    assert refused("status", section(**ipam)).code == 7


def test_two_addresses_of_a_family_have_no_room_in_an_old_result() -> None:
    two: dict[str, Any] = {"range": "10.0.0.0/24", "ipRanges": [{"range": "10.1.0.0/24"}]}
    assert refused("add", section(version="0.2.0", **two)).code == 7
    assert (
        refused("add", section(version="0.1.0", range="10.0.0.0/24", addresses=[{"address": "10.9.0.1/24"}])).code == 7
    )
    assert len(add_call(version="0.3.0", **two).requests) == 2
    assert len(add_call(version="0.2.0", range="10.0.0.0/24", ipRanges=[{"range": "fd00::/64"}]).requests) == 2


def test_a_route_may_be_of_the_family_of_a_static_address() -> None:
    call = add_call(range="10.0.0.0/24", addresses=[{"address": "fd00::9/64"}], routes=[{"dst": "::/0"}])
    assert [str(route.dst) for route in call.overrides.routes or ()] == ["::/0"]


def test_what_goes_into_the_result_is_read() -> None:
    call = add_call(range="10.0.0.0/24", dns={"nameservers": ["8.8.8.8"]}, routes=[])
    assert (call.dialect, call.overrides.dns, call.overrides.routes) == ("whereabouts", Dns(("8.8.8.8",)), ())


def test_keys_of_the_back_end_are_nobodys_business() -> None:
    keys: dict[str, Any] = {
        "kubernetes": {"kubeconfig": "/x"},
        "leader_lease_duration": "soon",
        "log_file": 17,
        "datastore": None,
        "reconciler_cron_expression": [],
        "configuration_path": "/nowhere",
        "sleep_for_race": "1",
        "colour": "blue",
    }
    assert add_call(range="10.0.0.0/24", **keys).warnings == ()


def test_slices_of_nodes_are_warned_of() -> None:
    (warning,) = add_call(range="10.0.0.0/24", node_slice_size="/28").warnings
    assert warning.startswith("ipam.node_slice_size is ignored")
