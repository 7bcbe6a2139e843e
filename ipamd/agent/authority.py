"""Owns saying in time that the authority which servers must hold before ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from ipamd.service.background import Background
from ipamd.service.ports import Clock

WARN_DAYS: Final = 30
_LOOK_S: Final = 3600.0
_DAY_S: Final = 86_400.0

_log = logging.getLogger("ipamd.agent")


class AuthorityWatch(Background):
    """Says it each day, from thirty days before."""

    def __init__(self, days_left: Callable[[], int | None], clock: Clock) -> None:
        """`days_left` None: the system's authorities are trusted, which the system looks after."""
        super().__init__()
        self._days_left, self._clock = days_left, clock
        self._said_s: float | None = None

    def look(self) -> None:
        """Look once."""
        days, now_s = self._days_left(), self._clock.monotonic_s()
        if days is not None and days < WARN_DAYS and (self._said_s is None or now_s - self._said_s >= _DAY_S):
            self._said_s = now_s
            _log.warning("the authority in tls-ca ends in %s days: no server will be trusted then", days)

    async def _run(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(_LOOK_S)
