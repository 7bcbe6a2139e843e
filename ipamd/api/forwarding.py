"""Owns sending proposals to another member in batches: what comes while a request is under way waits for the next.

A request between members costs more than what it asks for. Under load many proposals share one; alone, each goes at
once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from ipamd.api.between import Result
from ipamd.core.entries import Item
from ipamd.core.ports import Answer, Unavailable

UNDER_WAY: Final = 2
"""Requests to one member at a time: while one is answered the next is read."""

BATCH_ITEMS: Final = 256
MOST_WAITING: Final = 2_048
BATCH_BYTES: Final = 512 * 1024

Send = Callable[[Sequence[Item], float], Awaitable[Sequence[Result]]]
"""Sends a batch, which has so many seconds; a result for each. Raises Unavailable."""


class _Waiting(NamedTuple):
    item: Item
    deadline_s: float
    future: asyncio.Future[Answer]


class Forwarder:
    """Proposals on their way to one member. Used in one loop."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: deque[_Waiting] = deque()
        self._under_way: dict[asyncio.Task[None], list[_Waiting]] = {}
        self._closed = False

    async def propose(self, item: Item, timeout_s: float) -> Answer:
        """Have an item put into the member's log. Raises Unavailable."""
        if len(self._waiting) >= MOST_WAITING:
            raise Unavailable("too many proposals wait to be sent to the leader", "none")
        loop = asyncio.get_running_loop()
        waiting = _Waiting(item, loop.time() + timeout_s, loop.create_future())
        self._waiting.append(waiting)
        self._go_on()
        try:
            async with asyncio.timeout_at(waiting.deadline_s):
                return await waiting.future
        except TimeoutError:
            if waiting in self._waiting:
                raise Unavailable("the leader had no time for it", "none") from None
            raise Unavailable("the leader did not answer in time", "unknown") from None
        finally:
            self._give_up()

    async def close(self) -> None:
        """Give up what is under way."""
        self._closed = True
        for task in list(self._under_way):
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _go_on(self) -> None:
        while not self._closed and len(self._under_way) < UNDER_WAY and (batch := self._take()):
            task = asyncio.get_running_loop().create_task(self._carry(batch))
            self._under_way[task] = batch
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.pop(task, None)
        self._go_on()

    def _give_up(self) -> None:
        """End requests that nobody waits for any more: they would keep others from being sent."""
        for task, batch in self._under_way.items():
            if all(waiting.future.done() for waiting in batch):
                task.cancel()

    def _take(self) -> list[_Waiting]:
        """The next batch; who has stopped waiting is not in it."""
        batch: list[_Waiting] = []
        size_bytes = 0
        while self._waiting and len(batch) < BATCH_ITEMS:
            waiting = self._waiting[0]
            size_bytes += waiting.item.size_bytes
            if batch and size_bytes > BATCH_BYTES:
                break
            self._waiting.popleft()
            if not waiting.future.done():
                batch.append(waiting)
        return batch

    async def _carry(self, batch: list[_Waiting]) -> None:
        left_s = max(waiting.deadline_s for waiting in batch) - asyncio.get_running_loop().time()
        try:
            results: Sequence[Result] = await self._send([waiting.item for waiting in batch], left_s)
        except Unavailable as error:
            results = [error] * len(batch)
        except asyncio.CancelledError:
            results = [Unavailable("this member is stopping", "unknown")] * len(batch)
        for waiting, result in zip(batch, results, strict=True):
            _settle(waiting.future, result)


def _settle(future: asyncio.Future[Answer], result: Result) -> None:
    if future.done():
        return
    if isinstance(result, Unavailable):
        future.set_exception(Unavailable(result.detail, result.outcome, result.retry_after_s))
    else:
        future.set_result(result)
