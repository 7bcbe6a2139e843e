"""Owns how many requests of one caller are worked on at a time: the others wait, so that everybody else has a share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ipamd.core.ports import Unavailable


class Shares:
    """Places for each caller; whoever has none under way takes no memory. Used in one loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._places: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def one(self, caller: str, patience_s: float) -> AsyncIterator[None]:
        """Have a place of the caller's. Raises Unavailable where none gets free in time."""
        places, users = self._places.get(caller) or (asyncio.Semaphore(self._most), 0)
        self._places[caller] = places, users + 1
        try:
            await _acquire(places, patience_s)
            try:
                yield
            finally:
                places.release()
        finally:
            places, users = self._places[caller]
            if users == 1:
                del self._places[caller]
            else:
                self._places[caller] = places, users - 1


async def _acquire(places: asyncio.Semaphore, patience_s: float) -> None:
    if not places.locked():
        await places.acquire()
        return
    try:
        async with asyncio.timeout(patience_s):
            await places.acquire()
    except TimeoutError:
        raise Unavailable("too many requests of this caller are under way", "none") from None
