"""Owns the way of a read: wait until this member has seen all that was acknowledged, then look at one snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ipamd.core.ports import Log, Snapshot, State, Unavailable
from ipamd.service.ports import Clock
from ipamd.service.request import At, Request

T = TypeVar("T")

_THREADS = 4


class Reader:
    """Reads snapshots in a few threads of its own, so that a long read never holds up the loop."""

    def __init__(self, log: Log, state: State, clock: Clock) -> None:
        self._log, self._state, self._clock = log, state, clock
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="read")

    async def read(self, look: Callable[[Snapshot], T], request: Request) -> At[T]:
        """What `look` sees. Linearizable unless the request is content with this member's state. Raises Unavailable."""
        if not request.stale:
            await self._log.barrier(self._left_s(request))
        return await self.peek(look, self._left_s(request))

    async def peek(self, look: Callable[[Snapshot], T], timeout_s: float) -> At[T]:
        """What `look` sees in this member's own state, without waiting for the log. Raises Unavailable."""
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.get_running_loop().run_in_executor(self._threads, self.glance, look)
        except TimeoutError:
            raise Unavailable("the time for this request ran out before it could be read", "none") from None

    def glance(self, look: Callable[[Snapshot], T]) -> At[T]:
        """The same at once, in this thread: for reads of a few rows."""
        with self._state.snapshot() as snapshot:
            return At(snapshot.applied_index, look(snapshot))

    def now_s(self) -> float:
        """The clock that deadlines are on."""
        return self._clock.monotonic_s()

    def close(self) -> None:
        """Wait for reads that are under way, and end the threads."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _left_s(self, request: Request) -> float:
        left_s = request.deadline_s - self._clock.monotonic_s()
        if left_s <= 0:
            raise Unavailable("the time for this request ran out before it could be read", "none")
        return left_s
