"""Pools over HTTP: both ways to write one, what comes back, and what changing and deleting strands."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.test_shapes import check_problem
from tests.support.stack import Stack, conf

FULL: dict[str, Any] = {
    "name": "full",
    "space": "blue",
    "ranges": [
        [{"subnet": "10.0.0.7/24", "range_start": "10.0.0.0", "exclude": ["10.0.0.8/30", "10.0.0.3-10.0.0.5"]}],
        [{"subnet": "2001:db8::/64", "gateway": "fe80::1"}],
    ],
    "routes": [{"dst": "10.9.9.9/8"}, {"dst": "::/0", "gw": "2001:DB8::1"}],
    "dns": {"nameservers": ["10.0.0.053"], "search": ["svc.local"]},
    "strategy": "round-robin",
    "cooldown_s": 7,
    "cooldown_min_s": 2,
    "hold_s": -1,
    "reclaim": "after:600",
    "allow_overlap": True,
    "labels": {"team": "storage"},
}


async def test_a_pool_comes_back_in_canonical_form(stack: Stack) -> None:
    made = await stack.ask("POST", "/v1/pools", FULL)
    assert made.status == 201
    pool = made.json
    assert pool.pop("created").endswith("Z")
    assert pool == {
        **FULL,
        "ranges": [
            [{"subnet": "10.0.0.0/24", "range_start": "10.0.0.0", "exclude": ["10.0.0.8/30", "10.0.0.3-10.0.0.5"]}],
            [{"subnet": "2001:db8::/64", "gateway": "fe80::1"}],
        ],
        "routes": [{"dst": "10.0.0.0/8"}, {"dst": "::/0", "gw": "2001:db8::1"}],
        "dns": {"nameservers": ["10.0.0.53"], "search": ["svc.local"]},
        "inline": False,
    }
    shown = await stack.ask("GET", "/v1/pools/full")
    assert {key: value for key, value in shown.json.items() if key != "created"} == pool


async def test_what_is_answered_can_be_sent_back(stack: Stack) -> None:
    await stack.ask("POST", "/v1/pools", FULL)
    shown = (await stack.ask("GET", "/v1/pools/full")).json
    assert (await stack.ask("POST", "/v1/pools", shown)).status == 200
    put = await stack.ask("PUT", "/v1/pools/full", shown)
    assert (put.status, put.json["stranded"]) == (200, [])


async def test_no_pod_gets_the_gateway_of_another_range_of_the_pool(stack: Stack) -> None:
    parts = [
        {"subnet": "10.0.0.0/29", "range_end": "10.0.0.1", "gateway": "10.0.0.2"},
        {"subnet": "10.0.0.0/29", "range_start": "10.0.0.2", "range_end": "10.0.0.3"},
    ]
    made = await stack.ask("POST", "/v1/pools", {"name": "p", "ranges": [parts]})
    assert made.json["ranges"][0][1]["exclude"] == ["10.0.0.2"]
    assert (await stack.ask("POST", "/v1/pools", {"name": "p", "ranges": [parts]})).status == 200
    given = [await stack.ask("POST", "/v1/reservations", {"pool": "p", "pod_ref": f"t/{one}"}) for one in range(3)]
    assert [one.status for one in given] == [201, 201, 409]
    assert [one.json["attachments"][0]["addresses"] for one in given[:2]] == [["10.0.0.1/29"], ["10.0.0.3/29"]]
    assert (await stack.ask("GET", "/v1/addresses/10.0.0.2")).json["state"] == "gateway"


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"colour": "blue"}, ["colour"]),
        ({"name": None}, ["name"]),
        ({"name": "a/b"}, ["name", "a/b"]),
        ({"cooldown_s": "soon"}, ["cooldown_s"]),
        ({"cooldown_s": 1.5}, ["cooldown_s"]),
        ({"cooldown_s": 2**100}, ["cooldown_s"]),
        ({"subnet": ["10.0.0.0/24"]}, ["subnet"]),
        ({"subnet": None}, ["ranges"]),
        ({"ranges": [[{"subnet": "10.1.0.0/24"}]]}, ["subnet"]),
        ({"ranges": [[{"subnet": "10.1.0.0/24", "size": 3}]], "subnet": None}, ["ranges", "size"]),
        ({"ranges": [[{}]], "subnet": None}, ["ranges", "subnet"]),
        ({"exclude": ["10.0.0.1", "10.0.0"]}, ["exclude[1]", "10.0.0"]),
        ({"labels": {"a": 1}}, ["labels"]),
        ({"allow_overlap": "yes"}, ["allow_overlap"]),
    ],
)
async def test_a_bad_definition_names_the_field(shared: Stack, change: dict[str, Any], words: list[str]) -> None:
    body = {"name": "p", "subnet": "10.0.0.0/24", **change}
    got = await shared.ask("POST", "/v1/pools", {key: value for key, value in body.items() if value is not None})
    detail = check_problem(got, "invalid_request")["detail"]
    assert all(word in detail for word in words), detail
    assert (await shared.ask("GET", "/v1/pools")).json["items"] == []


async def test_put_takes_the_name_of_its_path_only(stack: Stack) -> None:
    await stack.pool()
    got = await stack.ask("PUT", "/v1/pools/p", {"name": "q", "subnet": "192.0.2.0/24"})
    assert "q" in check_problem(got, "invalid_request")["detail"]
    check_problem(await stack.ask("PUT", "/v1/pools/q", {"name": "q", "subnet": "192.0.2.0/24"}), "pool_not_found")


async def test_a_change_lists_whom_it_strands_and_a_dry_run_only_says_so(stack: Stack) -> None:
    await stack.pool()
    await stack.cni("add", conf(), CNI_Args="K8S_POD_NAMESPACE=t;K8S_POD_NAME=a")
    stranded = [{"pod_ref": "t/a", "ifname": "eth0", "address": "192.0.2.1"}]
    smaller = {"name": "p", "subnet": "192.0.2.0/24", "range_start": "192.0.2.5"}
    dry = await stack.ask("PUT", "/v1/pools/p?dry_run=true", smaller)
    assert (dry.status, dry.json["stranded"]) == (200, stranded)
    assert "range_start" not in (await stack.ask("GET", "/v1/pools/p")).json["ranges"][0][0]
    assert (await stack.ask("PUT", "/v1/pools/p", smaller)).json["stranded"] == stranded

    elsewhere = {"name": "p", "subnet": "198.51.100.0/24"}
    assert check_problem(await stack.ask("PUT", "/v1/pools/p", elsewhere), "pool_in_use")["stranded"] == stranded
    assert (await stack.ask("PUT", "/v1/pools/p?dry_run", elsewhere)).json["stranded"] == stranded
    assert (await stack.ask("PUT", "/v1/pools/p?force=true", elsewhere)).json["stranded"] == stranded
    row = (await stack.ask("GET", "/v1/reservations/p/t%2Fa")).json
    assert row["attachments"][0]["addresses"] == ["192.0.2.1/24"]


async def test_deleting_by_force_frees_any_number(stack: Stack) -> None:
    await stack.pool(subnet="10.0.0.0/21")
    for number in range(3):
        body = {"pool": "p", "pod_ref": f"t/pin{number}", "pin": True}
        assert (await stack.ask("POST", "/v1/reservations", body)).status == 201
    assert check_problem(await stack.ask("DELETE", "/v1/pools/p"), "pool_in_use")["pool"] == "p"
    dry = await stack.ask("DELETE", "/v1/pools/p?dry_run=true")
    gone = await stack.ask("DELETE", "/v1/pools/p?force=true", headers={"Idempotency-Key": "once"})
    assert dry.json == gone.json
    assert [one["pod_ref"] for one in gone.json["stranded"]] == ["t/pin0", "t/pin1", "t/pin2"]
    again = await stack.ask("DELETE", "/v1/pools/p?force=true", headers={"Idempotency-Key": "once"})
    assert (again.status, again.json) == (200, gone.json)
    check_problem(await stack.ask("DELETE", "/v1/pools/p?force=true"), "pool_not_found")


async def test_usage_counts_by_family_and_large_counts_are_text(stack: Stack) -> None:
    await stack.ask("POST", "/v1/pools", {**FULL, "cooldown_s": 100})
    got = (await stack.ask("GET", "/v1/pools/full/usage")).json
    assert got["ipv4"]["total"] == 254 - 4 - 3
    assert got["ipv6"]["total"] == str(2**64 - 1)
    for counts in got.values():
        parts = ("bound", "held", "cooling", "quarantined", "withheld", "elsewhere", "free")
        assert int(counts["total"]) == sum(int(counts[part]) for part in parts)


async def test_lists_go_on_where_they_stopped(stack: Stack) -> None:
    for number in range(5):
        await stack.pool(f"p{number}", f"10.0.{number}.0/24")
    seen: list[str] = []
    path = "/v1/pools?limit=2"
    while True:
        page = (await stack.ask("GET", path)).json
        assert len(page["items"]) <= 2
        seen += [item["name"] for item in page["items"]]
        if page["next"] is None:
            break
        path = f"/v1/pools?limit=2&cursor={page['next']}"
    assert seen == ["p0", "p1", "p2", "p3", "p4"]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "query",
    ["limit=x", "limit=0", "limit=5001", "limit=-1", "cursor=%21", "cursor=bm8", "cursor=WzFd", "limit=1&limit=2", "x=1",
     "stale=yes", "cursor=%ff", "limit=%00"],
)  # fmt: skip
async def test_bad_query_parameters_are_refused(shared: Stack, query: str) -> None:
    name = query.split("=", maxsplit=1)[0]
    detail = check_problem(await shared.ask("GET", f"/v1/pools?{query}"), "invalid_request")["detail"]
    assert name in detail or "query parameter" in detail


async def test_why_says_what_an_add_would_get(stack: Stack) -> None:
    await stack.pool(subnet="192.0.2.0/29", exclude=["192.0.2.3-192.0.2.6"], cooldown_s=0)
    fresh = (await stack.ask("GET", "/v1/pools/p/why")).json
    assert (fresh["granted"], fresh["addresses"]) == (True, ["192.0.2.1/29"])
    for pod in ("a", "b"):
        await stack.cni("add", conf(), CNI_ContainerID=pod, CNI_Args=f"K8S_POD_NAMESPACE=t;K8S_POD_NAME={pod}")
    full = (await stack.ask("GET", "/v1/pools/p/why?pod_ref=t%2Fc&ifname=eth0")).json
    assert (full["granted"], full["code"], full["pod_ref"]) == (False, "pool_exhausted", "t/c")
    assert (full["ranges"][0]["bound"], full["ranges"][0]["excluded"], full["ranges"][0]["free"]) == (2, 4, 0)
    assert "2 bound" in full["detail"]
    own = (await stack.ask("GET", "/v1/pools/p/why?pod_ref=t%2Fa")).json
    assert own["addresses"] == ["192.0.2.1/29"]
    assert "has now" in own["detail"]
    check_problem(await stack.ask("GET", "/v1/pools/nosuch/why"), "pool_not_found")
    check_problem(await stack.ask("GET", "/v1/pools/p/why?pod_ref=nobody"), "invalid_request")


async def test_why_says_how_each_address_is_found(stack: Stack) -> None:
    await stack.pool(subnet="192.0.2.1/32")
    said = await detail_of(stack)
    assert said == "eth0 of a pod never seen would get 192.0.2.1/32, by strategy lowest"
    await stack.cni("add", conf(), CNI_ContainerID="a", CNI_Args="IPAMD_POD_REF=t/a")
    await stack.cni("del", conf(), CNI_ContainerID="a")
    assert "192.0.2.1/32, which it had last" in await detail_of(stack, "?pod_ref=t%2Fa")
    assert "192.0.2.1/32, which has cooled longest, because nothing else is free" in await detail_of(stack)
    ranges = [[{"subnet": "192.0.2.1/32"}], [{"subnet": "2001:db8::/64"}]]
    await stack.ask("PUT", "/v1/pools/p", {"name": "p", "ranges": ranges})
    both = await detail_of(stack, "?pod_ref=t%2Fa")
    assert both.endswith("192.0.2.1/32, which it had last; 2001:db8::1/64, by strategy lowest")


async def test_why_says_of_each_range_that_it_does_not_allow_an_address(stack: Stack) -> None:
    ranges = [
        {"subnet": "192.0.2.0/29", "gateway": "192.0.2.1", "exclude": ["192.0.2.2"]},
        {"subnet": "198.51.100.0/30", "range_end": "198.51.100.1"},
    ]
    await stack.ask("POST", "/v1/pools", {"name": "p", "ranges": [ranges, [{"subnet": "2001:db8::/64"}]]})
    gateway = (await stack.ask("GET", "/v1/pools/p/why?addresses=192.0.2.1")).json
    assert (gateway["granted"], gateway["code"]) == (False, "address_not_allowed")
    assert [one["verdict"] for one in gateway["ranges"]] == [
        "192.0.2.1-192.0.2.6 does not allow 192.0.2.1: it is the gateway",
        "198.51.100.1 does not allow 192.0.2.1: it lies outside 198.51.100.0/30",
        f"2001:db8::1-2001:db8::ffff:ffff:ffff:ffff has {2**64 - 1} of {2**64 - 1} free",
    ]
    both = (await stack.ask("GET", "/v1/pools/p/why?addresses=192.0.2.2,198.51.100.2")).json
    assert "192.0.2.1-192.0.2.6 does not allow 192.0.2.2: it is excluded" in both["ranges"][0]["verdict"]
    assert "198.51.100.1 does not allow 198.51.100.2: it lies outside" in both["ranges"][1]["verdict"]
    asked = (await stack.ask("GET", "/v1/pools/p/why?addresses=198.51.100.1")).json
    assert asked["addresses"] == ["198.51.100.1/30", "2001:db8::1/64"]
    assert "198.51.100.1/30, as it asks; 2001:db8::1/64, by strategy lowest" in asked["detail"]
    check_problem(await stack.ask("GET", "/v1/pools/p/why?addresses=192.0.2.1,x"), "invalid_request")


async def detail_of(stack: Stack, query: str = "") -> str:
    return str((await stack.ask("GET", f"/v1/pools/p/why{query}")).json["detail"])
