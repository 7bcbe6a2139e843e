"""Owns the life of what runs beside the requests: a task that begins in the loop and is cancelled at the end."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod


class Background(ABC):
    """Something that goes on until it is stopped."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the running loop."""
        self._task = asyncio.create_task(self._run(), name=type(self).__name__.lower())

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    @abstractmethod
    async def _run(self) -> None:
        """Work, for ever."""
