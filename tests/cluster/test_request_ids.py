"""One id of a request is found wherever the request has left something: header, message, event, calls, logs of both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent import Agent
from tests.support.cluster import Got, ask_socket
from tests.support.server import Server

ADD, REFUSED, REMOVED, PUT = "trace-add-1", "trace-refused-2", "trace-del-3", "trace/put=4"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("ids")).start() as started:
        yield started


@pytest.fixture
def agent(server: Server, tmp_path: Path) -> Iterator[Agent]:
    body = {"name": "w1", "role": "node", "node": "w1"}
    (tmp_path / "token").write_text(ask_socket(server.socket, "POST", "/v1/tokens", body).json["secret"])
    with Agent(tmp_path / "w1", "w1", [server.url], "--token-file", str(tmp_path / "token")) as started:
        yield started


def ask(where: Path, method: str, target: str, body: Any = None, request_id: str = "") -> Got:
    headers: dict[str, Any] = {"X-Request-Id": request_id} if request_id else {}
    return ask_socket(where, method, target, body, **headers)


def call(agent: Agent, verb: str, container: str, pod: str, request_id: str) -> Got:
    headers: dict[str, Any] = {"X-Request-Id": request_id}
    return agent.cni(verb, container, pod, **headers)


def lines_of(log: str, request_id: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, log.splitlines()) if line.get("request_id") == request_id]


def test_one_id_is_found_everywhere(server: Server, agent: Agent) -> None:
    made = ask(server.socket, "POST", "/v1/pools", {"name": "p", "subnet": "10.0.0.0/30"}, PUT)
    assert (made.status, made.headers["X-Request-Id"]) == (201, PUT)
    added = call(agent, "add", "c1", "t/a", ADD)
    assert (added.status, added.headers["X-Request-Id"]) == (200, ADD)
    assert agent.cni("add", "c2", "t/b").status == 200
    refused = call(agent, "add", "c3", "t/c", REFUSED)
    assert (refused.code, refused.headers["X-Request-Id"]) == (110, REFUSED)
    assert refused.json["msg"].endswith(f"(node w1, request {REFUSED})")
    assert call(agent, "del", "c1", "t/a", REMOVED).status == 200

    events = ask_socket(server.socket, "GET", "/v1/events").json["items"]
    ids = {
        kind: [one["request_id"] for one in events if one["kind"] == kind]
        for kind in ("pool_created", "bound", "released")
    }
    assert ids["pool_created"] == [PUT]
    assert ids["bound"][0] == ADD
    assert ids["released"] == [REMOVED]

    for where in (agent.socket, server.socket):
        calls = {one["request_id"]: one for one in ask_socket(where, "GET", "/v1/calls").json["items"]}
        assert calls.keys() >= {ADD, REFUSED, REMOVED}
        assert calls[REFUSED]["code"] == 110
    for log in (agent.log, server.log):
        (line,) = lines_of(log, REFUSED)
        assert "refused" in line["msg"]


def test_an_error_of_the_api_has_its_id_in_header_document_and_log(server: Server) -> None:
    got = ask(server.socket, "GET", "/v1/pools/nosuch", request_id="trace-5")
    assert (got.headers["X-Request-Id"], got.json["request_id"]) == ("trace-5", "trace-5")
    (line,) = lines_of(server.log, "trace-5")
    assert (line["code"], line["status"], line["path"], line["by"]) == (
        "pool_not_found",
        404,
        "/v1/pools/nosuch",
        "socket:n1",
    )


def test_a_request_without_an_id_gets_one_of_its_own(server: Server) -> None:
    made = {ask_socket(server.socket, "GET", "/v1/pools/nosuch").json["request_id"] for _ in range(5)}
    assert len(made) == 5
    assert all(len(lines_of(server.log, one)) == 1 for one in made)


def test_an_id_that_could_break_a_line_is_not_taken(server: Server) -> None:
    for bad in ("two words", "x" * 129, "tab\tbed"):
        got = ask(server.socket, "GET", "/livez", request_id=bad)
        assert got.headers["X-Request-Id"] != bad
        assert got.headers["X-Request-Id"].isalnum()
