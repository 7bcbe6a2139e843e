"""Owns the leader's stamps: a log clock that goes with the leader's monotonic time and never falls."""

from __future__ import annotations

from typing import NamedTuple

from ipamd.consensus.clock import Clock
from ipamd.core.entries import MOST_APART_MS, Stamp


class _Base(NamedTuple):
    """Where the log clock stood at a moment of the leader's monotonic time."""

    log_ms: int
    monotonic_s: float


class _Vouched(NamedTuple):
    """What the wall clock said when a majority had the same, and when that was."""

    wall_ms: int
    monotonic_s: float


class LogClock:
    """Stamps entries while this member leads; between two leaders the log clock stands still.

    The wall clock in a stamp never falls, so that one wrong clock could spoil it for good. It is believed until a
    majority says otherwise, and after it was vouched for only as long as it goes on from there.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._base = _Base(0, clock.monotonic_s())
        self._wall_ms = 0
        self._vouched: _Vouched | None = None
        self._is_denied = False

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
        wall_ms = self._clock.wall_ms()
        if self._is_believed(wall_ms):
            self._wall_ms = max(self._wall_ms, wall_ms)
        return Stamp(self.log_ms(), self._wall_ms)

    def judge_wall(self, *, is_right: bool) -> None:
        """What a majority of the members says of this one's wall clock. May be told by any thread."""
        self._vouched = _Vouched(self._clock.wall_ms(), self._clock.monotonic_s()) if is_right else None
        self._is_denied = not is_right

    def _is_believed(self, wall_ms: int) -> bool:
        vouched = self._vouched
        if vouched is None:
            return not self._is_denied
        expected_ms = vouched.wall_ms + (self._clock.monotonic_s() - vouched.monotonic_s) * 1000
        return abs(wall_ms - expected_ms) <= MOST_APART_MS
