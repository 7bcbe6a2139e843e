"""Who had an address at a time, over HTTP: somebody, nobody, or known no longer."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest

from tests.api.test_shapes import check_problem
from tests.support.stack import Stack

A = "192.0.2.1"


async def give(stack: Stack, pod: str) -> None:
    got = await stack.ask("POST", "/v1/reservations", {"pool": "p", "pod_ref": pod, "addresses": [A]})
    assert got.status == 201, got.raw


async def take(stack: Stack, pod: str) -> None:
    got = await stack.ask("DELETE", f"/v1/reservations/p/{quote(pod, safe='')}?force=true")
    assert got.status == 200, got.raw


async def at(stack: Stack, time: str | datetime, space: str = "default") -> Any:
    text = time if isinstance(time, str) else time.isoformat()
    return await stack.ask("GET", f"/v1/addresses/{A}/history?at={quote(text)}&space={space}")


@pytest.fixture
async def past(stack: Stack) -> list[Any]:
    """Two holders one after the other: the rows of the history, newest first."""
    await stack.pool(cooldown_s=0)
    for pod in ("t/a", "t/b"):
        await give(stack, pod)
        if pod == "t/a":
            await take(stack, pod)
    items: list[Any] = (await stack.ask("GET", f"/v1/addresses/{A}/history")).json["items"]
    assert [row["pod_ref"] for row in items] == ["t/b", "t/a"]
    return items


async def test_the_holder_then_is_the_row_of_the_history(stack: Stack, past: list[Any]) -> None:
    newest, oldest = past
    assert (await at(stack, newest["from"])).json == {"items": [newest], "next": None}
    if oldest["from"] != oldest["to"]:  # to the millisecond: what ended in the same one was never so at its end
        assert (await at(stack, oldest["from"])).json["items"] == [oldest]
    assert (await at(stack, datetime.now(UTC))).json["items"] == [newest]
    assert (await at(stack, datetime.now(UTC) + timedelta(seconds=30))).json["items"] == [newest], "a clock is ahead"


async def test_nobody_had_it_before_the_first_event(stack: Stack, past: list[Any]) -> None:
    assert (await at(stack, datetime.fromisoformat(past[1]["from"]) - timedelta(seconds=9))).json["items"] == []
    assert (await at(stack, "1999-12-31T23:59:59Z")).json["items"] == []
    assert (await at(stack, past[0]["from"], "blue")).json["items"] == []


async def test_what_is_kept_no_longer_is_not_nobody(stack: Stack, past: list[Any]) -> None:
    before = datetime.fromisoformat(past[1]["from"]) - timedelta(seconds=9)
    await asyncio.sleep(0.005)  # on a quick machine it might be the same millisecond still
    await stack.ask("PUT", "/v1/settings", {"events_max": 1})
    check_problem(await at(stack, "0001-01-01T00:00:00Z"), "gone")
    problem = check_problem(await at(stack, before), "gone")
    assert "kept no longer" in problem["detail"]
    assert problem["since"] > past[0]["from"]
    (row,) = (await at(stack, datetime.now(UTC))).json["items"]
    assert (row["pod_ref"], row["from_index"], row["to"]) == ("t/b", 0, None)


@pytest.mark.parametrize(
    "time",
    [
        "",
        "now",
        "2026-11-24",
        "2026-11-24T09:00:00",
        "2026-11-24 09:00",
        "2026-02-30T09:00:00Z",
        "2026-11-24T25:00:00Z",
        "2026-11-24T09:00:00+99:99",
        "20261124T090000Z",
        "2026-W48-2T09:00:00Z",
        "1e9",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "٢٠٢٦-11-24T09:00:00Z",
    ],
)
async def test_what_is_no_time_is_refused(stack: Stack, time: str) -> None:
    assert "at" in check_problem(await at(stack, time), "invalid_request")["detail"]


async def test_what_is_to_come_is_refused_and_so_is_a_cursor(stack: Stack) -> None:
    assert "still to come" in check_problem(await at(stack, "2999-01-01T00:00:00Z"), "invalid_request")["detail"]
    got = await stack.ask("GET", f"/v1/addresses/{A}/history?at=2026-01-01T00:00:00Z&cursor=WzFd")
    assert "cursor" in check_problem(got, "invalid_request")["detail"]


@pytest.mark.parametrize(
    ("time", "same"),
    [
        ("2020-11-24t09:00:00z", "2020-11-24T09:00:00Z"),
        ("2020-11-24 09:00:00.123456789+01:00", "2020-11-24T08:00:00.123Z"),
        ("2020-11-24T09:00:00-00:00", "2020-11-24T09:00:00Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T01:00:00+01:00"),
    ],
)
async def test_times_are_read_as_rfc_3339_has_them(stack: Stack, time: str, same: str) -> None:
    assert (await at(stack, time)).json["items"] == (await at(stack, same)).json["items"] == []
