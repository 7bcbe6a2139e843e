"""Owns what keeps tokens' times true: their last use is written, and the log's wall clock passes their ends."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from ipamd.core.commands import NoteUses, Origin
from ipamd.core.model import Token
from ipamd.core.ports import Log, Snapshot, Unavailable
from ipamd.core.tokens import ENDED_KEPT_MS, wants_noting
from ipamd.service.background import Background
from ipamd.service.ports import Clock
from ipamd.service.proposer import Proposer
from ipamd.service.reader import Reader
from ipamd.service.request import Request

_EVERY_S: Final = 1.0
_GATHER_S: Final = 0.05
"""Uses of many tokens at once become one command."""

_PATIENCE_S: Final = 5.0
_AGAIN_S: Final = 60.0
"""What was asked of the log, and did not come about, is asked again no sooner."""

_MOST_AT_ONCE: Final = 1000


class TokenUse(Background):
    """Writes uses as they come, from any member; and where nobody writes anything, the leader lets time pass.

    A token counts until the log says that its time is over. In a quiet log nothing would ever say so.
    """

    def __init__(self, log: Log, proposer: Proposer, reader: Reader, clock: Clock) -> None:
        super().__init__()
        self._log, self._proposer, self._reader, self._clock = log, proposer, reader, clock
        self._waiting: dict[str, None] = {}
        self._asked_s: dict[str, float] = {}
        self._passed_s = -_AGAIN_S
        self._wake = asyncio.Event()

    def note(self, token: Token, log_wall_ms: int) -> None:
        """A token is used. `log_wall_ms`: the wall clock of the log, as far as this member knows it."""
        if not wants_noting(token, max(log_wall_ms, self._clock.wall_ms())) or token.id in self._asked_s:
            return
        self._asked_s[token.id] = self._clock.monotonic_s()
        self._waiting[token.id] = None
        self._wake.set()

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_EVERY_S):
                    await self._wake.wait()
                    await asyncio.sleep(_GATHER_S)
            self._wake.clear()
            await self._keep()

    async def _keep(self) -> None:
        now_s = self._clock.monotonic_s()
        self._asked_s = {token: asked_s for token, asked_s in self._asked_s.items() if now_s - asked_s < _AGAIN_S}
        used = tuple(self._waiting)[:_MOST_AT_ONCE]
        if not used and not self._must_pass(now_s):
            return
        for token_id in used:
            del self._waiting[token_id]
        request = Request("system", "tokens", now_s + _PATIENCE_S)
        with contextlib.suppress(Unavailable):  # the next use, or the next minute, asks again
            await self._proposer.propose(NoteUses(Origin("system", "tokens"), used), request)

    def _must_pass(self, now_s: float) -> bool:
        """Whether the log has to be told that a token's time is over."""
        if not self._log.status().is_leader or now_s - self._passed_s < _AGAIN_S:
            return False
        now_ms = self._clock.wall_ms()
        if not self._reader.glance(lambda snapshot: _is_over(snapshot, now_ms)).value:
            return False
        self._passed_s = now_s
        return True


def _is_over(snapshot: Snapshot, now_ms: int) -> bool:
    end_ms = snapshot.next_token_end(snapshot.wall_ms)
    return (end_ms is not None and end_ms <= now_ms) or bool(snapshot.ended_tokens(now_ms - ENDED_KEPT_MS, 1))
