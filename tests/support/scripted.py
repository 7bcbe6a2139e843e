"""Owns stand-ins for what the use cases are handed: a clock that a test turns, and a log that answers as told."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from ipamd.core.entries import Item
from ipamd.core.outcomes import Done, Outcome
from ipamd.core.ports import Answer, LogStatus, Unavailable


class TurnedClock:
    """A clock that stands still until a test turns it."""

    def __init__(self) -> None:
        self.now_s, self.epoch_ms = 1000.0, 1_700_000_000_000

    def monotonic_s(self) -> float:
        return self.now_s

    def wall_ms(self) -> int:
        return self.epoch_ms


class ScriptedLog:
    """A log that keeps what is proposed and answers each proposal with the next of its answers (at last: Done)."""

    def __init__(self, *answers: Outcome | Unavailable) -> None:
        self.answers = list(answers)
        self.items: list[Item] = []
        self.timeouts_s: list[float] = []
        self.barriers = 0
        self.watchers: list[Callable[[], None]] = []
        self.now = LogStatus("n1", True, 1, 7, 7, 0, None)

    async def propose(self, item: Item, timeout_s: float) -> Answer:
        self.items.append(item)
        self.timeouts_s.append(timeout_s)
        answer = self.answers.pop(0) if self.answers else Done()
        if isinstance(answer, Unavailable):
            raise answer
        return Answer(self.now.applied + len(self.items), answer)

    async def barrier(self, timeout_s: float) -> int:
        self.timeouts_s.append(timeout_s)
        self.barriers += 1
        return self.now.applied

    def status(self) -> LogStatus:
        return self.now

    def watch(self, wake: Callable[[], None]) -> None:
        self.watchers.append(wake)


def counting_bytes() -> Callable[[int], bytes]:
    """Bytes that are never the same twice."""
    numbers = itertools.count(1)
    return lambda size: next(numbers).to_bytes(size, "big")
