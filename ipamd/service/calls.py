"""Owns the memory of the last CNI calls that this process answered, for people who look for what went wrong."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

_KEPT = 1000


class CallRecord(NamedTuple):
    """One CNI call. `code` 0: it succeeded; `took_ms` is the time that the server spent."""

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


class Calls:
    """A ring of the last 1,000 calls."""

    def __init__(self) -> None:
        self._ring: deque[CallRecord] = deque(maxlen=_KEPT)

    def note(self, record: CallRecord) -> None:
        """Remember a call; the oldest is forgotten."""
        self._ring.append(record)

    def latest(self) -> Sequence[CallRecord]:
        """All that are remembered, newest first."""
        return tuple(reversed(self._ring))
