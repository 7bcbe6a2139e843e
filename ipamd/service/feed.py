"""Owns following the events as this member applies them: one look at what is new serves all who follow.

An event is handed out once it is applied here, so that none is ever taken back. Who follows says where it is by an
index that is the same on every member: it can go on at any of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

from ipamd.core.model import Event
from ipamd.core.ports import Log, Snapshot, Unavailable
from ipamd.service.events import Events, Place, refuse_foreign, refuse_gap
from ipamd.service.reader import Reader
from ipamd.service.request import At, Request

MOST: Final = 32
"""So many may follow at a time."""

BEAT_S: Final = 5.0
"""After so long without news who follows is told that there are none."""

RECENT: Final = 4096
"""So many of the newest events are kept at hand; who is further behind reads pages."""

_PAGE: Final = 500
_PACE_S: Final = 0.02
"""Looks at what is new are so far apart, for all who follow: applying comes first."""

_REST_S: Final = 0.005
_LOOK_WITHIN_S: Final = 10.0
_WITHOUT_LEADER: Final = 2
"""After so many beats without a leader a member knows no news, and others may."""


class Feed:
    """The events of this member, for those who follow. Used in one loop."""

    def __init__(self, reader: Reader, events: Events, log: Log) -> None:
        self._reader, self._events, self._log = reader, events, log
        self._recent: deque[Event] = deque()
        self._behind: int | None = None
        """The index behind which all events are at hand; None: nobody has looked yet."""

        self._following: set[Following] = set()
        self._one_looks, self._one_catches_up = asyncio.Lock(), asyncio.Lock()
        self._rung = asyncio.Event()
        self._looked_s = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closing = False

    @property
    def following(self) -> int:
        """How many follow now."""
        return len(self._following)

    async def open(self, place: Place, request: Request) -> At[Following]:
        """Follow from a place on; without an index: from now on. Raises ApiError, Unavailable."""
        if self._is_closing:
            raise _stopping()
        if len(self._following) >= MOST:
            raise Unavailable(f"{MOST} follow the events here already: ask another server, or later", "none", 5.0)
        following = Following(self, is_content=request.stale)
        self._following.add(following)
        try:
            request = await self._events.reaching(place.after, request)
            found = await self._reader.read(lambda snapshot: _begin(snapshot, place), request)
        except BaseException:
            following.close()
            raise
        following.index, following.cluster_id = found.value
        self._listen()
        return At(found.index, following)

    def close(self) -> None:
        """End with all who follow."""
        self._is_closing = True
        self._rung.set()

    def leave(self, following: Following) -> None:
        """One follows no longer."""
        self._following.discard(following)

    async def behind(self, index: int) -> Sequence[Event] | None:
        """Some events behind an index; None: there was no news for a while. Raises ApiError, Unavailable."""
        deadline_s = self._reader.now_s() + BEAT_S
        while not self._is_closing:
            found = self._at_hand(index)
            if found is None:
                found = await self._catch_up(index)
            if found:
                return found
            if not await self._news(deadline_s - self._reader.now_s()):
                return None
        raise _stopping()

    @property
    def has_leader(self) -> bool:
        """Whether this member knows of a leader, and so gets news."""
        return self._log.status().leader is not None

    def _listen(self) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._log.watch(self._ring)
        self._rung.set()  # nobody listened until now

    def _ring(self) -> None:
        """Something was applied. Called in another thread."""
        if self._following and self._loop is not None and not self._rung.is_set() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._rung.set)

    def _at_hand(self, index: int) -> Sequence[Event] | None:
        """What is kept at hand behind an index; None: it may be that not all of that is."""
        if self._behind is None or index < self._behind:
            return None
        return list(islice(self._recent, index - self._behind, index - self._behind + _PAGE))

    async def _catch_up(self, index: int) -> Sequence[Event]:
        """A page of older events, for one at a time and with a rest: whole histories are no hurry."""

        def look(snapshot: Snapshot) -> Sequence[Event]:
            found = list(snapshot.events(index, _PAGE))
            refuse_gap(index, found, snapshot.last_event)
            return found

        async with self._one_catches_up:
            found = (await self._reader.peek(look, _LOOK_WITHIN_S)).value
            await asyncio.sleep(_REST_S)
        return found

    async def _news(self, timeout_s: float) -> bool:
        """Wait until something may be new, and look; False: nothing was applied in that time."""
        try:
            async with asyncio.timeout(max(timeout_s, 0)):
                await self._rung.wait()
        except TimeoutError:
            return False
        async with self._one_looks:
            if self._rung.is_set() and not self._is_closing:
                await self._look()
        return True

    async def _look(self) -> None:
        await asyncio.sleep(max(0.0, self._looked_s + _PACE_S - self._reader.now_s()))
        self._rung.clear()  # what is applied from here on rings again
        try:
            after, found = (await self._reader.peek(self._newest, _LOOK_WITHIN_S)).value
        except BaseException:
            self._rung.set()
            raise
        self._looked_s = self._reader.now_s()
        self._keep(after, found)
        if self._is_closing:
            self._rung.set()

    def _newest(self, snapshot: Snapshot) -> tuple[int, Sequence[Event]]:
        """The newest events, and the index behind which they are; what is before may be kept no longer."""
        known = 0 if self._behind is None else self._behind + len(self._recent)
        found = snapshot.events(max(known, snapshot.last_event - RECENT), RECENT)
        return found[0].index - 1 if found else snapshot.last_event, found

    def _keep(self, after: int, found: Sequence[Event]) -> None:
        if self._behind is None or after != self._behind + len(self._recent):
            self._recent.clear()
            self._behind = after
        self._recent.extend(found)
        while len(self._recent) > RECENT:
            self._recent.popleft()
            self._behind += 1


class Following:
    """One who follows, and where it is."""

    def __init__(self, feed: Feed, *, is_content: bool) -> None:
        """`is_content`: with what this member has, though it may have lost the others."""
        self._feed, self._is_content = feed, is_content
        self.index = 0
        self.cluster_id = ""
        self._without_leader = 0

    async def next(self) -> Sequence[Event]:
        """The next events; none: there were none for a while. Raises ApiError, Unavailable: this is the end here."""
        found = await self._feed.behind(self.index)
        if found is None:
            self._mind_leader()
            return ()
        self.index = found[-1].index
        self._without_leader = 0
        return found

    def close(self) -> None:
        """Give the place back."""
        self._feed.leave(self)

    def _mind_leader(self) -> None:
        self._without_leader = 0 if self._feed.has_leader else self._without_leader + 1
        if self._without_leader >= _WITHOUT_LEADER and not self._is_content:
            raise Unavailable("this server has lost the others: ask another one", "none")


def _begin(snapshot: Snapshot, place: Place) -> tuple[int, str]:
    """Where to begin, and in which cluster. Raises ApiError."""
    refuse_foreign(place, snapshot)
    after, cluster_id = place.after, snapshot.cluster_id() or ""
    if after is None:
        return snapshot.last_event, cluster_id
    refuse_gap(after, list(snapshot.events(after, 1)), snapshot.last_event)
    return after, cluster_id


def _stopping() -> Unavailable:
    return Unavailable("this server is stopping: ask another one", "none")
