"""Owns the life of what runs beside the requests: a task that begins in the loop and is cancelled at the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from typing import Final

AGAIN_S: Final = 1.0

_log = logging.getLogger("ipamd")


class Background(ABC):
    """Something that goes on until it is stopped."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the running loop."""
        self._task = asyncio.create_task(self._go_on(), name=type(self).__name__.lower())

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _go_on(self) -> None:
        """Work; what fails for a reason that nobody foresaw begins anew, since nobody would miss it soon."""
        while True:
            try:
                return await self._run()
            except Exception:  # noqa: BLE001 - the boundary of the task
                _log.exception("%s failed for a reason that nobody foresaw, and begins anew", type(self).__name__)
            await asyncio.sleep(AGAIN_S)

    @abstractmethod
    async def _run(self) -> None:
        """Work, for ever."""
