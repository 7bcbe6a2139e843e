"""Owns who had an address at a time that is past, and saying so where that is known no longer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from ipamd.core.addresses import Address
from ipamd.core.ports import HistoryRow, Snapshot
from ipamd.errors import ApiError
from ipamd.service.ports import Clock
from ipamd.service.reader import Reader
from ipamd.service.request import At, Request

AHEAD_MS: Final = 60_000
"""So far the clock of who asks may be ahead of this server's."""


class Past:
    """What the events tell of a time."""

    def __init__(self, reader: Reader, clock: Clock) -> None:
        self._reader, self._clock = reader, clock

    async def holder(self, space: str, address: Address, at_ms: int, request: Request) -> At[HistoryRow | None]:
        """Who had an address then; None: nobody. Raises ApiError where nobody can say, Unavailable."""
        if at_ms > self._clock.wall_ms() + AHEAD_MS:
            raise ApiError("invalid_request", f"{_text(at_ms)} is still to come")

        def look(snapshot: Snapshot) -> HistoryRow | None:
            since_ms = snapshot.events_since_ms()
            if since_ms is not None and at_ms < since_ms:
                raise ApiError(
                    "gone",
                    f"events before {_text(since_ms)} are kept no longer: who had {address} at {_text(at_ms)}"
                    " is not known any more",
                    since=_text(since_ms),
                )
            return snapshot.holding_at(space, address, at_ms)

        return await self._reader.read(look, request)


def _text(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
