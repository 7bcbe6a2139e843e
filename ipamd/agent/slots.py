"""Owns how many calls may be under way at once: the others wait, in order, until their time is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ipamd.core.ports import Unavailable
from ipamd.service.ports import Clock

MOST = 64


class Slots:
    """Places for calls."""

    def __init__(self, clock: Clock, most: int = MOST) -> None:
        self._clock, self._most = clock, most
        self._free = asyncio.Semaphore(most)

    @asynccontextmanager
    async def one(self, deadline_s: float) -> AsyncIterator[None]:
        """Have a place. Raises Unavailable where none gets free in time."""
        try:
            async with asyncio.timeout(deadline_s - self._clock.monotonic_s()):
                await self._free.acquire()
        except TimeoutError:
            raise Unavailable(f"{self._most} calls of this node are under way already", "none") from None
        try:
            yield
        finally:
            self._free.release()
