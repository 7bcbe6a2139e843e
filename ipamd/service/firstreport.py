"""Owns a moment of patience after a restore: until this host's own node has reported, the server is not ready.

It reports before anything else; ADDs that come before it has wait, so that they need not be told to come again.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ipamd.core.ports import Snapshot
from ipamd.core.withheld import awaited
from ipamd.service.ports import Facts
from ipamd.service.reader import Reader
from ipamd.service.request import Request

PATIENCE_S: Final = 3.0
"""So long in all, counted from the first call."""

_LOOK_S: Final = 0.1
_MARGIN_S: Final = 0.5


class FirstReport:
    """Asks for nothing once it is over, which it is at once where nothing was restored."""

    def __init__(self, reader: Reader, facts: Facts) -> None:
        self._reader, self._facts = reader, facts
        self._is_over = False
        self._until_s: float | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether this node has reported before the backup was taken, and not since it was restored."""
        return not self._is_over and self._reader.glance(self._is_awaited).value

    @property
    def is_pending(self) -> bool:
        """Whether it is worth while to wait for that a moment longer."""
        if not self._is_over:
            now_s = self._reader.now_s()
            self._until_s = self._until_s or now_s + PATIENCE_S
            self._is_over = now_s >= self._until_s or not self.is_awaited
        return not self._is_over

    async def wait(self, request: Request) -> None:
        """Return once this node has reported since the restore, or it has been waited for long enough."""
        while self.is_pending and self._reader.now_s() < request.deadline_s - _MARGIN_S:  # noqa: ASYNC110 - the log is asked
            await asyncio.sleep(_LOOK_S)

    def _is_awaited(self, snapshot: Snapshot) -> bool:
        restored = snapshot.restored()
        own = self._facts.whole_node
        return restored is not None and any(node.name == own for node in awaited(snapshot, restored))
