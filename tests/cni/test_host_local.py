"""The dialect of host-local."""

from __future__ import annotations

from typing import Any

import pytest

from ipamd.core.model import Dns
from tests.support.cni_calls import refused
from tests.support.dialects import add_call, asked, section

NET = "10.0.0.0-24 in default: 10.0.0.0/24"
WHOLE = f"{NET} 10.0.0.1-10.0.0.254 gw 10.0.0.1"


def one(**keys: Any) -> dict[str, Any]:
    return {"ranges": [[{"subnet": "10.0.0.0/24", **keys}]]}


@pytest.mark.parametrize(
    ("ipam", "words"),
    [
        (one(), WHOLE),
        ({"subnet": "10.0.0.0/24"}, WHOLE),
        ({"subnet": "10.0.0.99/24", "ranges": []}, WHOLE),
        (one(rangeStart="10.0.0.5", rangeEnd="10.0.0.9"), f"{NET} 10.0.0.5-10.0.0.9 gw 10.0.0.1"),
        ({"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.5"}, f"{NET} 10.0.0.5-10.0.0.254 gw 10.0.0.1"),
        (one(rangeStart="", rangeEnd=None, gateway=""), WHOLE),
        (one(rangeStart="10.0.0.0", rangeEnd="10.0.0.255"), WHOLE),
        (one(gateway="10.0.0.254"), f"{NET} 10.0.0.1-10.0.0.254 gw 10.0.0.254"),
        (one(gateway="192.0.2.1"), f"{NET} 10.0.0.1-10.0.0.254 gw 192.0.2.1"),
        ({"subnet": "10.0.0.0/30"}, "10.0.0.0-30 in default: 10.0.0.0/30 10.0.0.1-10.0.0.2 gw 10.0.0.1"),
        ({"subnet": "10.0.0.0/31"}, "10.0.0.0-31 in default: 10.0.0.0/31 10.0.0.0-10.0.0.1"),
        ({"subnet": "10.0.0.7/32"}, "10.0.0.7-32 in default: 10.0.0.7/32 10.0.0.7-10.0.0.7"),
        ({"subnet": "fd00::/126"}, "fd00---126 in default: fd00::/126 fd00::1-fd00::3 gw fd00::1"),
        ({"subnet": "fd00::/127"}, "fd00---127 in default: fd00::/127 fd00::-fd00::1"),
        ({"subnet": "fd00::/128"}, "fd00---128 in default: fd00::/128 fd00::-fd00::"),
        ({"subnet": "10.0.0.0/24", "space": "b"}, "b-10.0.0.0-24 in b: 10.0.0.0/24 10.0.0.1-10.0.0.254 gw 10.0.0.1"),
    ],
)
def test_forms_of_a_range(ipam: dict[str, Any], words: str) -> None:
    assert asked(**ipam) == [words]


def test_the_subnets_of_an_inner_list_are_one_pool_and_no_gateway_of_the_configuration_is_given() -> None:
    inner = [{"subnet": "10.0.0.0/30", "gateway": "10.0.1.2"}, {"subnet": "10.0.1.0/30"}]
    first = "10.0.0.0/30 10.0.0.1-10.0.0.2 gw 10.0.1.2"
    second = "10.0.1.0/30 10.0.1.1-10.0.1.2 gw 10.0.1.1 not 10.0.1.2-10.0.1.2"
    assert asked(ranges=[inner, [{"subnet": "10.0.2.0/30"}], [{"subnet": "fd00::/126"}]]) == [
        f"10.0.0.0-30+10.0.1.0-30 in default: {first}, {second}",
        "10.0.2.0-30 in default: 10.0.2.0/30 10.0.2.1-10.0.2.2 gw 10.0.2.1",
        "fd00---126 in default: fd00::/126 fd00::1-fd00::3 gw fd00::1",
    ]


def test_two_parts_of_a_subnet_in_one_list_are_alternatives_in_one_pool() -> None:
    parts = [
        {"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.50", "rangeEnd": "10.0.0.60"},
        {"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.10", "rangeEnd": "10.0.0.20"},
    ]
    assert asked(ranges=[parts]) == [
        f"{NET} 10.0.0.50-10.0.0.60 gw 10.0.0.1, 10.0.0.0/24 10.0.0.10-10.0.0.20 gw 10.0.0.1"
    ]


def test_what_the_runtime_hands_over_comes_first_then_the_flat_form() -> None:
    runtime = {"runtimeConfig": {"ipRanges": [[{"subnet": "10.2.0.0/30"}]]}}
    found = asked(around=runtime, subnet="10.1.0.0/30", ranges=[[{"subnet": "10.0.0.0/30"}]])
    assert [words.partition(" ")[0] for words in found] == ["10.2.0.0-30", "10.1.0.0-30", "10.0.0.0-30"]


def test_what_the_runtime_hands_over_may_be_all() -> None:
    assert asked(around={"runtimeConfig": {"ipRanges": [[{"subnet": "10.0.0.0/24"}]]}}) == [WHOLE]


