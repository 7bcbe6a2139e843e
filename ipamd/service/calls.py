"""Owns the memory of the last CNI calls that this process answered, for people who look for what went wrong."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from ipamd.service.request import Page, page_of

_KEPT = 1000


class CallRecord(NamedTuple):
    """One CNI call. `code` 0: it succeeded; `took_ms` is the time that this process spent; `spooled`: put aside."""

    at_ms: int
    verb: str
    node: str
    pod_ref: str | None
    pools: tuple[str, ...]
    container_id: str | None
    ifname: str | None
    code: int
    took_ms: float
    request_id: str
    spooled: bool = False


class NumberedCall(NamedTuple):
    """A call with its place among all that this process answered, from 1."""

    number: int
    record: CallRecord


class Calls:
    """A ring of the last 1,000 calls."""

    def __init__(self) -> None:
        self._ring: deque[CallRecord] = deque(maxlen=_KEPT)
        self._noted = 0

    def note(self, record: CallRecord) -> None:
        """Remember a call; the oldest is forgotten."""
        self._ring.append(record)
        self._noted += 1

    def page(self, before: int | None, limit: int) -> Page[NumberedCall]:
        """Up to `limit` of those that are remembered with numbers below `before` (None: of all), newest first."""
        numbered = map(NumberedCall, range(self._noted, 0, -1), reversed(self._ring))
        return page_of([one for one in numbered if before is None or one.number < before], limit)
