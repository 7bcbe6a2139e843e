"""Not too many calls at once, the rest in order until their time is over; and STATUS within a few seconds."""

from __future__ import annotations

import asyncio
import time

import pytest

from ipamd.agent.freshness import FRESH_S, FreshAnswers
from ipamd.agent.slots import Slots
from ipamd.core.ports import Unavailable
from ipamd.service.wire import Asked, Said
from ipamd.system import SystemClock
from tests.support.scripted import TurnedClock


async def test_no_more_than_so_many_are_under_way_and_all_get_their_turn() -> None:
    slots, under_way, most, order = Slots(SystemClock(), most=3), 0, 0, list[int]()

    async def call(number: int) -> None:
        nonlocal under_way, most
        async with slots.one(time.monotonic() + 600):
            under_way += 1
            most = max(most, under_way)
            order.append(number)
            await asyncio.sleep(0.005)
            under_way -= 1

    await asyncio.gather(*(call(number) for number in range(20)))
    assert most == 3
    assert order == list(range(20))


async def test_who_waited_too_long_is_told_and_leaves_no_trace() -> None:
    slots = Slots(SystemClock(), most=1)
    async with slots.one(time.monotonic() + 600):
        began = time.monotonic()
        with pytest.raises(Unavailable, match="1 calls of this node are under way already"):
            async with slots.one(time.monotonic() + 0.05):
                pass
        assert time.monotonic() - began < 300, "the others go on"
    async with slots.one(time.monotonic() + 600):
        pass


def test_an_answer_is_fresh_for_a_few_seconds_for_the_same_call() -> None:
    clock = TurnedClock()
    fresh, said = FreshAnswers(clock), Said(200, {}, b"")
    asked = Asked("POST", "/cni/v1/status", {"Ipamd-Node": "w1"}, b"conf")
    assert fresh.find(asked) is None
    fresh.keep(asked, said, clock.now_s)
    assert fresh.find(asked) is said
    assert fresh.find(asked.saying(Ipamd_Deadline_Ms="5")) is said
    assert fresh.find(asked.saying(Ipamd_Node="w2")) is None
    assert fresh.find(Asked("POST", "/cni/v1/status", asked.headers, b"other")) is None
    clock.now_s += FRESH_S + 0.01
    assert fresh.find(asked) is None


def test_not_every_configuration_is_remembered_for_ever() -> None:
    clock = TurnedClock()
    fresh, said = FreshAnswers(clock), Said(200, {}, b"")
    calls = [Asked("POST", "/cni/v1/status", {}, b"%d" % number) for number in range(100)]
    for asked in calls:
        fresh.keep(asked, said, clock.now_s)
    assert sum(fresh.find(asked) is not None for asked in calls) == 32
    assert fresh.find(calls[-1]) is said
