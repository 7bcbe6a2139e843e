"""Turns: one at a time, callers in rotation, and nobody who has gone holds up the others."""

from __future__ import annotations

import asyncio
import time

import pytest

from ipamd.api.lane import Lane
from ipamd.core.ports import Unavailable
from tests.support.stack import Stack


async def test_callers_take_turns_whoever_asks_more_often() -> None:
    lane, order = Lane(), list[str]()
    under_way = most = 0

    async def take(caller: str) -> None:
        nonlocal under_way, most
        async with lane.turn(caller, 60):
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.001)
            order.append(caller)
            under_way -= 1

    await asyncio.gather(*(take(caller) for caller in "aaaaaabbc"))
    assert most == 1
    assert "".join(order) == "aabcabaaa"
    await asyncio.wait_for(take("d"), 60)


async def test_who_waits_too_long_or_goes_takes_no_turn() -> None:
    lane = Lane()
    async with lane.turn("a", 60):
        with pytest.raises(Unavailable):
            async with lane.turn("b", 0.01):
                pass
        waiting = [asyncio.create_task(_take(lane)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
    waiting[1].cancel()  # its turn has just come
    assert await asyncio.gather(*waiting, return_exceptions=True)
    assert waiting[2].result() == "done"
    assert await asyncio.wait_for(_take(lane), 60) == "done"


async def test_a_turn_that_comes_in_the_moment_in_which_patience_ends_is_taken() -> None:
    lane = Lane()
    async with lane.turn("a", 60):
        waiting = asyncio.create_task(_take(lane, 0.01))
        await asyncio.sleep(0)
        time.sleep(0.05)  # noqa: ASYNC251 - its time is over, and the loop has not come to that
        await asyncio.sleep(0)
    assert await asyncio.gather(waiting, return_exceptions=True)
    assert await asyncio.wait_for(_take(lane), 60) == "done"


async def _take(lane: Lane, patience_s: float = 60) -> str:
    async with lane.turn("c", patience_s):
        return "done"


async def test_a_long_list_is_whole_and_so_are_its_pages(stack: Stack) -> None:
    for at in range(300):
        await stack.pool(f"p{at:03}", f"10.1.{at // 16}.{at % 16 * 16}/28")
    whole = (await stack.ask_tcp("GET", "/v1/pools?limit=5000")).json
    first = (await stack.ask_tcp("GET", "/v1/pools?limit=150")).json
    second = (await stack.ask_tcp("GET", f"/v1/pools?limit=150&cursor={first['next']}")).json
    assert [pool["name"] for pool in whole["items"]] == [f"p{at:03}" for at in range(300)]
    assert first["items"] + second["items"] == whole["items"]
    assert whole["next"] is second["next"] is None
