"""Owns the spool as the loop sees it: calls that come together share the syncs, and nothing waits for the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from ipamd.core.spooled import MOST_CALLS, SpooledCall
from ipamd.spool.folder import Folder

T = TypeVar("T")


class DirectorySpool:
    """A spool in a directory: core.spooled.Spool. Used in one loop."""

    def __init__(self, path: Path, most: int = MOST_CALLS) -> None:
        """Raises SpoolError."""
        self._folder = Folder(path, most)
        self._thread = ThreadPoolExecutor(1, "spool")
        self._waiting: list[tuple[SpooledCall, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    @property
    def length(self) -> int:
        """How many calls wait."""
        return len(self._folder.numbers)

    @property
    def refused(self) -> int:
        """How many calls that nobody takes are kept for people."""
        return len(self._folder.refused_numbers)

    @property
    def oldest(self) -> int | None:
        """The number of the call to be delivered next; None: none waits."""
        return _at(self._folder.numbers, 0)

    @property
    def newest(self) -> int | None:
        """The number of the call that came last."""
        return _at(self._folder.numbers, -1)

    def first(self, most: int) -> Sequence[int]:
        """The numbers of up to so many calls that are to be delivered next, in order."""
        numbers = (_at(self._folder.numbers, place) for place in range(most))
        return [number for number in numbers if number is not None]

    async def put(self, call: SpooledCall) -> None:
        """Keep a call; returns once a power cut cannot take it away. Raises SpoolError."""
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((call, kept))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        await kept

    async def read(self, number: int) -> SpooledCall:
        """A call that waits. Raises Damaged, SpoolError."""
        return await self._in_thread(lambda: self._folder.read(number))

    async def drop(self, number: int) -> None:
        """A call was delivered: it waits no more. Raises SpoolError if its file stays."""
        await self._in_thread(lambda: self._folder.drop(number))

    async def refuse(self, number: int, why: str) -> None:
        """A call will never be taken: it waits no more, and is kept for people. Raises SpoolError if it is not."""
        await self._in_thread(lambda: self._folder.refuse(number, why))

    async def close(self) -> None:
        """Finish what is under way, and let another process have the directory."""
        if self._writer is not None:
            await self._writer
        await asyncio.to_thread(self._thread.shutdown)
        self._folder.close()

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            results = await self._in_thread(partial(self._folder.put, [call for call, _ in batch]))
            for (_, kept), failed in zip(batch, results, strict=True):
                if kept.done():
                    continue  # its caller is gone; the call is kept all the same
                if failed is None:
                    kept.set_result(None)
                else:
                    kept.set_exception(failed)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _at(numbers: Sequence[int], place: int) -> int | None:
    """The other thread takes numbers away meanwhile: looking first would not help."""
    try:
        return numbers[place]
    except IndexError:
        return None
