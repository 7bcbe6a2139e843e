"""Owns token buckets: how often something may be done in the name of a key, with as much memory as was allowed.

A bucket is one number, the time at which it will be full again (GCRA). One that is full is as good as none.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from ipamd.service.ports import Clock

MOST_KEYS: Final = 10_000


class Rate(NamedTuple):
    """So many a second, and so many at once after a pause."""

    per_s: float
    burst: int


class Buckets:
    """A bucket for each key. Of too many keys the one that was used longest ago is forgotten: it is full by then."""

    def __init__(self, rate: Rate, clock: Clock, most_keys: int = MOST_KEYS) -> None:
        self._rate, self._clock, self._most_keys = rate, clock, most_keys
        self._full_s: OrderedDict[str, float] = OrderedDict()

    def take(self, key: str) -> float:
        """Take one; 0, or in how many seconds there will be one to take."""
        now_s, per_s = self._clock.monotonic_s(), self._rate.per_s
        full_s = max(self._full_s.get(key, now_s), now_s) + 1 / per_s
        wait_s = full_s - now_s - self._rate.burst / per_s
        if wait_s > 1e-9:  # less than that is what adding up has lost
            return wait_s
        self._full_s[key] = full_s
        self._full_s.move_to_end(key)
        while len(self._full_s) > self._most_keys:
            self._full_s.popitem(last=False)
        return 0.0

    def __len__(self) -> int:
        """How many keys are remembered."""
        return len(self._full_s)
