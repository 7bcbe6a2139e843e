"""Tokens over HTTP: how long they last, what a list tells, and how a node fetches its own."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import datetime

import pytest

from tests.api.test_shapes import check_problem
from tests.support.stack import Got, Stack, conf

DAY_S = 86_400
FRESH_S = 0.3
"""What was found for a secret may be remembered a little shorter than this."""


def lasts_s(token: dict[str, str]) -> float | None:
    if token["expires"] is None:
        return None
    return (datetime.fromisoformat(token["expires"]) - datetime.fromisoformat(token["created"])).total_seconds()


async def secret_of(stack: Stack, role: str, **more: object) -> str:
    made = await stack.ask("POST", "/v1/tokens", {"name": role, "role": role, **more})
    assert made.status == 201
    secret: str = made.json["secret"]
    return secret


async def enrol(stack: Stack, token: str, node: str, secret: str | None = None) -> Got:
    digest = {} if secret is None else {"secret_sha256": hashlib.sha256(secret.encode()).hexdigest()}
    return await stack.ask_tcp("POST", "/v1/tokens/enrol", {"node": node, **digest}, token=token)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("body", "days"),
    [
        ({"role": "reader"}, 90),
        ({"role": "operator"}, 90),
        ({"role": "admin"}, 90),
        ({"role": "enrol"}, 1),
        ({"role": "node", "node": "n"}, None),
        ({"role": "admin", "ttl_s": -1}, None),
        ({"role": "node", "node": "n", "ttl_s": 2 * DAY_S}, 2),
        ({"role": "reader", "ttl_s": None}, 90),
    ],
)
async def test_how_long_a_token_lasts(shared: Stack, body: dict[str, object], days: int | None) -> None:
    made = await shared.ask("POST", "/v1/tokens", {"name": "x", **body})
    assert lasts_s(made.json) == (None if days is None else days * DAY_S)


async def test_a_list_tells_the_last_use_and_no_secret(stack: Stack) -> None:
    secret = await secret_of(stack, "reader")
    await stack.ask_tcp("GET", "/v1/pools", token=secret)
    for _ in range(1200):
        listed = await stack.ask("GET", "/v1/tokens")
        used = {one["name"]: one["used"] for one in listed.json["items"]}
        if used["reader"] is not None:
            break
        await asyncio.sleep(0.05)
    assert used["reader"] is not None
    assert used["admin"] is None
    assert secret not in listed.raw.decode()
    assert hashlib.sha256(secret.encode()).hexdigest() not in listed.raw.decode()


async def test_an_expired_token_is_told_that_it_has_expired(stack: Stack) -> None:
    secret = await secret_of(stack, "admin", ttl_s=0)
    problem = check_problem(await stack.ask_tcp("GET", "/v1/pools", token=secret), "unauthorized")
    assert "has expired" in problem["detail"]
    unknown = check_problem(await stack.ask_tcp("GET", "/v1/pools", token="other"), "unauthorized")
    assert "has expired" not in unknown["detail"]


async def test_a_node_fetches_its_token_once_and_it_is_its_own(stack: Stack) -> None:
    await stack.pool()
    enrolling = await secret_of(stack, "enrol")
    got = await enrol(stack, enrolling, "box")
    assert got.status == 201
    assert (got.json["role"], got.json["node"], got.json["expires"]) == ("node", "box", None)
    own = got.json["secret"]
    assert (await stack.cni("add", conf(), tcp=True, token=own, Ipamd_Node="box")).status == 200
    other = await stack.cni("add", conf(), tcp=True, token=own, Ipamd_Node="other", CNI_ContainerID="c2")
    assert other.json["code"] == 112
    again = check_problem(await enrol(stack, enrolling, "box"), "enrolled")
    assert "ipamctl node forget box" in again["detail"]
    assert (await enrol(stack, enrolling, "box2")).status == 201


async def test_a_secret_of_the_nodes_own_is_never_told_and_may_be_asked_for_again(stack: Stack) -> None:
    enrolling, own = await secret_of(stack, "enrol"), "ipamd_made-by-the-node"
    first = await enrol(stack, enrolling, "east:box", own)
    assert (first.status, first.json["secret"]) == (201, None)
    again = await enrol(stack, enrolling, "east:box", own)
    assert (again.status, again.json) == (200, first.json)
    check_problem(await enrol(stack, enrolling, "east:box", "another"), "enrolled")
    beat = await stack.ask_tcp("POST", "/v1/nodes/east:box/heartbeat", token=own)
    assert beat.status == 204
    tokens = (await stack.ask("GET", "/v1/tokens")).json["items"]
    assert [one["id"] for one in tokens if one["node"] == "east:box"] == [first.json["id"]]


async def test_an_enrol_token_opens_nothing_else_and_cannot_become_a_nodes(stack: Stack) -> None:
    enrolling = await secret_of(stack, "enrol")
    for method, path in (("GET", "/v1/pools"), ("GET", "/v1/tokens"), ("POST", "/v1/tokens"), ("GET", "/v1/cluster")):
        problem = check_problem(await stack.ask_tcp(method, path, token=enrolling), "forbidden")
        assert problem["detail"].endswith("an agent takes a token of this role as enrol-file")
    taken = check_problem(await enrol(stack, enrolling, "box", enrolling), "invalid_request")
    assert "another token has this secret" in taken["detail"]
    for role in ("reader", "operator"):
        secret = await secret_of(stack, role)
        problem = check_problem(await enrol(stack, secret, "box"), "forbidden")
        assert problem["detail"].endswith("it takes admin or enrol")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "body", [{}, {"node": "a/b"}, {"node": "a", "secret_sha256": "ab"}, {"node": "a", "secret_sha256": "A" * 64}]
)
async def test_what_is_no_enrolment_is_refused(shared: Stack, body: dict[str, object]) -> None:
    check_problem(await shared.ask("POST", "/v1/tokens/enrol", body), "invalid_request")


async def test_a_node_known_without_enrolment_is_not_given_away(stack: Stack) -> None:
    await stack.pool()
    await stack.cni("add", conf(), Ipamd_Node="box", Ipamd_Boot_Id="b", Ipamd_Started="1")
    enrolling = await secret_of(stack, "enrol")
    check_problem(await enrol(stack, enrolling, "box"), "enrolled")


async def test_a_forgotten_node_is_let_in_no_more_and_a_renamed_one_is(stack: Stack) -> None:
    enrolling = await secret_of(stack, "enrol")
    own = (await enrol(stack, enrolling, "box")).json["secret"]
    assert (await stack.ask_tcp("POST", "/v1/nodes/box/heartbeat", token=own)).status == 204
    await stack.ask("POST", "/v1/nodes/box/inventory", {"boot_id": "b", "index": 1, "attachments": []})
    assert (await stack.ask("POST", "/v1/nodes/box/rename", {"to": "crate"})).status == 200
    await asyncio.sleep(FRESH_S)
    assert (await stack.ask_tcp("POST", "/v1/nodes/crate/heartbeat", token=own)).status == 204
    check_problem(await stack.ask_tcp("POST", "/v1/nodes/box/heartbeat", token=own), "forbidden")
    assert (await stack.ask("DELETE", "/v1/nodes/crate")).status == 204
    await asyncio.sleep(FRESH_S)
    check_problem(await stack.ask_tcp("POST", "/v1/nodes/crate/heartbeat", token=own), "unauthorized")
