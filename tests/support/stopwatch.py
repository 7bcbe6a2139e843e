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


class Process(Protocol):
    """A server or an agent."""

    @property
    def pid(self) -> int:
        """Its process id."""


class Stopwatch:
    """Runs from when it is made. What the test and these processes queued for a processor is taken off."""

    def __init__(self, *processes: Process) -> None:
        self._queued_s = {pid: _queued_s(pid) for pid in (os.getpid(), *(one.pid for one in processes))}
        self._began_s = time.monotonic()

    def spent_s(self) -> float:
        """The time so far, but for the queueing. Of who has ended meanwhile nothing is known, and nothing taken off."""
        elapsed_s = time.monotonic() - self._began_s
        return elapsed_s - sum(max(0.0, _queued_s(pid) - before) for pid, before in self._queued_s.items())


def _queued_s(pid: int) -> float:
    """How long the threads of a process have queued so far: the second field of schedstat in proc(5)."""
    total_ns = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):  # a thread ended while it was looked at, or all of them
            total_ns += int(task.read_text().split()[1])
    return total_ns / 10**9