def test_what_the_runtime_hands_over_does_not_reach_the_other_dialects() -> None:
    runtime = {"runtimeConfig": {"ipRanges": [[{"subnet": "10.0.0.0/24"}]]}}
    assert add_call(around=runtime, pool="p").pools == ("p",)
    assert add_call(around=runtime, range="10.9.0.0/24").pools == ("10.9.0.0-24",)


def test_what_goes_into_the_result_is_read() -> None:
    call = add_call(
        subnet="10.0.0.0/24", routes=[{"dst": "0.0.0.0/0"}], resolvConf="/etc/resolv.conf", dataDir=17, colour="blue"
    )
    assert (call.dialect, call.resolv_conf, call.warnings) == ("host-local", "/etc/resolv.conf", ())
    assert [str(route.dst) for route in call.overrides.routes or ()] == ["0.0.0.0/0"]
    assert add_call(subnet="10.0.0.0/24", resolvConf="", dns={"domain": "x"}).overrides.dns == Dns(domain="x")
    assert add_call(subnet="10.0.0.0/24").resolv_conf is None


@pytest.mark.parametrize(
    ("ipam", "words"),
    [
        ({"ranges": []}, ["no range"]),
        ({"subnet": ""}, ["no range"]),
        ({"ranges": [[]]}, ["ipam.ranges[0]", "empty"]),
        ({"ranges": [[{"rangeStart": "10.0.0.4"}]]}, ["ipam.ranges[0][0]", "no subnet"]),
        ({"ranges": [{"subnet": "10.0.0.0/24"}]}, ["ipam.ranges[0]", "a list"]),
        ({"ranges": [["10.0.0.0/24"]]}, ["ipam.ranges[0][0]", "an object"]),
        ({"ranges": "10.0.0.0/24"}, ["ipam.ranges", "a list"]),
        ({"subnet": 17}, ["ipam.subnet", "17"]),
        (one(subnet="10.0.0.0"), ["ipam.ranges[0][0].subnet", "10.0.0.0"]),
        (one(rangeStart="10.0.1.1"), ["ipam.ranges[0][0].rangeStart", "10.0.1.1"]),
        (one(rangeEnd="10.0.1.1"), ["ipam.ranges[0][0].rangeEnd", "10.0.1.1"]),
        (one(rangeEnd=9), ["ipam.ranges[0][0].rangeEnd", "9"]),
        (one(rangeStart="10.0.0.9", rangeEnd="10.0.0.5"), ["rangeStart", "10.0.0.9", "rangeEnd", "10.0.0.5"]),
        (one(gateway="x"), ["ipam.ranges[0][0].gateway", "'x'"]),
        (one(gateway="fd00::1"), ["ipam.ranges[0][0].gateway", "fd00::1", "IPv6"]),
        ({"ranges": [[{"subnet": "10.0.0.0/24"}, {"subnet": "fd00::/64"}]]}, ["ipam.ranges[0]", "mixes"]),
        ({"ranges": [[{"subnet": "10.0.0.0/22"}, {"subnet": "10.0.2.0/24"}]]}, ["overlap", "10.0.2.0/24"]),
        ({"ranges": [[{"subnet": "10.0.0.0/22"}], [{"subnet": "10.0.2.0/24"}]]}, ["overlap", "10.0.2.0/24"]),
        ({"subnet": "10.0.0.0/24", "ranges": [[{"subnet": "10.0.0.0/24"}]]}, ["overlap"]),
        ({"subnet": "10.0.0.0/24", "resolvConf": 5}, ["ipam.resolvConf", "5"]),
        (
            {"subnet": "10.0.0.0/24", "resolvConf": "etc/resolv.conf"},
            ["ipam.resolvConf", "etc/resolv.conf", "absolute"],
        ),
        ({"subnet": "10.0.0.0/24", "routes": [{"dst": "::/0"}]}, ["ipam.routes[0].dst", "::/0"]),
        ({"subnet": "10.0.0.0/24", "range": "10.0.0.0/24"}, ["range,", "subnet,"]),
        (
            {"ranges": [[{"subnet": f"10.0.{n}.0/24"} for n in range(256)] + [{"subnet": "10.9.0.0/24"}]]},
            ["257", "256"],
        ),
    ],
)
def test_a_bad_section_has_code_7_and_names_key_and_value(ipam: dict[str, Any], words: list[str]) -> None:
    error = refused("add", section(**ipam))
    assert error.code == 7
    assert [word for word in words if word not in error.msg] == [], error.msg


@pytest.mark.parametrize("ranges", [17, {"subnet": "10.0.0.0/24"}, [[{"subnet": "x"}]]])
def test_what_the_runtime_hands_over_is_checked_too(ranges: object) -> None:
    error = refused("add", section(subnet="10.1.0.0/24", around={"runtimeConfig": {"ipRanges": ranges}}))
    assert (error.code, "runtimeConfig.ipRanges" in error.msg) == (7, True)
