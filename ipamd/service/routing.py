"""Owns the way to the leader: whichever member is asked, writes and reads go where they can be answered.

A command goes under one op id however often it is sent, so that asking again after an unknown outcome never does it
twice: the second time the stored outcome is the answer. What is under way at a member that leads no longer is given
up at once and asked again of the next leader, until the caller's time is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ipamd.core.entries import Item
from ipamd.core.levels import hindrance
from ipamd.core.model import Member
from ipamd.core.ports import Answer, Log, LogStatus, Unavailable
from ipamd.service.ports import Clock, Peers

T = TypeVar("T")

_LOOK_S = 0.05
"""How often it is looked whether the leader that was asked leads still."""

_PAUSE_S = (0.01, 0.02, 0.05, 0.1, 0.2)
"""How long to wait before asking again, the first time, the second, ..."""

_APPLIED_S = (0.001, 0.002, 0.004, 0.008)

Ask = Callable[[Member | None, float], Awaitable[T]]
"""Asks a member (None: this one), which has so many seconds."""


class RoutedLog:
    """The log of a cluster, asked through any member: core.ports.Log. Used in one loop."""

    def __init__(
        self, local: Log, peers: Peers, *, name: str, members: Callable[[], Sequence[Member]], clock: Clock
    ) -> None:
        """`local` is this member's own log, `members` tells the members as this one's state has them."""
        self._local, self._peers, self._name, self._members, self._clock = local, peers, name, members, clock
        self._under_way: dict[asyncio.Timeout, str] = {}
        self._look_is_due = False
        self.halted: str | None = None
        """Why nothing may be written any more, as a sentence; None: it may."""

    def status(self) -> LogStatus:
        """What this member knows, without waiting."""
        return self._local.status()

    def watch(self, wake: Callable[[], None]) -> None:
        """Have `wake` called each time this member has applied more of the log."""
        self._local.watch(wake)

    async def propose(self, item: Item, timeout_s: float) -> Answer:
        """Put a command into the log, wherever its leader is, and wait for its outcome. Raises Unavailable."""
        hindered = self.halted or hindrance(item.command, self._members())
        if hindered is not None:
            raise Unavailable(hindered, "none")

        async def ask(member: Member | None, left_s: float) -> Answer:
            if member is None:
                return await self._local.propose(item, left_s)
            return await self._peers.propose(member, item, left_s)

        return await self._until_answered(ask, timeout_s, writes=True)

    async def barrier(self, timeout_s: float) -> int:
        """Wait until this member has applied all that was acknowledged before; its index. Raises Unavailable."""
        deadline_s = self._clock.monotonic_s() + timeout_s

        async def ask(member: Member | None, left_s: float) -> int:
            if member is None:
                return await self._local.barrier(left_s)
            return await self._peers.barrier(member, left_s)

        index = await self._until_answered(ask, timeout_s, writes=False)
        await self._wait_applied(index, deadline_s)
        return index

    async def _until_answered(self, ask: Ask[T], timeout_s: float, *, writes: bool) -> T:
        if self._is_alone():
            return await ask(None, timeout_s)
        deadline_s = self._clock.monotonic_s() + timeout_s
        unknown, tries = False, 0
        while True:
            left_s = deadline_s - self._clock.monotonic_s()
            try:
                return await self._ask_leader(ask, left_s)
            except Unavailable as error:
                unknown |= writes and error.outcome == "unknown"
                pause_s = _PAUSE_S[min(tries, len(_PAUSE_S) - 1)]
                tries += 1
                left_s = deadline_s - self._clock.monotonic_s()
                if left_s <= pause_s or self._is_refused_here():
                    raise Unavailable(error.detail, "unknown" if unknown else "none", error.retry_after_s) from error
            await asyncio.sleep(pause_s)

    async def _ask_leader(self, ask: Ask[T], left_s: float) -> T:
        """One attempt, for as long as the leader that was asked is the leader. Raises Unavailable."""
        leader = self._local.status().leader
        if leader is None:
            raise Unavailable("there is no leader at the moment", "none")
        member = None if leader == self._name else self._member(leader)
        try:
            async with asyncio.timeout(None) as scope:
                self._watch(scope, leader)
                try:
                    return await ask(member, left_s)
                finally:
                    self._under_way.pop(scope, None)
        except TimeoutError:
            raise Unavailable(f"{leader} stopped leading before it answered", "unknown") from None

    def _member(self, name: str) -> Member:
        found = next((member for member in self._members() if member.name == name), None)
        if found is None:
            raise Unavailable(f"{name} leads, and this member has not heard yet where that is", "none")
        return found

    def _is_alone(self) -> bool:
        """Whether there is nobody else to ask."""
        return not any(member.name != self._name for member in self._members())

    def _is_refused_here(self) -> bool:
        """Whether this member leads and refused all the same: too much is under way, or it is stopping."""
        return self._local.status().is_leader

    def _watch(self, scope: asyncio.Timeout, leader: str) -> None:
        self._under_way[scope] = leader
        if not self._look_is_due:
            self._look_is_due = True
            asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        """Give up what was asked of somebody who is not the leader now."""
        loop, leader = asyncio.get_running_loop(), self._local.status().leader
        for scope, asked in list(self._under_way.items()):
            if asked != leader:
                scope.reschedule(loop.time())
                del self._under_way[scope]
        self._look_is_due = bool(self._under_way)
        if self._look_is_due:
            loop.call_later(_LOOK_S, self._look)

    async def _wait_applied(self, index: int, deadline_s: float) -> None:
        tries = 0
        while self._local.status().applied < index:
            pause_s = _APPLIED_S[min(tries, len(_APPLIED_S) - 1)]
            tries += 1
            if self._clock.monotonic_s() + pause_s >= deadline_s:
                raise Unavailable("this member lags behind the leader", "none")
            await asyncio.sleep(pause_s)
