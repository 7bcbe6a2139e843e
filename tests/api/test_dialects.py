"""Calls with configurations as whereabouts and host-local have them, over HTTP."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects import section
from tests.support.stack import Got, Stack


def pod(name: str, container: str = "c1") -> dict[str, Any]:
    return {"CNI_Args": f"K8S_POD_NAMESPACE=t;K8S_POD_NAME={name}", "CNI_ContainerID": container}


def done(got: Got) -> Any:
    assert got.status == 200, got.raw
    return got.json if got.raw else None


def refused(got: Got, code: int, *words: str) -> None:
    assert got.json["code"] == code, got.raw
    assert [word for word in words if word not in got.json["msg"]] == [], got.raw


async def test_what_was_added_is_checked_listed_collected_and_deleted(stack: Stack) -> None:
    conf = section(range="192.0.2.0/29", gateway="192.0.2.6", ipRanges=[{"range": "2001:db8::/64"}])
    result = done(await stack.cni("add", conf, **pod("a")))
    ips = [{"address": "192.0.2.1/29", "gateway": "192.0.2.6"}, {"address": "2001:db8::1/64"}]
    assert result == {"cniVersion": "1.1.0", "ips": ips, "dns": {}}
    done(await stack.cni("check", {**conf, "prevResult": result}, **pod("a")))
    refused(await stack.cni("check", {**conf, "prevResult": {"ips": []}}, **pod("a")), 113, "192.0.2.1")
    pools = (await stack.ask("GET", "/v1/pools")).json["items"]
    assert [one["name"] for one in pools] == ["192.0.2.0-29", "2001-db8---64"]
    valid = {"cni.dev/valid-attachments": [{"containerID": "c1", "ifname": "eth0"}]}
    done(await stack.cni("gc", {**conf, **valid}))
    assert len((await stack.ask("GET", "/v1/reservations")).json["items"]) == 2
    done(await stack.cni("del", conf, **pod("a")))
    assert (await stack.ask("GET", "/v1/reservations")).json["items"] == []
    refused(await stack.cni("check", {**conf, "prevResult": result}, **pod("a")), 113)


async def test_a_check_knows_a_reservation_in_whatever_pool_of_the_subnets(stack: Stack) -> None:
    conf = section(subnet="192.0.2.0/29")
    refused(await stack.cni("check", {**conf, "prevResult": {"ips": []}}, **pod("a")), 113, "192.0.2.0-29")
    result = done(await stack.cni("add", conf, **pod("a")))
    await stack.pool("declared", "192.0.2.0/29", allow_overlap=True)
    done(await stack.cni("check", {**conf, "prevResult": result}, **pod("a")))
    other = done(await stack.cni("add", conf, **pod("b", "c2")))
    done(await stack.cni("check", {**conf, "prevResult": other}, **pod("b", "c2")))
    assert (await stack.ask("GET", "/v1/reservations/declared/t%2Fb")).status == 200


async def test_without_inline_pools_the_dialects_are_refused(stack: Stack) -> None:
    conf = section(range="192.0.2.0/29")
    assert done(await stack.cni("status", conf)) is None
    assert (await stack.ask("PUT", "/v1/settings", {"inline_pools": False})).status == 200
    refused(await stack.cni("add", conf, **pod("a")), 7, "192.0.2.0/29", "inline_pools")
    refused(await stack.cni("status", conf), 50, "inline_pools")
    done(await stack.cni("del", conf, **pod("a")))
    assert (await stack.ask("GET", "/v1/pools")).json["items"] == []


async def test_old_versions_have_room_for_one_of_a_family(stack: Stack) -> None:
    conf = section(version="0.2.0", range="192.0.2.0/29", ipRanges=[{"range": "198.51.100.0/29"}])
    refused(await stack.cni("add", conf, **pod("a")), 7, "0.2.0")
    assert (await stack.ask("GET", "/v1/pools")).json["items"] == []


async def test_name_servers_come_from_the_file_of_this_host(stack: Stack, tmp_path: Path) -> None:
    path = tmp_path / "resolv.conf"
    conf = section(subnet="192.0.2.0/29", resolvConf=str(path), dns={"nameservers": ["192.0.2.9"]})
    refused(await stack.cni("add", conf, **pod("a")), 7, f"ipam.resolvConf {path}", "No such file")
    assert (await stack.ask("GET", "/v1/reservations")).json["items"] == []
    path.write_text("nameserver 192.0.2.53\nsearch a.test\noptions ndots:2\n")
    result = done(await stack.cni("add", conf, **pod("a")))
    assert result["dns"] == {"nameservers": ["192.0.2.53"], "search": ["a.test"], "options": ["ndots:2"]}
    path.unlink()
    done(await stack.cni("del", conf, **pod("a")))


async def test_a_key_that_has_no_use_here_is_warned_of_once(stack: Stack, caplog: pytest.LogCaptureFixture) -> None:
    conf = section(range="192.0.2.0/24", node_slice_size="/28")
    with caplog.at_level(logging.WARNING, "ipamd.cni"):
        for name in "abc":
            done(await stack.cni("add", conf, **pod(name, name)))
        done(await stack.cni("add", {**conf, "name": "other"}, **pod("d", "d")))
    said = [record.getMessage() for record in caplog.records if "node_slice_size" in record.getMessage()]
    assert [text.partition(":")[0] for text in said] == [
        "configuration of CNI network net",
        "configuration of CNI network other",
    ]


async def test_a_default_route_goes_through_the_gateway_of_the_request(stack: Stack) -> None:
    conf = section(ranges=[[{"subnet": "192.0.2.0/29"}]], routes=[{"dst": "0.0.0.0/0"}, {"dst": "198.51.100.0/24"}])
    result = done(await stack.cni("add", conf, **pod("a")))
    assert result["routes"] == [{"dst": "0.0.0.0/0", "gw": "192.0.2.1"}, {"dst": "198.51.100.0/24"}]


async def test_an_annotation_asks_for_an_address_but_not_for_a_pool(stack: Stack) -> None:
    await stack.pool("p", "198.51.100.0/24")
    annotations = {"ipamd.io/pool": "p", "ipamd.io/addresses.eth0": "192.0.2.5"}
    conf = section(range="192.0.2.0/29", pod_annotations=True)
    conf["runtimeConfig"] = {"io.kubernetes.cri.pod-annotations": annotations}
    assert done(await stack.cni("add", conf, **pod("a")))["ips"] == [{"address": "192.0.2.5/29"}]
