"""Owns measuring what somebody promises to take no longer than: what others take of the machine meanwhile does not count.

A promise is about the time that a program waits for what it asked, pauses and works. How long it stands in the queue
for a processor is up to the machine, and the kernel keeps account of it, to the nanosecond.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol

LOOKS = 20


class Process(Protocol):
    """A server or an agent."""

    @property
    def pid(self) -> int:
        """Its process id."""


class Stopwatch:
    """Runs from when it is made. What the test and these processes queued for a processor is taken off."""

    def __init__(self, *processes: Process) -> None:
        self._pids = (os.getpid(), *(one.pid for one in processes))
        self._began_s, self._queued_s = self._look()

    def spent_s(self) -> float:
        """The time so far, but for the queueing. Of who has ended meanwhile nothing is known, and nothing taken off."""
        now_s, queued_s = self._look()
        pairs = zip(queued_s, self._queued_s, strict=True)
        return now_s - self._began_s - sum(max(0.0, now - before) for now, before in pairs)

    def _look(self) -> tuple[float, list[float]]:
        """The time, and how long each has queued by then: looked at again where the test itself queued meanwhile."""
        for _ in range(LOOKS):
            before_s, now_s = _queued_s(self._pids[0]), time.monotonic()
            queued_s = [_queued_s(pid) for pid in self._pids]
            if queued_s[0] == before_s:
                break
        return now_s, queued_s


def _queued_s(pid: int) -> float:
    """How long the threads of a process have queued so far: the second number of schedstat, in nanoseconds."""
    total_ns = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):  # a thread ended while it was looked at, or all of them
            total_ns += int(task.read_text().split()[1])
    return total_ns / 10**9
