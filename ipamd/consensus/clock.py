"""Owns the interface to time: what the log asks of whoever starts it."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Two clocks; only the program's start knows the real ones."""

    def monotonic_s(self) -> float:
        """Seconds from an arbitrary beginning; it never falls."""

    def wall_ms(self) -> int:
        """Unix epoch in ms, as the host believes it."""


class Chance(Protocol):
    """Where election time-outs get their spread: as `random.Random`."""

    def random(self) -> float:
        """A number in [0, 1)."""
