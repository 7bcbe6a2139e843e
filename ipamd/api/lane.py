"""Owns the turns of what takes long: one list at a time is read and written out, and callers take turns.

A list of 5,000 keeps a core busy for a quarter of a second. Side by side a few of them would leave an ADD no time.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ipamd.core.ports import Unavailable


class Lane:
    """Used in one loop. As many may wait as there are connections."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._taken = False

    @asynccontextmanager
    async def turn(self, caller: str, patience_s: float) -> AsyncIterator[None]:
        """Have one's turn. Raises Unavailable where it does not come in time."""
        if self._taken:
            await self._wait(caller, patience_s)
        self._taken = True
        try:
            yield
        finally:
            self._taken = self._call_next()

    async def _wait(self, caller: str, patience_s: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(future)
        try:
            async with asyncio.timeout(patience_s):
                await future
        except TimeoutError:
            if not future.cancelled():
                return  # its turn came in the same moment
            raise Unavailable("too many lists are asked for: its turn did not come in time", "none") from None
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():  # its turn came as its client went
                self._taken = self._call_next()
            raise

    def _call_next(self) -> bool:
        """Give the turn on, to the caller whose last one is longest ago; whether anybody waited."""
        while self._waiting:
            caller, own = self._waiting.popitem(last=False)
            future = own.popleft()
            if own:
                self._waiting[caller] = own
            if not future.done():
                future.set_result(None)
                return True
        return False
