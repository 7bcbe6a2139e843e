"""The sentence about a full pool, and how a storm of refusals spares the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ipamd.core.outcomes import Code, Refused
from ipamd.core.ports import Snapshot
from ipamd.service.exhaustion import Exhaustion, describe
from ipamd.service.reader import Reader
from ipamd.service.request import At, Request
from tests.support.scripted import TurnedClock
from tests.support.stack import Stack, running

T = TypeVar("T")
FULL = Refused(Code.POOL_EXHAUSTED, "pool p is full", "p", 0)


class CountingReader(Reader):
    """Counts how often it looks."""

    looks = 0

    def glance(self, look: Callable[[Snapshot], T]) -> At[T]:
        self.looks += 1
        return super().glance(look)


def request(clock: TurnedClock) -> Request:
    return Request("me", "r1", clock.now_s + 5)


def sentence(stack: Stack, name: str, position: int = 0) -> str | None:
    def look(snapshot: Snapshot) -> str | None:
        return describe(snapshot, name, position)

    found: At[str | None] = stack.services.reader.glance(look)
    return found.value


async def test_a_storm_is_counted_a_few_times_a_second(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        await stack.pool(subnet="192.0.2.1/32")
        clock = TurnedClock()
        reader = CountingReader(stack.services.log, stack.services.reader._state, clock)
        exhaustion = Exhaustion(reader, clock)
        for _ in range(200):
            assert "pool p has no free address" in await exhaustion.sentence(FULL, request(clock))
        assert reader.looks == 8
        clock.now_s += 1.0
        await exhaustion.sentence(FULL, request(clock))
        assert reader.looks == 9
        clock.now_s += 1.0
        crowd = await asyncio.gather(*(exhaustion.sentence(FULL, request(clock)) for _ in range(100)))
        assert all("pool p has no free address" in told for told in crowd)
        assert reader.looks <= 9 + 9
        reader.close()


async def test_counts_follow_the_state_between_refusals(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        await stack.pool(subnet="192.0.2.1/32")
        clock = TurnedClock()
        exhaustion = Exhaustion(stack.services.reader, clock)
        await stack.ask("POST", "/v1/reservations", {"pool": "p", "pod_ref": "t/a"})
        assert "1 held;" in await exhaustion.sentence(FULL, request(clock))
        await stack.ask("DELETE", "/v1/reservations/p/t%2Fa")
        assert "1 cooling;" in await exhaustion.sentence(FULL, request(clock))


async def test_two_families_are_told_apart(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        ranges = [[{"subnet": "192.0.2.0/30", "exclude": ["192.0.2.1-192.0.2.2"]}], [{"subnet": "2001:db8::/64"}]]
        await stack.ask("POST", "/v1/pools", {"name": "dual", "ranges": ranges})
        told = sentence(stack, "dual")
        assert told is not None
        assert "no free IPv4 address: 2 excluded;" in told
        assert "shows the holders" not in told, "nobody holds any"
        assert sentence(stack, "dual", 2) is None
        assert sentence(stack, "nosuch") is None


async def test_where_nothing_can_be_read_the_refusal_speaks_for_itself(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        clock = TurnedClock()
        exhaustion = Exhaustion(stack.services.reader, clock)
        assert await exhaustion.sentence(FULL, request(clock)) == "pool p is full"
        assert await exhaustion.sentence(FULL, Request("me", "r1", clock.now_s)) == "pool p is full"
        assert await exhaustion.sentence(Refused(Code.POOL_EXHAUSTED, "full"), request(clock)) == "full"
