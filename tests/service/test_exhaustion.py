"""The sentence about a full pool, and how a storm of refusals spares the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ipamd.core.commands import Add, Origin, PoolRequest
from ipamd.core.outcomes import Code, Refused
from ipamd.core.ports import Snapshot
from ipamd.core.values import replace
from ipamd.service.exhaustion import Exhaustion, Told, explain
from ipamd.service.reader import Reader
from ipamd.service.request import At, Request
from tests.support.scripted import TurnedClock
from tests.support.stack import Stack, conf, running

T = TypeVar("T")
FULL = Refused(Code.POOL_EXHAUSTED, "pool p is full", "p", 0)
ADD = Add(Origin("me", "r1"), (PoolRequest("p"),), "t/x", "eth0", None)


class CountingReader(Reader):
    """Counts how often it looks."""

    looks = 0

    def glance(self, look: Callable[[Snapshot], T]) -> At[T]:
        self.looks += 1
        return super().glance(look)


def request(clock: TurnedClock) -> Request:
    return Request("me", "r1", clock.now_s + 60)


def sentence(stack: Stack, name: str, position: int = 0) -> str | None:
    def look(snapshot: Snapshot) -> Told | None:
        refused = Refused(Code.POOL_EXHAUSTED, "it is full", name, position)
        return explain(snapshot, refused, replace(ADD, requests=(PoolRequest(name),)))

    found: At[Told | None] = stack.services.reader.glance(look)
    return found.value and found.value.sentence


async def test_a_storm_is_counted_a_few_times_a_second(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        await stack.pool(subnet="192.0.2.1/32")
        clock = TurnedClock()
        reader = CountingReader(stack.services.log, stack.services.reader._state, clock)
        exhaustion = Exhaustion(reader, clock)
        for _ in range(200):
            assert "pool p has no free address" in (await exhaustion.tell(FULL, ADD, request(clock))).sentence
        assert reader.looks == 8
        clock.now_s += 1.0
        await exhaustion.tell(FULL, ADD, request(clock))
        assert reader.looks == 9
        clock.now_s += 1.0
        crowd = await asyncio.gather(*(exhaustion.tell(FULL, ADD, request(clock)) for _ in range(100)))
        assert all("pool p has no free address" in told.sentence for told in crowd)
        assert reader.looks <= 9 + 9
        reader.close()


async def test_counts_follow_the_state_between_refusals(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        await stack.pool(subnet="192.0.2.1/32")
        clock = TurnedClock()
        exhaustion = Exhaustion(stack.services.reader, clock)
        await stack.ask("POST", "/v1/reservations", {"pool": "p", "pod_ref": "t/a"})
        assert "1 held;" in (await exhaustion.tell(FULL, ADD, request(clock))).sentence
        await stack.ask("DELETE", "/v1/reservations/p/t%2Fa")
        assert "1 cooling;" in (await exhaustion.tell(FULL, ADD, request(clock))).sentence


async def test_two_families_are_told_apart(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        ranges = [[{"subnet": "192.0.2.0/30", "exclude": ["192.0.2.1-192.0.2.2"]}], [{"subnet": "2001:db8::/64"}]]
        await stack.ask("POST", "/v1/pools", {"name": "dual", "ranges": ranges})
        told = sentence(stack, "dual")
        assert told is not None
        assert "no free IPv4 address: 192.0.2.1-192.0.2.2 gives nothing: 2 excluded; ipamctl pool update dual" in told
        assert "shows the holders" not in told, "nobody holds any"
        assert sentence(stack, "dual", 2) is None
        assert sentence(stack, "nosuch") is None


async def test_where_nothing_can_be_read_the_refusal_speaks_for_itself(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        clock = TurnedClock()
        exhaustion = Exhaustion(stack.services.reader, clock)
        told = Told("pool p is full")
        assert await exhaustion.tell(FULL, ADD, request(clock)) == told
        assert await exhaustion.tell(FULL, ADD, Request("me", "r1", clock.now_s)) == told


async def test_each_range_has_its_reason_and_many_are_summed_up(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        some: list[dict[str, object]] = [{"subnet": f"192.0.2.{4 * at}/30"} for at in range(15)]
        body = {"name": "p", "ranges": [some], "cooldown_s": 600, "cooldown_min_s": 600}
        await stack.ask("POST", "/v1/pools", body)
        for at in range(30):
            await stack.cni("add", conf("p"), CNI_ContainerID=f"c{at}", CNI_Args=f"IPAMD_POD_REF=t/{at}")
        await stack.cni("del", conf("p"), CNI_ContainerID="c0")
        got = (await stack.ask("POST", "/v1/reservations", {"pool": "p", "pod_ref": "t/new"})).json
        first, second = "192.0.2.1-192.0.2.2 is full: 1 bound, 1 cooling", "192.0.2.5-192.0.2.6 is full: 2 bound"
        assert got["ranges"][:2] == [first, second]
        assert len(got["ranges"]) == 15
        assert f"pool p has no free address: {first}; {second}; " in got["detail"]
        assert got["detail"].count(" is full") == 15
        some += [
            {"subnet": "192.0.2.64/31", "exclude": ["192.0.2.64/31"]},
            {"subnet": "192.0.2.80/32", "gateway": "192.0.2.80"},
        ]
        await stack.ask("PUT", "/v1/pools/p", body)
        refused = await stack.cni("add", conf("p"), CNI_ContainerID="x", CNI_Args="IPAMD_POD_REF=t/x")
        assert "; 2 more: 2 excluded, 1 gateway; ipamctl" in refused.json["msg"]
        assert (
            refused.json["details"]
            == "192.0.2.64-192.0.2.65 gives nothing: 2 excluded; 192.0.2.80 gives nothing: 1 gateway"
        )
