"""Wall clocks: a majority decides whose is right, and who differs is told once."""

from __future__ import annotations

import logging

import pytest

from ipamd.core.model import Member
from ipamd.core.ports import Unavailable
from ipamd.service.clocks import ClockWatch, verdict
from ipamd.service.ports import Glimpse, NoPeers
from tests.support.scripted import TurnedClock

YEAR_MS = 365 * 86_400_000


@pytest.mark.parametrize(
    ("apart_s", "members", "expected"),
    [
        ([], 1, True),
        ([0, 0], 3, True),
        ([60, -60], 3, True),
        ([0, 9999], 3, True),
        ([9999, 9999], 3, False),
        ([61, -61], 3, False),
        ([9999], 3, False),
        ([0], 3, True),
        ([], 3, None),
        ([9999], 2, False),
        ([], 2, None),
        ([9999], 5, None),
        ([0, 9999, 9999, 9999], 5, False),
        ([0, 0, 9999, 9999], 5, True),
    ],
)
def test_a_majority_decides(apart_s: list[int], members: int, expected: bool | None) -> None:
    assert verdict([one * 1000 for one in apart_s], members) is expected


class Others(NoPeers):
    """Two other members with clocks of their own; one that is None is away."""

    def __init__(self, clock: TurnedClock) -> None:
        self.clock = clock
        self.apart_ms: dict[str, int | None] = {"n2": 0, "n3": 0}
        self.members = tuple(Member(name, name, "h:1", "http://h:1") for name in ("n1", "n2", "n3"))
        self.name = "n1"

    async def look(self, member: Member, timeout_s: float) -> Glimpse:  # noqa: ARG002 - the port
        apart_ms = self.apart_ms[member.name]
        if apart_ms is None:
            raise Unavailable("away", "none")
        self.clock.now_s += 0.2  # there and back
        wall_ms = self.clock.wall_ms() + apart_ms
        return Glimpse(member.name, member.member_id, "c", "n1", 1, 9, 9, None, {}, "", wall_ms)


class InsideOf:
    name = "n1"

    def __init__(self, others: Others) -> None:
        self._others = others

    def members(self) -> tuple[Member, ...]:
        return self._others.members


async def test_each_change_is_judged_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = TurnedClock()
    others, judged = Others(clock), list[bool]()
    watch = ClockWatch(InsideOf(others), others, clock, judged.append)  # type: ignore[arg-type]
    with caplog.at_level(logging.INFO):
        for apart in ((0, 0), (YEAR_MS, YEAR_MS), (YEAR_MS, YEAR_MS), (None, None), (0, YEAR_MS), (0, 0)):
            others.apart_ms = dict(zip(("n2", "n3"), apart, strict=True))
            await watch.look()
    assert judged == [True, False, False, True, True]
    said = [line.getMessage() for line in caplog.records]
    assert len(said) == 2
    assert f"is {YEAR_MS // 1000} s behind the others'" in said[0]
    assert said[1] == "the clock of this member is right again"


async def test_of_two_that_differ_while_the_third_is_away_neither_is_believed(caplog: pytest.LogCaptureFixture) -> None:
    clock = TurnedClock()
    others, judged = Others(clock), list[bool]()
    watch = ClockWatch(InsideOf(others), others, clock, judged.append)  # type: ignore[arg-type]
    for apart_ms, seen in ((-61_000, "ahead of"), (YEAR_MS, "behind")):
        others.apart_ms = {"n2": apart_ms, "n3": 0}
        await watch.look()
        others.apart_ms = {"n2": apart_ms, "n3": None}
        caplog.clear()
        await watch.look()
        assert [line.getMessage() for line in caplog.records if f" s {seen} the others'" in line.getMessage()]
    assert judged == [True, False, True, False]
