"""The stopwatch of the tests: time in a queue for a processor does not count, time in which one waits does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stopwatch import Stopwatch

BUSY = "print(flush=True)\nwhile True: pass"
WORK_S = 0.3

pytestmark = pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel does not count queueing")


@pytest.fixture
def shared_processor() -> Iterator[None]:
    """There is one processor, and another process that wants it all the time."""
    usual = os.sched_getaffinity(0)
    one = {min(usual)}
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None
            other.stdout.readline()
            os.sched_setaffinity(other.pid, one)
            os.sched_setaffinity(0, one)
            yield
        finally:
            os.sched_setaffinity(0, usual)
            other.kill()


@pytest.mark.usefixtures("shared_processor")
def test_what_others_take_of_the_machine_does_not_count() -> None:
    watch, began_s, worked_s = Stopwatch(), time.monotonic(), time.thread_time()
    while time.thread_time() - worked_s < WORK_S:
        pass
    elapsed_s, spent_s = time.monotonic() - began_s, watch.spent_s()
    assert WORK_S / 2 < spent_s < WORK_S * 1.3
    assert elapsed_s > spent_s + WORK_S / 3
    time.sleep(WORK_S)
    assert watch.spent_s() > spent_s + WORK_S / 2
