"""Owns simulated time: what is due when, and the clocks that members read."""

from __future__ import annotations

import heapq
from collections.abc import Callable

READ_S = 2e-5
"""What a look at a clock costs: a loop that waits for the clock ends."""

WALL_MS = 1_700_000_000_000


class Timeline:
    """One simulated time for all. What is due at the same moment is done in the order in which it was put in."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0

    def at(self, when_s: float, act: Callable[[], None]) -> None:
        """Do something at a time, or at once where that has passed."""
        self._number += 1
        heapq.heappush(self._due, (max(when_s, self.now_s), self._number, act))

    def after(self, delay_s: float, act: Callable[[], None]) -> None:
        """Do something later."""
        self.at(self.now_s + delay_s, act)

    def run(self, until_s: float) -> None:
        """Let time pass."""
        while self._due and self._due[0][0] <= until_s:
            self.now_s, _, act = heapq.heappop(self._due)
            act()
        self.now_s = until_s


class MemberClock:
    """The clocks of one host. While its process works, its time runs ahead of the simulation's by what was spent.

    Who looks at its clock from outside spends nothing of its time.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._read_s = 0.0
        self.spent_s = 0.0
        self._works = False
        self.wall_shift_ms = 0
        """How wrong the wall clock is; it may jump."""

    @property
    def here_s(self) -> float:
        """The simulation's time plus what the process spent since it began to work."""
        return self._timeline.now_s + self.spent_s

    def begin(self, cost_s: float) -> None:
        """The process works from now on; a round costs something in any case."""
        self._works, self.spent_s = True, cost_s

    def end(self) -> float:
        """The process waits; until when it has worked."""
        until_s = self.here_s
        self._works, self.spent_s = False, 0.0
        return until_s

    def spend(self, cost_s: float) -> None:
        """Something took its time."""
        self.spent_s += cost_s

    def monotonic_s(self) -> float:
        """Seconds; each look costs a little, and it never falls."""
        now_s = self._timeline.now_s
        read_s = now_s + self.spent_s + READ_S
        if read_s <= self._read_s:
            read_s = self._read_s + READ_S
        self._read_s = read_s
        if self._works:
            self.spent_s = read_s - now_s
        return read_s

    def wall_ms(self) -> int:
        """What the host believes."""
        return WALL_MS + int(self.here_s * 1000) + self.wall_shift_ms
