"""Nodes, settings, tokens, events, the cluster and health over HTTP."""

from __future__ import annotations

import asyncio

import pytest

from tests.api.test_shapes import check_problem
from tests.support.stack import SECRET, Stack, conf


async def fill(stack: Stack, pods: int, node: str = "box") -> None:
    for number in range(pods):
        got = await stack.cni(
            "add", conf(), CNI_ContainerID=f"c{number}", CNI_Args=f"IPAMD_POD_REF=t/{number}", Ipamd_Node=node
        )
        assert got.status == 200, got.raw


async def test_a_node_is_shown_with_all_that_it_holds_and_can_be_emptied(stack: Stack) -> None:
    await stack.pool(cooldown_s=0)
    await fill(stack, 3)
    await stack.cni("add", conf(), CNI_ContainerID="x", CNI_Args="IPAMD_POD_REF=t/x", Ipamd_Node="other")
    nodes = (await stack.ask("GET", "/v1/nodes")).json["items"]
    assert [(node["name"], node["bound"]) for node in nodes] == [("box", 3), ("other", 1)]
    shown = (await stack.ask("GET", "/v1/nodes/box")).json
    assert [one["container_id"] for one in shown["attachments"]] == ["c0", "c1", "c2"]
    assert shown["attachments"][0]["addresses"] == ["192.0.2.1/24"]

    key = {"Idempotency-Key": "release-box"}
    first = await stack.ask("POST", "/v1/nodes/box/release", {}, headers=key)
    assert (first.status, first.json["released"], len(first.json["items"])) == (200, 3, 3)
    assert (await stack.ask("POST", "/v1/nodes/box/release", {}, headers=key)).json == first.json
    assert (await stack.ask("POST", "/v1/nodes/box/release", {})).json["released"] == 0
    assert (await stack.ask("GET", "/v1/nodes/other")).json["bound"] == 1
    check_problem(await stack.ask("POST", "/v1/nodes/bxo/release", {}), "not_found")


async def test_a_node_can_be_renamed_and_forgotten(stack: Stack) -> None:
    await stack.pool()
    await fill(stack, 1)
    assert (await stack.ask("POST", "/v1/nodes/box/rename", {"to": "crate"})).json == {"name": "crate"}
    assert (await stack.ask("GET", "/v1/nodes/crate")).json["bound"] == 1
    check_problem(await stack.ask("GET", "/v1/nodes/box"), "not_found")
    check_problem(await stack.ask("POST", "/v1/nodes/nowhere/rename", {"to": "x"}), "not_found")
    check_problem(await stack.ask("POST", "/v1/nodes/crate/rename", {"to": "a b"}), "invalid_request")
    await stack.ask("POST", "/v1/nodes/crate/release")
    assert (await stack.ask("DELETE", "/v1/nodes/crate")).status == 204
    check_problem(await stack.ask("DELETE", "/v1/nodes/crate"), "not_found")


async def test_what_no_node_has_claimed_is_released_together(stack: Stack) -> None:
    await stack.pool()
    for pod, node in (("a", None), ("b", "n1"), ("c", None)):
        body = {"pool": "p", "pod_ref": f"t/{pod}", "container_id": pod, "node": node}
        assert (await stack.ask("POST", "/v1/reservations", body)).status == 201
    await stack.ask("POST", "/v1/reservations", {"pool": "p", "pod_ref": "t/held"})
    assert (await stack.ask("GET", "/v1/nodes")).json["unclaimed"] == 2
    done = (await stack.ask("POST", "/v1/nodes/release-unclaimed", {})).json
    assert (done["node"], done["released"]) == (None, 2)
    assert [item["pod_ref"] for item in done["items"]] == ["t/a", "t/c"]
    assert (await stack.ask("GET", "/v1/nodes")).json["unclaimed"] == 0
    left = (await stack.ask("GET", "/v1/reservations")).json["items"]
    assert [item["pod_ref"] for item in left] == ["t/b", "t/held"]


async def test_settings_that_are_left_out_stay(stack: Stack) -> None:
    before = (await stack.ask("GET", "/v1/settings")).json
    done = await stack.ask("PUT", "/v1/settings", {"cooldown_s": 7, "reclaim": "after:0060"})
    assert done.json == {**before, "cooldown_s": 7, "reclaim": "after:60"}
    assert (await stack.ask("GET", "/v1/settings")).json == done.json
    await stack.pool()
    assert (await stack.ask("GET", "/v1/pools/p")).json["cooldown_s"] == 7


async def test_settings_that_are_changed_at_once_are_all_kept(stack: Stack) -> None:
    for turn in range(5):
        wanted = {"cooldown_s": 10 + turn, "tombstone_s": 20 + turn, "node_lost_s": 30 + turn, "events_days": 40 + turn}
        asked = (stack.ask("PUT", "/v1/settings", {name: value}) for name, value in wanted.items())
        assert [got.status for got in await asyncio.gather(*asked)] == [200] * len(wanted)
        now = (await stack.ask("GET", "/v1/settings")).json
        assert {name: now[name] for name in wanted} == wanted


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "body",
    [
        {"cooldown_s": -1},
        {"reclaim": "now"},
        {"reclaim": "after:59"},
        {"events_days": 0},
        {"events_max": 0},
        {"inline_pools": "no"},
        {"x": 1},
    ],
)
async def test_bad_settings_are_refused_by_name(shared: Stack, body: dict[str, object]) -> None:
    got = await shared.ask("PUT", "/v1/settings", body)
    assert next(iter(body)) in check_problem(got, "invalid_request")["detail"]


