"""The line in the log that each refused request has: who asked for what, and never the secret."""

from __future__ import annotations

import json
import logging

import pytest

from tests.api.raw import Raw
from tests.api.test_shapes import check_problem
from tests.support.stack import Stack


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "ipamd.api")
    return caplog


def refusals(log: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    lines = [record.__dict__ for record in log.records if record.getMessage().startswith("request refused: ")]
    names = ("method", "path", "status", "code", "by", "request_id")
    return [{name: line[name] for name in names} for line in lines]


async def test_whose_role_does_not_reach_so_far_is_named(stack: Stack, log: pytest.LogCaptureFixture) -> None:
    made = await stack.ask("POST", "/v1/tokens", {"name": "box", "role": "node", "node": "box"})
    got = await stack.ask_tcp("GET", "/v1/pools", token=made.json["secret"])
    check_problem(got, "forbidden")
    line = {"method": "GET", "path": "/v1/pools", "status": 403, "code": "forbidden"}
    assert refusals(log) == [{**line, "by": "token:box", "request_id": got.headers["X-Request-Id"]}]
    assert made.json["secret"] not in log.text


async def test_who_shows_no_token_is_nobody(stack: Stack, log: pytest.LogCaptureFixture) -> None:
    check_problem(await stack.ask_tcp("GET", "/v1/pools", token="guess"), "unauthorized")
    assert [(line["status"], line["by"]) for line in refusals(log)] == [(401, "nobody")]
    assert "guess" not in log.text


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        ("GET /v1/nothing", 404, "not_found"),
        ("DELETE /v1/pools", 405, "method_not_allowed"),
        ("POST /cni/v1/nothing", 404, "not_found"),
    ],
)
async def test_what_no_route_takes_has_a_line(
    stack: Stack, log: pytest.LogCaptureFixture, asked: str, status: int, code: str
) -> None:
    method, path = asked.split()
    got = await stack.ask(method, path)
    line = {"method": method, "path": path, "status": status, "code": code, "by": "nobody"}
    assert refusals(log) == [{**line, "request_id": got.headers["X-Request-Id"]}]


async def test_what_is_no_http_has_a_line_without_what_was_sent(stack: Stack, log: pytest.LogCaptureFixture) -> None:
    canary = "canary" * 4000
    raw = await Raw.to(stack)
    raw.writer.write(f"GET /v1/pools HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {canary}\r\n\r\n".encode())
    status, _, body = await raw.answer()
    raw.close()
    assert status == 400
    assert json.loads(body)["detail"].startswith("this is no HTTP/1.1 request: ")
    assert [(line["status"], line["by"]) for line in refusals(log)] == [(400, "nobody")]
    assert "canary" not in body.decode() + log.text
