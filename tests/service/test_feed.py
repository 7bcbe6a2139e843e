"""Who follows misses nothing and reads nothing twice, however applying and looking interleave; and when it is told to go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from ipamd.core.model import Event, EventKind
from ipamd.core.ports import LogStatus, Unavailable
from ipamd.errors import ApiError
from ipamd.service import feed as feed_module
from ipamd.service.events import Events, Place
from ipamd.service.feed import Feed, Following
from ipamd.service.proposer import Proposer
from ipamd.service.reader import Reader
from ipamd.service.request import Request
from ipamd.system import SystemClock
from tests.support.eventually import PATIENCE_S
from tests.support.scripted import ScriptedLog, counting_bytes


@dataclass
class Moment:
    """The little of a snapshot that a feed asks for."""

    kept: list[Event]
    last_event: int
    applied_index: int

    def cluster_id(self) -> str:
        return "c"

    def events(self, after: int, limit: int) -> Sequence[Event]:
        return [event for event in self.kept if event.index > after][:limit]


class Member(ScriptedLog):
    """A member that applies events by hand, and keeps the newest of them."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Event] = []
        self.last_event = self.looks = self.unseen = 0
        self.during_a_look = 0
        """So many events are applied while the next look is under way, which does not see them."""

    def apply(self, count: int = 1, *, tells: bool = True) -> None:
        for _ in range(count):
            self.last_event += 1
            self.kept.append(Event(self.last_event, 0, EventKind.BOUND, "me", "r"))
        if tells:
            for wake in self.watchers:
                wake()

    async def barrier(self, timeout_s: float) -> int:
        self.apply(self.unseen)
        self.unseen = 0
        return await super().barrier(timeout_s)

    def forget(self, up_to: int) -> None:
        self.kept = [event for event in self.kept if event.index > up_to]

    @contextmanager
    def snapshot(self) -> Iterator[Moment]:
        self.looks += 1
        yield Moment(list(self.kept), self.last_event, self.last_event)
        count, self.during_a_look = self.during_a_look, 0
        if count:
            self.apply(count)


@pytest.fixture
def member() -> Member:
    return Member()


@pytest.fixture
def feed(member: Member, monkeypatch: pytest.MonkeyPatch) -> Iterator[Feed]:
    monkeypatch.setattr(feed_module, "BEAT_S", 0.1)
    reader = Reader(member, member, SystemClock())  # type: ignore[arg-type]
    proposer = Proposer(member, SystemClock(), counting_bytes())
    yield Feed(reader, Events(proposer, reader), member)
    reader.close()


def request(*, stale: bool = False) -> Request:
    return Request("me", "r1", SystemClock().monotonic_s() + 60, stale=stale)


async def follow(feed: Feed, after: int | None = 0, *, stale: bool = False) -> Following:
    return (await feed.open(Place(after), request(stale=stale))).value


async def indexes(following: Following, count: int) -> list[int]:
    """The next events, as many at least."""
    seen: list[int] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(seen) < count:
            seen += [event.index for event in await following.next()]
    return seen


async def test_whatever_is_applied_meanwhile_comes_once(feed: Feed, member: Member) -> None:
    member.apply(1200)
    slow, quick = await follow(feed), await follow(feed, 1100)

    async def go_on() -> None:
        for number in range(300):
            member.apply(number % 3)
            await asyncio.sleep(0.001)

    going = asyncio.create_task(go_on())
    assert await indexes(quick, 400) == list(range(1101, 1501))
    assert await indexes(slow, 1500) == list(range(1, 1501))
    await going
    assert await slow.next() == ()


async def test_one_look_serves_all_who_follow(feed: Feed, member: Member) -> None:
    followers = [await follow(feed, None) for _ in range(20)]
    assert [await one.next() for one in followers] == [()] * 20
    before = member.looks
    reading = [asyncio.create_task(indexes(one, 1)) for one in followers]
    await asyncio.sleep(0.01)
    member.apply()
    assert await asyncio.gather(*reading) == [[1]] * 20
    assert member.looks - before <= 2


async def test_who_comes_back_after_long_reads_what_was_missed(
    feed: Feed, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "RECENT", 10)
    one = await follow(feed)
    assert await one.next() == ()
    member.apply(5)
    assert await indexes(one, 5) == [1, 2, 3, 4, 5]
    one.close()
    member.apply(100, tells=False)
    again = await follow(feed, 5)
    assert await indexes(again, 100) == list(range(6, 106))
    member.apply(3)
    assert await indexes(again, 3) == [106, 107, 108]


async def test_only_the_newest_are_at_hand(feed: Feed, member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "RECENT", 10)
    one = await follow(feed)
    assert await one.next() == ()
    for first in range(1, 61, 6):
        member.apply(6)
        assert await indexes(one, 6) == list(range(first, first + 6))
    assert await indexes(await follow(feed, 52), 8) == list(range(53, 61))
    assert await indexes(await follow(feed, 20), 40) == list(range(21, 61))


async def test_what_is_applied_while_it_looks_is_not_left_for_later(feed: Feed, member: Member) -> None:
    one = await follow(feed, None)
    assert await one.next() == ()
    member.during_a_look = 2
    member.apply()
    assert await indexes(one, 3) == [1, 2, 3]


async def test_what_is_forgotten_before_it_was_read_ends_it(
    feed: Feed, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "_PAGE", 10)
    member.apply(30)
    one = await follow(feed)
    assert await indexes(one, 10) == list(range(1, 11))
    member.forget(20)
    with pytest.raises(ApiError) as gone:
        await one.next()
    assert (gone.value.row.code, gone.value.extra["oldest"]) == ("gone", 21)


async def test_a_member_that_lags_catches_up_before_it_says_that_nothing_is_known(feed: Feed, member: Member) -> None:
    member.apply(5)
    member.unseen = 3
    one = await follow(feed, 7, stale=True)
    assert member.barriers == 1
    assert await indexes(one, 1) == [8]
    with pytest.raises(ApiError):
        await follow(feed, 9, stale=True)
    assert feed.following == 1, "a place is given back"


async def test_without_a_leader_it_ends_soon_but_for_who_is_content(feed: Feed, member: Member) -> None:
    one, content = await follow(feed), await follow(feed, stale=True)
    member.now = LogStatus(None, False, 1, 7, 7, 0, None)
    assert await one.next() == ()
    with pytest.raises(Unavailable, match="lost the others"):
        await one.next()
    for _ in range(3):
        assert await content.next() == ()
    member.now = LogStatus("n1", True, 1, 7, 7, 0, None)
    assert await one.next() == ()


async def test_a_close_ends_all_and_lets_nobody_in(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "BEAT_S", 10 * PATIENCE_S)  # it does not end before
    one = await follow(feed)
    reading = asyncio.create_task(one.next())
    await asyncio.sleep(0.01)
    feed.close()
    with pytest.raises(Unavailable, match="stopping"):
        await reading
    with pytest.raises(Unavailable, match="stopping"):
        await follow(feed)


@pytest.mark.parametrize("forgotten", [0, 50, 60])
async def test_what_is_kept_no_longer_does_not_shift_what_is(feed: Feed, member: Member, forgotten: int) -> None:
    member.apply(60)
    member.forget(forgotten)
    one = await follow(feed, None)
    assert await one.next() == ()
    member.apply(5)
    assert await indexes(one, 5) == [61, 62, 63, 64, 65]
    member.forget(63)
    member.apply()
    assert await indexes(one, 1) == [66]
    assert await indexes(await follow(feed, 64), 2) == [65, 66]
