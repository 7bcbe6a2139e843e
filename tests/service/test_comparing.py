"""The comparison of states: who is wrong stops, and where nobody knows who is, nothing is written."""

# ruff: noqa: ARG002 - what a port is asked, and a scripted one does not look at

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from ipamd.core.commands import TakeDigest, decode_command
from ipamd.core.entries import Item
from ipamd.core.model import Member
from ipamd.core.outcomes import Done
from ipamd.core.ports import Answer, LogStatus, Unavailable
from ipamd.service.comparing import Comparing
from ipamd.service.inside import Inside, StateFile
from ipamd.service.ports import Clock, Glimpse, NoPeers
from ipamd.service.proposer import Proposer
from ipamd.service.routing import RoutedLog
from ipamd.system import SystemClock, random_bytes
from tests.support.eventually import until
from tests.support.scripted import TurnedClock

EVERY_S = 0.1
LOOKS = 12
"""It is looked four times in that time what is to be done."""


class World(NoPeers):
    """Three members as n1 sees them, with the digests that they say they have."""

    def __init__(self, *, leads: bool = True) -> None:
        self.leads = leads
        self.digests: dict[str, dict[int, str]] = {"n1": {}, "n2": {}, "n3": {}}
        self.proposed: list[Item] = []
        self.ended: list[str] = []
        self.looks = self.asked = 0
        self.members = tuple(Member(name, name, "h:1", "http://h:1") for name in self.digests)
        self.inside = Inside("n1", "n1", self, lambda: "c", lambda: self.members, state_file, self.own, self.hand_over)
        self.routed = RoutedLog(self, self, name="n1", members=lambda: self.members, clock=SystemClock())

    def own(self) -> Mapping[int, str]:
        return self.digests["n1"]

    def status(self) -> LogStatus:
        self.asked += 1
        return LogStatus("n1" if self.leads else "n2", self.leads, 1, 9, 9, 0, None)

    async def propose(self, *asked: object) -> Answer:
        self.proposed.append(next(one for one in asked if isinstance(one, Item)))
        return Answer(10, Done())

    async def look(self, member: Member, timeout_s: float) -> Glimpse:
        self.looks += 1
        if member.name not in self.digests:
            raise Unavailable("it is away", "none")
        return Glimpse(member.name, member.member_id, "c", "n1", 1, 9, 9, None, self.digests[member.name])

    async def barrier(self, *asked: object) -> int:
        return 9

    async def hand_over(self, *asked: object) -> None:
        raise NotImplementedError

    def watch(self, *asked: object) -> None:
        raise NotImplementedError


@asynccontextmanager
async def state_file() -> AsyncIterator[StateFile]:
    yield StateFile("", 0)


@asynccontextmanager
async def comparing(world: World, clock: Clock | None = None) -> AsyncIterator[None]:
    clock = clock or SystemClock()
    made = Comparing(
        world.routed,
        Proposer(world, clock, random_bytes),
        inside=world.inside,
        peers=world,
        clock=clock,
        fatal=world.ended.append,
        every_s=EVERY_S,
    )
    made.start()
    try:
        yield
    finally:
        await made.stop()


async def passes(world: World, times: int) -> None:
    """Wait until it was looked so often what is to be done."""
    goal = world.asked + times
    await until(lambda: world.asked >= goal)


async def test_the_leader_has_digests_taken_again_and_again() -> None:
    world = World()
    async with comparing(world):
        await until(lambda: len(world.proposed) >= 3)
    assert all(isinstance(decode_command(item.command), TakeDigest) for item in world.proposed)
    follower = World(leads=False)
    async with comparing(follower):
        await passes(follower, LOOKS)
    assert follower.proposed == []
    alone = World()
    alone.members = alone.members[:1]
    async with comparing(alone):
        await passes(alone, LOOKS)
    assert alone.proposed == []


async def test_who_differs_from_a_majority_stops() -> None:
    world = World()
    async with comparing(world):
        world.digests = {"n1": {7: "a"}, "n2": {7: "b"}, "n3": {}}
        await until(lambda: world.routed.halted)
        assert not world.ended
        world.digests["n3"] = {7: "b"}
        await until(lambda: world.ended)
    assert "at log index 7 the members' states differ (n1 against n2, n3)" in world.ended[0]


async def test_equal_states_change_nothing() -> None:
    world = World()
    async with comparing(world):
        for index in (7, 8):
            world.digests = {name: {index: "a"} for name in ("n1", "n2", "n3")}
            before = world.looks
            await until(lambda seen=before: world.looks >= seen + 2)  # type: ignore[misc]
            await passes(world, 2)
    assert (world.ended, world.routed.halted) == ([], None)


async def test_without_a_majority_writes_stop_until_states_agree(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    async with comparing(world):
        world.digests = {"n1": {7: "a"}, "n2": {7: "b"}, "n3": {7: "c"}}
        await until(lambda: world.routed.halted)
        with pytest.raises(Unavailable, match="none is that of a majority"):
            await world.routed.propose(Item(b"o" * 16, b"c"), 1)
        before = len(world.proposed)
        await until(lambda: len(world.proposed) > before)
        world.digests = {name: {9: "a"} for name in ("n1", "n2", "n3")}
        await until(lambda: world.routed.halted is None)
    assert not world.ended
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1


async def test_another_that_is_wrong_is_told_and_nothing_stops(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    async with comparing(world):
        world.digests = {"n1": {7: "a"}, "n2": {7: "a"}, "n3": {7: "c"}}
        await until(lambda: caplog.records)
    assert "n1, n2 against n3" in caplog.text
    assert (world.ended, world.routed.halted) == ([], None)


async def test_a_member_that_lags_is_waited_for() -> None:
    world = World()
    async with comparing(world):
        world.digests = {"n1": {7: "a"}, "n2": {7: "a"}, "n3": {6: "x"}}
        await until(lambda: world.looks >= 4)
        assert not world.ended
        world.digests["n2"][7] = "b"
        world.digests["n3"] = {6: "x", 7: "b"}
        await until(lambda: world.ended)


async def test_a_state_that_takes_long_to_read_is_read_more_seldom() -> None:
    world, clock = World(), TurnedClock()
    async with comparing(world, clock):
        clock.now_s += EVERY_S
        await until(lambda: len(world.proposed) == 1)
        clock.now_s += EVERY_S / 2
        world.digests["n1"][10] = "d"
        await until(lambda: world.looks)
        clock.now_s += 9 * EVERY_S  # twenty times as long as it took are ten
        await passes(world, 3)
        assert len(world.proposed) == 1
        clock.now_s += EVERY_S
        await until(lambda: len(world.proposed) == 2)