async def test_a_token_works_from_the_first_moment_to_the_last(stack: Stack) -> None:
    made = await stack.ask("POST", "/v1/tokens", {"name": "ci", "role": "reader"})
    assert made.status == 201
    secret, token_id = made.json["secret"], made.json["id"]
    assert (await stack.ask_tcp("GET", "/v1/pools", token=secret)).status == 200
    problem = check_problem(await stack.ask_tcp("POST", "/v1/pools", {}, token=secret), "forbidden")
    assert "operator" in problem["detail"]
    listed = await stack.ask("GET", "/v1/tokens")
    assert {one["name"] for one in listed.json["items"]} == {"admin", "ci"}
    assert secret not in listed.raw.decode()
    assert SECRET not in listed.raw.decode()
    assert (await stack.ask("DELETE", f"/v1/tokens/{token_id}")).status == 204
    check_problem(await stack.ask_tcp("GET", "/v1/pools", token=secret), "unauthorized")
    check_problem(await stack.ask("DELETE", f"/v1/tokens/{token_id}"), "not_found")


async def test_a_token_that_has_expired_is_no_token(stack: Stack) -> None:
    made = await stack.ask("POST", "/v1/tokens", {"name": "short", "role": "admin", "ttl_s": 0})
    check_problem(await stack.ask_tcp("GET", "/v1/pools", token=made.json["secret"]), "unauthorized")


async def test_a_secret_is_told_once(stack: Stack) -> None:
    key, body = {"Idempotency-Key": "t"}, {"name": "ci", "role": "operator"}
    first = await stack.ask("POST", "/v1/tokens", body, headers=key)
    second = await stack.ask("POST", "/v1/tokens", body, headers=key)
    assert second.json == {**first.json, "secret": None}
    assert len((await stack.ask("GET", "/v1/tokens")).json["items"]) == 2


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"name": "a", "role": "root"}, "role"),
        ({"name": "a"}, "role"),
        ({"name": "a/b", "role": "reader"}, "name"),
        ({"name": "a", "role": "node"}, "needs node"),
        ({"name": "a", "role": "reader", "node": "n"}, "not with reader"),
        ({"name": "a", "role": "reader", "ttl_s": -5}, "ttl_s"),
    ],
)
async def test_bad_tokens_are_refused(shared: Stack, body: dict[str, object], word: str) -> None:
    assert word in check_problem(await shared.ask("POST", "/v1/tokens", body), "invalid_request")["detail"]


async def test_a_node_token_sees_its_own(stack: Stack) -> None:
    await stack.pool()
    await fill(stack, 2)
    await stack.cni(
        "add", conf(), CNI_ContainerID="x", CNI_Args="IPAMD_POD_REF=t/0", CNI_IfName="net1", Ipamd_Node="other"
    )
    secret = (await stack.ask("POST", "/v1/tokens", {"name": "n", "role": "node", "node": "box"})).json["secret"]
    rows = (await stack.ask_tcp("GET", "/v1/reservations", token=secret)).json["items"]
    assert [(row["pod_ref"], [one["node"] for one in row["attachments"]]) for row in rows] == [
        ("t/0", ["box"]),
        ("t/1", ["box"]),
    ]
    check_problem(await stack.ask_tcp("GET", "/v1/reservations?node=other", token=secret), "forbidden")
    check_problem(await stack.ask_tcp("GET", "/v1/nodes/other", token=secret), "forbidden")
    assert (await stack.ask_tcp("GET", "/v1/nodes/box", token=secret)).json["bound"] == 2


async def test_events_go_on_without_gaps(stack: Stack) -> None:
    await stack.pool()
    await fill(stack, 4)
    whole = (await stack.ask("GET", "/v1/events")).json["items"]
    assert [event["index"] for event in whole] == list(range(1, len(whole) + 1))
    assert {event["kind"] for event in whole} >= {"pool_created", "bound"}
    assert all(event["by"] and event["request_id"] and event["at"] for event in whole)
    seen, path = [], "/v1/events?limit=2"
    while True:
        page = (await stack.ask("GET", path)).json
        seen += page["items"]
        if page["next"] is None:
            break
        path = f"/v1/events?limit=2&cursor={page['next']}"
    assert seen == whole
    last = whole[-1]["index"]
    assert (await stack.ask("GET", f"/v1/events?after={last}")).json["items"] == []
    assert (await stack.ask("GET", f"/v1/events?after={last - 1}")).json["items"] == whole[-1:]
    check_problem(await stack.ask("GET", f"/v1/events?after={last + 1}"), "gone")
    check_problem(await stack.ask("GET", "/v1/events?after=-1"), "invalid_request")


async def test_the_cluster_tells_the_truth(stack: Stack) -> None:
    shown = (await stack.ask("GET", "/v1/cluster")).json
    assert (shown["cluster_id"], shown["self"], shown["leader"]) == ("cluster-1", "n1", "n1")
    (member,) = shown["members"]
    assert (member["name"], member["reachable"], member["voter"], member["lag"]) == ("n1", True, True, 0)
    assert member["index"] == shown["index"] > 0
    assert shown["term"] > 0


async def test_health(stack: Stack) -> None:
    await stack.pool(space="blue")
    assert (await stack.ask_tcp("GET", "/livez", token=None)).json == {"status": "ok"}
    assert (await stack.ask_tcp("GET", "/readyz", token=None)).status == 200
    assert (await stack.ask("GET", "/readyz?space=blue")).status == 200
    got = await stack.ask("GET", "/readyz?space=green")
    assert check_problem(got, "unavailable")["outcome"] == "none"
    assert got.headers["Retry-After"]
