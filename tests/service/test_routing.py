"""The way to the leader: local, remote, lost on the way; asked again under the same op id until the time is over."""

# ruff: noqa: ARG002 - what a port is asked, and a scripted one does not look at

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ipamd.core import levels
from ipamd.core.commands import Expire, Origin, encode_command
from ipamd.core.entries import Item
from ipamd.core.model import Member
from ipamd.core.outcomes import Done
from ipamd.core.ports import Answer, LogStatus, Unavailable
from ipamd.service.ports import NoPeers
from ipamd.service.routing import RoutedLog
from ipamd.system import SystemClock
from tests.support.scripted import TurnedClock

MEMBERS = tuple(Member(name, f"id-{name}", "h:1", f"http://{name}:1") for name in ("n1", "n2", "n3"))
ITEM = Item(b"o" * 16, encode_command(Expire(Origin("test", "r"))))

Ask = Callable[[str, Item | None, float], Awaitable[int]]


class World:
    """The members as n1 meets them: who leads, and what becomes of a request, in the order of `script`."""

    def __init__(self, *script: object, leader: str | None = "n1") -> None:
        self.script = list(script)
        self.leader, self.applied = leader, 100
        self.asked: list[tuple[str, bytes | None]] = []
        self.clock, self.takes_s = TurnedClock(), 0.0
        """A request takes so long by this clock."""

    def status(self) -> LogStatus:
        return LogStatus(self.leader, self.leader == "n1", 1, self.applied, self.applied, 0, None)

    def watch(self, *asked: object) -> None:
        raise NotImplementedError

    async def _next(self, name: str, item: Item | None) -> int:
        self.asked.append((name, None if item is None else item.op))
        self.clock.now_s += self.takes_s
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(step, int):
            return step
        if isinstance(step, Unavailable):
            raise step
        if isinstance(step, str):  # the leader changes, and this one never answers
            self.leader = step or None
        await asyncio.Event().wait()
        raise AssertionError

    async def propose(self, item: Item, timeout_s: float) -> Answer:
        return Answer(await self._next("n1", item), Done())

    async def barrier(self, timeout_s: float) -> int:
        return await self._next("n1", None)


class Others(NoPeers):
    def __init__(self, world: World) -> None:
        self.world = world

    async def propose(self, member: Member, item: Item, timeout_s: float) -> Answer:
        return Answer(await self.world._next(member.name, item), Done())

    async def barrier(self, member: Member, timeout_s: float) -> int:
        return await self.world._next(member.name, None)


def routed(world: World, members: tuple[Member, ...] = MEMBERS) -> RoutedLog:
    clock = world.clock if world.takes_s else SystemClock()
    return RoutedLog(world, Others(world), name="n1", members=lambda: members, clock=clock)


NO = Unavailable("it leads no longer", "none")
LOST = Unavailable("the connection broke", "unknown")


@pytest.mark.parametrize("leader", ["n1", "n3"])
async def test_the_leader_is_asked_wherever_it_is(leader: str) -> None:
    world = World(7, leader=leader)
    assert (await routed(world).propose(ITEM, 60)).index == 7
    assert world.asked == [(leader, ITEM.op)]


@pytest.mark.parametrize("trouble", [NO, LOST])
async def test_a_failed_attempt_is_made_again_under_the_same_op_id(trouble: Unavailable) -> None:
    world = World(trouble, trouble, 7, leader="n2")
    assert (await routed(world).propose(ITEM, 60)).index == 7
    assert world.asked == [("n2", ITEM.op)] * 3


async def test_what_hangs_at_a_deposed_leader_is_asked_of_the_next() -> None:
    for first in ("n1", "n2"):
        world = World("n3", 7, leader=first)
        assert (await routed(world).propose(ITEM, 60)).index == 7
        assert world.asked == [(first, ITEM.op), ("n3", ITEM.op)]


@pytest.mark.parametrize(("steps", "outcome"), [((NO,), "none"), ((LOST, NO), "unknown"), ((LOST,), "unknown")])
async def test_an_unknown_outcome_is_never_forgotten(steps: tuple[Unavailable, ...], outcome: str) -> None:
    world = World(*steps, leader="n2")
    world.takes_s = 0.06
    began_s = world.clock.now_s
    with pytest.raises(Unavailable) as caught:
        await routed(world).propose(ITEM, 0.3)
    assert caught.value.outcome == outcome
    assert len(world.asked) > 1
    assert world.clock.now_s - began_s <= 0.3


async def test_without_a_leader_it_waits_for_one() -> None:
    world = World(7, leader=None)
    asyncio.get_running_loop().call_later(0.1, setattr, world, "leader", "n2")
    assert (await routed(world).propose(ITEM, 60)).index == 7
    world.leader = None
    with pytest.raises(Unavailable) as caught:
        await routed(world).propose(ITEM, 0.1)
    assert caught.value.outcome == "none"


async def test_a_leader_that_refuses_is_not_asked_again_here() -> None:
    world = World(Unavailable("4096 requests are under way already", "none"))
    with pytest.raises(Unavailable, match="4096"):
        await routed(world).propose(ITEM, 5)
    assert len(world.asked) == 1


async def test_a_member_without_others_is_asked_once() -> None:
    for members in ((), MEMBERS[:1]):
        world = World(NO, leader=None)
        with pytest.raises(Unavailable):
            await routed(world, members).propose(ITEM, 5)
        assert len(world.asked) == 1


async def test_a_leader_whose_place_is_not_known_yet_is_waited_for() -> None:
    with pytest.raises(Unavailable, match="n9 leads"):
        await routed(World(7, leader="n9")).propose(ITEM, 0.1)


async def test_a_read_waits_until_this_member_has_applied_the_leaders_barrier() -> None:
    world = World(120, leader="n2")
    waiting = asyncio.create_task(routed(world).barrier(60))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    world.applied = 119
    await asyncio.sleep(0.05)
    assert not waiting.done()
    world.applied = 121
    assert await waiting == 120
    world.applied = 100
    with pytest.raises(Unavailable, match="lags") as caught:
        await routed(world).barrier(0.1)
    assert caught.value.outcome == "none"


async def test_a_read_is_never_unknown() -> None:
    with pytest.raises(Unavailable) as caught:
        await routed(World(LOST, leader="n2")).barrier(0.1)
    assert caught.value.outcome == "none"


async def test_halted_writes_are_refused_and_reads_are_not() -> None:
    world = World(7)
    log = routed(world)
    log.halted = "the members' states differ"
    with pytest.raises(Unavailable, match="differ"):
        await log.propose(ITEM, 60)
    assert await log.barrier(60) == 7
    assert world.asked == [("n1", None)]


async def test_a_caller_that_goes_away_is_forgotten() -> None:
    world = World(object(), leader="n2")
    log = routed(world)
    waiting = asyncio.create_task(log.propose(ITEM, 60))
    await asyncio.sleep(0.02)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not log._under_way


async def test_what_a_member_does_not_know_is_not_proposed_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "_BY_NUMBER", {16: 2})
    world = World(7, leader="n2")
    with pytest.raises(Unavailable) as refused:
        await routed(world).propose(ITEM, 5)
    assert world.asked == []
    assert refused.value.outcome == "none"
    assert refused.value.detail == "n1 and n2 and n3 run an older version of ipamd: upgrade them first"
