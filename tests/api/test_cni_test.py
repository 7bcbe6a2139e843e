"""Checking a network configuration: what the server understood, what it would give, and what nobody reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.api.test_shapes import check_problem
from tests.support.stack import Stack, conf

WHEREABOUTS = {
    "type": "whereabouts",
    "range": "10.20.0.5-10.20.0.9/24",
    "exclude": ["10.20.0.5/32"],
    "gateway": "10.20.0.6",
    "ipRanges": [{"range": "fd00::/64"}],
    "routes": [{"dst": "0.0.0.0/0"}],
    "kubernetes": {"kubeconfig": "/nonexistent"},
    "range_ende": "10.20.0.8",
}


def configuration(ipam: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"cniVersion": "1.0.0", "name": "net", "type": "macvlan", "ipam": ipam, **more}


async def said_of(stack: Stack, ipam: dict[str, Any], args: str = "", **more: Any) -> Any:
    got = await stack.ask("POST", "/v1/cni/test", {"conf": configuration(ipam, **more), "args": args})
    assert got.status == 200, got.raw
    return got.json


async def test_of_the_whereabouts_dialect(stack: Stack) -> None:
    said = await said_of(stack, WHEREABOUTS, "K8S_POD_NAMESPACE=t;K8S_POD_NAME=a")
    assert (said["dialect"], said["cni_network"], said["pod_ref"], said["ifname"]) == (
        "whereabouts",
        "net",
        "t/a",
        "eth0",
    )
    four, six = said["pools"]
    assert (four["pool"], four["space"], four["origin"]) == ("10.20.0.0-24", "default", "new")
    assert (four["addresses"], six["pool"], six["addresses"]) == (["10.20.0.7/24"], "fd00---64", ["fd00::1/64"])
    (asked,) = four["ranges"]
    bounds = asked["subnet"], asked["first"], asked["last"], asked["exclude"], asked["gateway"]
    assert bounds == ("10.20.0.0/24", "10.20.0.5", "10.20.0.9", ["10.20.0.5"], "10.20.0.6")
    assert asked["verdict"] == "10.20.0.5-10.20.0.9 has 3 of 3 free: 1 excluded, 1 gateway, 249 outside the limits"
    assert said["result"]["ips"][0] == {"address": "10.20.0.7/24", "gateway": "10.20.0.6"}
    assert said["result"]["routes"] == [{"dst": "0.0.0.0/0", "gw": "10.20.0.6"}]
    assert said["ignored"] == ["kubernetes", "range_ende"]
    assert any(note.startswith('ipam.type is "whereabouts"') for note in said["notes"])
    assert "range_ende is ignored: no such key is known; range_end may be meant" in said["notes"]
    assert "pool 10.20.0.0-24 does not exist yet: the first ADD makes it" in said["notes"]


async def test_the_first_host_that_a_bridge_takes_is_told(stack: Stack) -> None:
    ipam = {"type": "ipamd", "range": "10.21.0.0/29"}
    said = await said_of(stack, ipam, isGateway=True)
    assert said["pools"][0]["addresses"] == ["10.21.0.2/29"]
    assert "10.21.0.1 is not handed out: the bridge takes the first host where a range has no gateway" in said["notes"]


async def test_nothing_is_changed(stack: Stack) -> None:
    await said_of(stack, WHEREABOUTS)
    for items in ("/v1/pools", "/v1/events", "/v1/reservations"):
        assert (await stack.ask("GET", items)).json["items"] == []


async def test_of_the_host_local_dialect_with_what_is_there(stack: Stack, tmp_path: Path) -> None:
    resolv = tmp_path / "resolv.conf"
    resolv.write_text("nameserver 10.0.0.53\n")
    ranges = [[{"subnet": "10.30.0.0/29"}, {"subnet": "10.30.1.0/29", "rangeEnd": "10.30.1.3"}]]
    ipam = {"type": "ipamd", "ranges": ranges, "resolvConf": str(resolv), "dataDir": "/run/ipam"}
    for pod in range(6):
        got = await stack.cni("add", configuration(ipam), CNI_ContainerID=f"c{pod}", CNI_Args=f"IPAMD_POD_REF=t/{pod}")
        assert got.status == 200, got.raw
    said = await said_of(stack, ipam)
    (pool,) = said["pools"]
    assert (said["dialect"], pool["pool"], pool["origin"]) == ("host-local", "10.30.0.0-29+10.30.1.0-29", "inline")
    assert pool["addresses"] == ["10.30.1.3/29"]
    assert [one["verdict"] for one in pool["ranges"]] == [
        "10.30.0.1-10.30.0.6 is full: 5 bound, 1 gateway",
        "10.30.1.1-10.30.1.3 has 1 of 2 free: 1 bound, 1 gateway, 3 outside the limits",
    ]
    assert said["result"]["dns"] == {"nameservers": ["10.0.0.53"]}
    assert said["ignored"] == ["dataDir"]
    own = await said_of(stack, ipam, "IPAMD_POD_REF=t/0")
    assert own["pools"][0]["addresses"] == ["10.30.0.2/29"]


async def test_from_afar_no_file_is_read(stack: Stack, tmp_path: Path) -> None:
    resolv = tmp_path / "resolv.conf"
    resolv.write_text("nameserver 10.0.0.53\n")
    body = {"conf": configuration({"type": "ipamd", "subnet": "10.30.0.0/29", "resolvConf": str(resolv)})}
    said = (await stack.ask_tcp("POST", "/v1/cni/test", body)).json
    assert said["result"]["dns"] == {}
    assert f"{resolv} was not read: only a server on the node itself shows the dns of the result" in said["notes"]
    body["conf"]["ipam"]["resolvConf"] = "/nonexistent"
    check_problem(await stack.ask("POST", "/v1/cni/test", body), "invalid_request")


async def test_a_full_range_is_told_with_the_limits_of_the_configuration(stack: Stack) -> None:
    ipam = {"type": "ipamd", "range": "10.40.0.0/29", "range_start": "10.40.0.2", "range_end": "10.40.0.3"}
    for pod in ("a", "b"):
        await stack.cni("add", configuration(ipam), CNI_ContainerID=pod, CNI_Args=f"IPAMD_POD_REF=t/{pod}")
    clause = "10.40.0.2-10.40.0.3 is full: 2 bound, 4 outside the limits"
    said = await said_of(stack, ipam)
    assert (said["granted"], said["code"], said["cni_code"], said["result"]) == (False, "pool_exhausted", 110, None)
    assert said["detail"] == (
        f"pool 10.40.0.0-29 has no free address: {clause}; ipamctl reservation list --pool 10.40.0.0-29 shows the "
        "holders, a wider range in the network configuration gives more"
    )
    assert said["pools"][0]["ranges"][0]["verdict"] == clause
    refused = (await stack.cni("add", configuration(ipam), CNI_ContainerID="c", CNI_Args="IPAMD_POD_REF=t/c")).json
    assert (refused["code"], "details" in refused) == (110, False)
    assert refused["msg"].startswith(f"pool 10.40.0.0-29 has no free address: {clause}; ipamctl")


async def test_a_new_pool_of_which_nothing_is_left_is_told_too(stack: Stack) -> None:
    ipam = {"type": "ipamd", "range": "10.41.0.0/30", "exclude": ["10.41.0.0/30"]}
    said = await said_of(stack, ipam)
    assert said["detail"].startswith(
        "pool 10.41.0.0-30 has no free address: 10.41.0.1-10.41.0.2 gives nothing: 2 excluded;"
    )
    assert (await stack.ask("GET", "/v1/pools")).json["items"] == []


async def test_each_range_says_that_it_does_not_allow_an_address(stack: Stack) -> None:
    ipam = {"type": "ipamd", "range": "10.42.0.0/24", "range_end": "10.42.0.9", "gateway": "10.42.0.1"}
    said = await said_of(stack, ipam, "IP=10.42.0.10")
    assert (said["code"], said["cni_code"], said["requested"]) == ("address_not_allowed", 111, ["10.42.0.10"])
    assert said["detail"] == "pool 10.42.0.0-24 does not give 10.42.0.10: it lies outside 10.42.0.1-10.42.0.9"
    verdict = said["pools"][0]["ranges"][0]["verdict"]
    assert verdict == "10.42.0.1-10.42.0.9 does not allow 10.42.0.10: it lies outside 10.42.0.1-10.42.0.9"


@pytest.mark.parametrize(
    ("ipam", "parts"),
    [
        ({"range": "10.0.0.0/24", "range_start": "10.0.1.1"}, ("range_start", "10.0.1.1", "code 7")),
        ({"range": "10.0.0.9-10.0.0.5/24"}, ("10.0.0.9", "10.0.0.5", "code 7")),
        ({"pool": "p", "subnet": "10.0.0.0/24"}, ("pool", "subnet", "code 7")),
        ({}, ("pool", "code 7")),
    ],
)
async def test_a_bad_configuration_is_refused_by_key_and_value(
    stack: Stack, ipam: dict[str, Any], parts: tuple[str, ...]
) -> None:
    got = await stack.ask("POST", "/v1/cni/test", {"conf": configuration({"type": "ipamd", **ipam})})
    detail = check_problem(got, "invalid_request")["detail"]
    for part in parts:
        assert part in detail


async def test_a_pool_that_is_missing_or_asked_with_the_wrong_version(stack: Stack) -> None:
    said = (await stack.ask("POST", "/v1/cni/test", {"conf": conf("nosuch")})).json
    assert (said["granted"], said["code"], said["cni_code"], said["pools"]) == (False, "pool_not_found", 7, [])
    twice = {"type": "ipamd", "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "10.2.0.0/24"}]]}
    got = await stack.ask("POST", "/v1/cni/test", {"conf": {**configuration(twice), "cniVersion": "0.2.0"}})
    assert "code 7" in check_problem(got, "invalid_request")["detail"]
    await stack.ask("PUT", "/v1/settings", {"inline_pools": False})
    said = await said_of(stack, {"type": "ipamd", "subnet": "10.1.0.0/24"})
    assert (said["code"], "inline_pools" in said["detail"]) == ("invalid_request", True)
