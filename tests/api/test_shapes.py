"""Every route answers errors in one shape, carries the same headers, and asks for the role that the table says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ipamd.api.access import ForNodes, Least
from ipamd.api.exchange import Route
from ipamd.api.routes import ROUTES
from ipamd.api.schema.events import EVENT_STREAM
from ipamd.errors import ERRORS
from tests.support.stack import Got, Stack, running

FILLED = {
    "pool": "nosuch",
    "pod_ref": "t%2Fnobody",
    "address": "192.0.2.1",
    "node": "nowhere",
    "id": "none",
    "name": "nobody",
}
PROBLEM = "application/problem+json"


def target(route: Route) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: FILLED[match[1]], route.path)


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


def check_problem(got: Got, code: str | None = None) -> dict[str, Any]:
    assert got.headers["Content-Type"] == PROBLEM, got.raw
    problem: dict[str, Any] = got.json
    row = ERRORS[problem["code"]]
    assert (problem["status"], problem["title"]) == (row.status, row.title)
    assert got.status == row.status
    assert problem["type"].endswith(row.code)
    assert problem["request_id"] == got.headers["X-Request-Id"]
    assert len(problem["detail"]) > 5
    assert "Traceback" not in got.raw.decode()
    assert code is None or problem["code"] == code, problem
    return problem


async def test_all_routes_share_the_shape_of_errors(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        for route in ROUTES:
            await check_route(stack, route)


async def check_route(stack: Stack, route: Route) -> None:
    path, bad = target(route), 0
    answers = [
        await stack.ask(route.method, f"{path}?colour=blue"),
        await stack.ask("PATCH", path),
        await stack.ask_tcp(route.method, path, token="wrong"),
        await stack.ask_tcp(route.method, path, token=None),
    ]
    if route.writes:
        answers.append(await stack.ask(route.method, path, b"{bad"))
        answers.append(await stack.ask(route.method, path, b'{"colour":1}'))
        answers.append(await stack.ask(route.method, path, b"{}", headers={"Idempotency-Key": "k" * 129}))
        sized = f"{path}?format=whereabouts" if route.path == "/v1/import" else path
        answers.append(await stack.ask(route.method, sized, b" " * (route.most_bytes + 1)))
        assert answers[-1].status == 413, named(route)
    for got in answers:
        if got.status >= 400:
            check_problem(got)
            bad += 1
        assert got.headers["X-Request-Id"], named(route)
        assert int(got.headers["Ipamd-Index"]) > 0, named(route)
    assert bad >= 2, named(route)
    check_problem(answers[0], "invalid_request")
    assert "colour" in answers[0].json["detail"], named(route)
    check_problem(answers[1], "method_not_allowed")
    assert route.method in answers[1].headers["Allow"], named(route)
    if route.least is not Least.ANYBODY:
        assert "unknown, revoked or expired" in check_problem(answers[2], "unauthorized")["detail"]
        assert "none was sent" in check_problem(answers[3], "unauthorized")["detail"]
        assert answers[3].headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("role", ["reader", "operator", "admin", "node", "enrol"])
async def test_each_role_gets_what_the_table_says(shared: Stack, role: str) -> None:
    body = {"name": f"a-{role}", "role": role, **({"node": "nowhere"} if role == "node" else {})}
    made = await shared.ask("POST", "/v1/tokens", body)
    assert made.status == 201
    rank = {"reader": Least.READER, "operator": Least.OPERATOR, "admin": Least.ADMIN}.get(role, Least.ANYBODY)
    for route in ROUTES:
        allowed = route.nodes is not ForNodes.NO or route.least is Least.ANYBODY if role == "node" else False
        allowed = allowed or rank >= route.least or (role == "enrol" and route.enrols)
        got = await shared.ask_tcp(route.method, target(route), b"?", token=made.json["secret"])
        assert (got.status != 403) == allowed, (named(route), got.raw)


async def test_unknown_paths_are_problems_too(stack: Stack) -> None:
    for path in ("/v1", "/v1/nosuch", "/v1/pools/", "/v1/pools/a/b/c", "/%00", "/v1/%ff"):
        check_problem(await stack.ask("GET", path), "not_found")


async def test_a_pool_that_the_log_has_no_room_for_is_too_large(stack: Stack) -> None:
    pool = {"name": "p", "subnet": "10.0.0.0/24", "dns": {"nameservers": ["192.0.2.53"] * 60_000}}
    check_problem(await stack.ask("POST", "/v1/pools", pool), "too_large")


async def test_head_answers_as_get_does_without_a_body(stack: Stack) -> None:
    got = await stack.ask("HEAD", "/v1/pools")
    assert (got.status, got.raw) == (200, b"")
    assert got.headers["Ipamd-Index"]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("path", [target(route) for route in ROUTES if route.method == "GET"])
async def test_head_makes_no_backup_and_asks_for_anything_else_as_get_does(shared: Stack, path: str) -> None:
    got, head = await shared.ask("GET", path), await shared.ask("HEAD", path)
    assert head.raw == b""
    if path == "/v1/backup":
        assert (head.status, head.headers["Allow"]) == (405, "GET")
    else:
        assert (head.status, head.headers["Content-Type"]) == (got.status, got.headers["Content-Type"])


async def test_head_of_what_goes_on_ends_at_once(stack: Stack) -> None:
    got = await stack.ask("HEAD", "/v1/events", headers={"Accept": EVENT_STREAM})
    assert (got.status, got.headers["Content-Type"], got.raw) == (200, EVENT_STREAM, b"")
    assert stack.services.feed.following == 0


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("given", "taken"),
    [("abc-123", True), ("x" * 128, True), ("x" * 129, False), ("two words", False), ("gr\u00fcn", False), ("", False)],
)
async def test_a_request_id_is_taken_if_it_is_visible_ascii(shared: Stack, given: str, taken: bool) -> None:
    got = await shared.ask("GET", "/livez", headers={"X-Request-Id": given})
    assert (got.headers["X-Request-Id"] == given) is taken
    assert got.headers["X-Request-Id"]


async def test_a_page_of_another_origin_is_refused_over_tcp(stack: Stack) -> None:
    for origin in ("http://evil.example", "http://[evil", "null", ""):
        check_problem(await stack.ask_tcp("GET", "/v1/pools", headers={"Origin": origin}), "forbidden")
    own = f"http://127.0.0.1:{stack.port}"
    assert (await stack.ask_tcp("GET", "/v1/pools", headers={"Origin": own})).status == 200


async def test_the_openapi_document_has_every_route_and_resolves(stack: Stack) -> None:
    document = (await stack.ask("GET", "/openapi.json")).json
    described = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert described == {(route.method, route.path) for route in ROUTES}
    schemas = document["components"]["schemas"]
    for reference in re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)):
        assert reference in schemas
    create = document["paths"]["/v1/pools"]["post"]
    assert set(create["responses"]) >= {"201", "400", "401", "403", "409", "503"}
    assert schemas["PoolBody"]["additionalProperties"] is False
    assert {one["name"] for one in document["paths"]["/v1/pools/{pool}"]["put"]["parameters"]} == {
        "pool",
        "force",
        "dry_run",
        "Idempotency-Key",
    }


NASTY_BODIES = [
    b"null",
    b"true",
    b"-1",
    b'""',
    b"[]",
    b"[[[[]]]]",
    b'{"name":null}',
    b'{"name":{"name":{"name":1}}}',
    b'{"pool":17,"pod_ref":["t/a"],"container_id":{}}',
    rb'{"pool":"\u202e","pod_ref":"\u0000/x"}',
    b'{"name":"p","subnet":"10.0.0.0/8","labels":{"":""}}',
    b'{"name":"p","subnet":"::/0","cooldown_s":340282366920938463463374607431768211456}',
    b'{"for_s":-340282366920938463463374607431768211456}',
    b'{"ttl_s":0,"pool":"p","pod_ref":"t/a","addresses":["::","255.255.255.255"]}',
    rb'{"to":"\ud83d\ude00"}',
    b'{"name":"x","role":"node","node":"a:b:c"}',
    b'{"events_max":18446744073709551616}',
]
NASTY_PATHS = ["%00", "%2F", "..", "%ff%fe", "'--", "a" * 3000, "%F0%9F%98%80", "%0d%0aX:1", "%25", "0"]


async def test_no_odd_request_is_a_mistake_of_the_server(stack: Stack) -> None:
    await stack.pool()
    for route in ROUTES:
        for body in NASTY_BODIES if route.writes else [None]:
            got = await stack.ask(route.method, target(route), body)
            assert got.status < 500 or got.json["code"] == "unavailable", (named(route), body, got.raw)
        for odd in NASTY_PATHS if "{" in route.path else []:
            got = await stack.ask(route.method, re.sub(r"\{\w+\}", odd, route.path))
            assert got.status < 500, (named(route), odd, got.raw)
        for odd in NASTY_PATHS:
            got = await stack.ask(route.method, f"{target(route)}?cursor={odd}&pod_ref={odd}&space={odd}&after={odd}")
            assert got.status == 400, (named(route), odd, got.raw)
    assert (await stack.ask("GET", "/v1/pools/p")).status == 200
