"""Shares: so many of one caller at a time, and none of it is another's affair."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ipamd.api.gate import CALLS_OF_NODE, Gate
from ipamd.api.shares import Shares
from ipamd.core.ports import Unavailable
from tests.support.eventually import until
from tests.support.stack import Stack


async def test_one_caller_has_so_many_at_a_time() -> None:
    shares, under_way, most = Shares(3), 0, 0

    async def work() -> None:
        nonlocal under_way, most
        async with shares.one("a", 60):
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.005)
            under_way -= 1

    await asyncio.gather(*(work() for _ in range(12)))
    assert most == 3
    assert not shares._places


async def test_who_finds_no_place_is_told_so_and_others_have_theirs() -> None:
    shares = Shares(1)
    async with shares.one("a", 5):
        with pytest.raises(Unavailable):
            async with shares.one("a", 0.01):
                pass
        waiting = asyncio.create_task(_use(shares, "a"))
        await asyncio.sleep(0)
        waiting.cancel()
        await _use(shares, "b")
    await _use(shares, "a")
    await asyncio.gather(waiting, return_exceptions=True)
    assert not shares._places


async def _use(shares: Shares, caller: str) -> None:
    async with shares.one(caller, 60):
        pass


async def test_a_node_with_many_calls_under_way_is_still_rid_of_what_it_gives_back(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stack.pool()
    made = await stack.ask("POST", "/v1/tokens", {"name": "n", "role": "node", "node": "n7"})
    token, conf = made.json["secret"], {"cniVersion": "1.0.0", "name": "net", "ipam": {"type": "ipamd", "pool": "p"}}
    add, under_way, go_on = stack.services.allocation.add, 0, asyncio.Event()
    share, came = Gate.share, 0

    async def slow(*given: Any) -> Any:
        nonlocal under_way
        under_way += 1
        await go_on.wait()
        return await add(*given)

    def counted(*given: Any) -> Any:
        nonlocal came
        came += 1
        return share(*given)

    monkeypatch.setattr(stack.services.allocation, "add", slow)
    monkeypatch.setattr(Gate, "share", counted)
    who = {"Ipamd_Node": "n7", "Ipamd_Deadline_Ms": "60000"}  # who waits must not give up before the DEL is done
    adds = [
        asyncio.create_task(stack.cni("add", conf, tcp=True, token=token, **who, CNI_ContainerID=f"c{at}"))
        for at in range(CALLS_OF_NODE + 8)
    ]
    await until(lambda: came == len(adds) and under_way >= CALLS_OF_NODE)
    await asyncio.sleep(0.1)  # for one that goes on though it must not
    assert under_way == CALLS_OF_NODE
    assert (await stack.cni("del", conf, tcp=True, token=token, **who, CNI_ContainerID="x")).status == 200
    go_on.set()
    assert {got.status for got in await asyncio.gather(*adds)} == {200}
