"""Owns the leader's stamps: a log clock that goes with the leader's monotonic time and never falls."""

from __future__ import annotations

from typing import NamedTuple

from ipamd.consensus.clock import Clock
from ipamd.core.entries import Stamp


class _Base(NamedTuple):
    """Where the log clock stood at a moment of the leader's monotonic time."""

    log_ms: int
    monotonic_s: float


class LogClock:
    """Stamps entries while this member leads; between two leaders the log clock stands still."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._base = _Base(0, clock.monotonic_s())
        self._wall_ms = 0

    def lead(self, log_ms: int, wall_ms: int) -> None:
        """Go on from what was applied last: this member has just applied its own first entry."""
        self._base = _Base(log_ms, self._clock.monotonic_s())
        self._wall_ms = max(self._wall_ms, wall_ms)

    def log_ms(self) -> int:
        """What an entry made now would be stamped with. May be asked by any thread."""
        base = self._base
        return base.log_ms + int((self._clock.monotonic_s() - base.monotonic_s) * 1000)

    def stamp(self) -> Stamp:
        """The stamp of an entry made now; the wall clock in it never falls either."""
        self._wall_ms = max(self._wall_ms, self._clock.wall_ms())
        return Stamp(self.log_ms(), self._wall_ms)
