"""Owns how durations and sizes are counted: plain numbers in buckets, which whoever shows metrics reads."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

SECONDS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of buckets for what takes from a wake-up of a thread to the patience of a caller."""

COUNTS: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
"""Upper bounds of buckets for how many are done at once."""


class Histogram:
    """How often a value fell into which bucket. Written by one thread, read by any."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        """`bounds`: the highest value of each bucket but the last, which takes the rest; they rise."""
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0
        """The sum of all values."""

    def note(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class PeerFigures(NamedTuple):
    """How a leader sees another member: what it lacks of the journal, and how long ago it answered (None: never)."""

    name: str
    lag_entries: int
    silent_s: float | None
