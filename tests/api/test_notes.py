"""Notes among the events."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stack import Stack


async def test_a_note_stands_among_the_events(stack: Stack) -> None:
    assert (await stack.ask("POST", "/v1/pools", {"name": "p", "subnet": "10.0.0.0/24"})).status == 201
    done = await stack.ask("POST", "/v1/events", {"text": "switch 3 replaced", "pool": "p"})
    assert done.status == 204
    (event,) = (await stack.ask("GET", "/v1/events?kind=note")).json["items"]
    assert (event["detail"], event["pool"]) == ("switch 3 replaced", "p")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"text": ""}, 400, "invalid_request"),
        ({"text": "x" * 501}, 400, "invalid_request"),
        ({"text": "a\nb"}, 400, "invalid_request"),
        ({"text": "a\x1b[2Jb"}, 400, "invalid_request"),
        ({}, 400, "invalid_request"),
        ({"text": "x", "pool": "nobody"}, 404, "pool_not_found"),
        ({"text": "x", "node": "nobody"}, 404, "not_found"),
    ],
)
async def test_what_is_no_note_is_refused(stack: Stack, body: dict[str, Any], status: int, code: str) -> None:
    got = await stack.ask("POST", "/v1/events", body)
    assert (got.status, got.json["code"]) == (status, code)
