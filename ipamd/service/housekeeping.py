"""Owns the passing of time when nobody writes: what is due is ended by an entry of the leader's own."""

from __future__ import annotations

import asyncio
import contextlib

from ipamd.core.commands import Expire, Origin
from ipamd.core.ports import Log, Unavailable
from ipamd.service.background import Background
from ipamd.service.ports import Clock
from ipamd.service.proposer import Proposer
from ipamd.service.request import Request

_EVERY_S = 0.25
_PATIENCE_S = 5.0


class Housekeeping(Background):
    """Looks four times a second whether something is due."""

    def __init__(self, log: Log, proposer: Proposer, clock: Clock) -> None:
        super().__init__()
        self._log, self._proposer, self._clock = log, proposer, clock

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            if self._due():
                await self._expire()

    def _due(self) -> bool:
        status = self._log.status()
        return status.is_leader and status.next_due_log_ms is not None and status.next_due_log_ms <= status.log_ms

    async def _expire(self) -> None:
        command = Expire(Origin("system", "housekeeping"))
        request = Request("system", "housekeeping", self._clock.monotonic_s() + _PATIENCE_S)
        with contextlib.suppress(Unavailable):  # it is tried again in a quarter of a second, by whoever leads then
            await self._proposer.propose(command, request)
