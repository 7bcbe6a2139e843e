"""Reservations over HTTP: made, found, released, and made again under one key."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.api.test_shapes import check_problem
from tests.support.eventually import PATIENCE_S
from tests.support.stack import Stack, conf


async def reserve(stack: Stack, pod: str = "t/a", status: int = 201, **more: Any) -> Any:
    got = await stack.ask("POST", "/v1/reservations", {"pool": "p", "pod_ref": pod, **more})
    assert got.status == status, got.raw
    return got.json


async def test_with_a_container_it_is_bound_and_without_it_is_held(stack: Stack) -> None:
    await stack.pool()
    bound = await reserve(stack, container_id="c1", node="box")
    assert bound["attachments"][0] | {"since": ""} == {
        "ifname": "eth0",
        "cni_network": None,
        "container_id": "c1",
        "node": "box",
        "netns": None,
        "state": "bound",
        "generation": 1,
        "since": "",
        "addresses": ["192.0.2.1/24"],
    }
    held = await reserve(stack, "t/b", note="for later", ifname="net1", addresses=["192.0.2.9"], pin=True)
    assert (held["pinned"], held["note"], held["attachments"][0]["state"]) == (True, "for later", "held")
    assert held["attachments"][0]["addresses"] == ["192.0.2.9/24"]
    again = await reserve(stack, status=200, container_id="c2")
    assert again["attachments"][0]["generation"] == 2


async def test_what_is_held_for_a_time_ends_by_itself(stack: Stack) -> None:
    await stack.pool(subnet="192.0.2.7/32", cooldown_s=0)
    await reserve(stack, ttl_s=0)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            got = await stack.ask("POST", "/v1/reservations", {"pool": "p", "pod_ref": "t/b"})
            if got.status == 201:
                break
            check_problem(got, "pool_exhausted")
            await asyncio.sleep(0.02)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"pool": "a b"}, "pool"),
        ({"pod_ref": "nobody"}, "pod_ref"),
        ({"pod_ref": "a/b/c"}, "pod_ref"),
        ({"pod_ref": "t/" + "x" * 254}, "pod_ref"),
        ({"pod_ref": "t/a\x00b"}, "NUL"),
        ({"ifname": "a/b"}, "ifname"),
        ({"container_id": "-x"}, "container_id"),
        ({"node": "n"}, "container_id"),
        ({"node": "n:", "container_id": "c"}, "node"),
        ({"addresses": ["here"]}, "addresses[0]"),
        ({"addresses": ["192.0.2.1/24"]}, "addresses[0]"),
        ({"ttl_s": -1}, "ttl_s"),
        ({"ttl_s": 2**64}, "ttl_s"),
        ({"ttl_s": 5, "pin": True}, "ttl_s"),
        ({"ttl_s": 5, "container_id": "c"}, "ttl_s"),
        ({"pin": 1}, "pin"),
        ({"note": "x" * 1025}, "note"),
    ],
)
async def test_a_bad_request_names_the_field(shared: Stack, change: dict[str, Any], word: str) -> None:
    await shared.pool()
    got = await shared.ask("POST", "/v1/reservations", {"pool": "p", "pod_ref": "t/a", **change})
    assert word in check_problem(got, "invalid_request")["detail"]
    assert (await shared.ask("GET", "/v1/reservations")).json["items"] == []


async def test_the_refusal_of_a_full_pool_counts_what_holds_it(stack: Stack) -> None:
    await stack.pool(
        subnet="192.0.2.0/29", exclude=["192.0.2.6"], gateway="192.0.2.1", cooldown_s=600, cooldown_min_s=600
    )
    await reserve(stack, "t/a", container_id="a")
    await reserve(stack, "t/b", pin=True)
    await reserve(stack, "t/c", container_id="c")
    await stack.ask("DELETE", "/v1/reservations/p/t%2Fc?container_id=c")
    await stack.ask("POST", "/v1/addresses/192.0.2.5/quarantine", {"note": "duplicate seen"})
    got = await stack.ask("POST", "/v1/reservations", {"pool": "p", "pod_ref": "t/d"})
    problem = check_problem(got, "pool_exhausted")
    full = "192.0.2.1-192.0.2.6 is full: 1 bound, 1 held, 1 cooling, 1 quarantined, 1 excluded, 1 gateway"
    assert problem["detail"] == (
        f"pool p has no free address: {full}; "
        "ipamctl reservation list --pool p shows the holders, ipamctl pool update p makes it larger"
    )
    assert problem["ranges"] == [full]


async def test_filters_and_pages(stack: Stack) -> None:
    await stack.pool()
    await stack.pool("q", "2001:db8::/64")
    for number in range(3):
        await stack.cni("add", conf(["p", "q"]), CNI_ContainerID=f"c{number}", CNI_Args=f"IPAMD_POD_REF=t/{number}")
    await reserve(stack, "t/held")

    async def found(query: str) -> list[tuple[str, str]]:
        items = (await stack.ask("GET", f"/v1/reservations?{query}")).json["items"]
        return [(item["pool"], item["pod_ref"]) for item in items]

    assert len(await found("")) == 7
    assert await found("pool=p&state=held") == [("p", "t/held")]
    assert await found("pod_ref=t%2F1") == [("p", "t/1"), ("q", "t/1")]
    assert await found("container_id=c2&pool=q") == [("q", "t/2")]
    assert await found("address=2001:db8:0::2") == [("q", "t/1")]
    assert await found("node=nowhere") == []
    assert await found("pool=nosuch") == []
    first = (await stack.ask("GET", "/v1/reservations?limit=4")).json
    rest = (await stack.ask("GET", f"/v1/reservations?limit=4&cursor={first['next']}")).json
    assert ([item["pod_ref"] for item in rest["items"]], rest["next"]) == (["t/0", "t/1", "t/2"], None)
    check_problem(await stack.ask("GET", "/v1/reservations?state=lost"), "invalid_request")


async def test_a_release_names_its_binding(stack: Stack) -> None:
    await stack.pool(cooldown_s=0)
    await reserve(stack, container_id="c1")
    one = "/v1/reservations/p/t%2Fa"
    check_problem(await stack.ask("DELETE", one), "bound")
    for field in ("ifname", "container_id"):
        empty = check_problem(await stack.ask("DELETE", f"{one}?{field}="), "invalid_request")
        assert field in empty["detail"]
    stale = await stack.ask("DELETE", f"{one}?container_id=c0")
    assert (stale.status, stale.json) == (200, {"released": False, "items": [], "reason": "stale"})
    assert (await stack.ask("DELETE", f"{one}?generation=2")).json["reason"] == "stale"
    done = (await stack.ask("DELETE", f"{one}?generation=1")).json
    assert (done["released"], done["items"][0]["addresses"], done["items"][0]["held"]) == (True, ["192.0.2.1"], False)
    check_problem(await stack.ask("DELETE", one), "reservation_not_found")
    check_problem(await stack.ask("GET", one), "reservation_not_found")
    check_problem(await stack.ask("GET", "/v1/reservations/nosuch/t%2Fa"), "pool_not_found")
    await reserve(stack, container_id="c9")
    assert (await stack.ask("DELETE", f"{one}?force=true")).json["released"] is True


async def test_a_repetition_under_a_key_is_answered_as_the_first(stack: Stack) -> None:
    await stack.pool(cooldown_s=0)
    body, key = {"pool": "p", "pod_ref": "t/a", "container_id": "c"}, {"Idempotency-Key": "k one"}
    first = await stack.ask("POST", "/v1/reservations", body, headers=key)
    await stack.ask("DELETE", "/v1/reservations/p/t%2Fa?force")
    second = await stack.ask("POST", "/v1/reservations", body, headers=key)
    assert (first.status, second.status) == (201, 201)
    assert first.json == second.json
    check_problem(await stack.ask("GET", "/v1/reservations/p/t%2Fa"), "reservation_not_found")

    other = await stack.ask("POST", "/v1/reservations", {**body, "container_id": "d"}, headers=key)
    check_problem(other, "idempotency_conflict")
    check_problem(await stack.ask("DELETE", "/v1/pools/p", headers=key), "idempotency_conflict")
    another = await stack.ask_tcp("POST", "/v1/reservations", {**body, "container_id": "d"}, headers=key)
    assert another.status == 201, "keys are each caller's own"


async def test_a_refusal_is_kept_under_its_key_too(stack: Stack) -> None:
    await stack.pool(subnet="192.0.2.7/32", cooldown_s=0)
    await reserve(stack, "t/a")
    key = {"Idempotency-Key": "k"}
    body = {"pool": "p", "pod_ref": "t/b"}
    check_problem(await stack.ask("POST", "/v1/reservations", body, headers=key), "pool_exhausted")
    await stack.ask("DELETE", "/v1/reservations/p/t%2Fa")
    check_problem(await stack.ask("POST", "/v1/reservations", body, headers=key), "pool_exhausted")
    assert (await stack.ask("POST", "/v1/reservations", body)).status == 201


async def test_reads_tell_the_index_and_whether_they_may_lag(stack: Stack) -> None:
    await stack.pool()
    made = await stack.ask("POST", "/v1/reservations", {"pool": "p", "pod_ref": "t/a"})
    fresh = await stack.ask("GET", "/v1/reservations/p/t%2Fa")
    assert int(fresh.headers["Ipamd-Index"]) >= int(made.headers["Ipamd-Index"])
    assert "Ipamd-Stale" not in fresh.headers
    stale = await stack.ask("GET", "/v1/reservations/p/t%2Fa?stale=ok")
    assert stale.headers["Ipamd-Stale"] == "true"
    assert int(stale.headers["Ipamd-Index"]) >= int(made.headers["Ipamd-Index"])
