"""Owns a process that applies entries until it kills itself with SIGKILL in the midst of one.

Entry n (from 1) makes pod `t/n`, and entry 0 the pool. Run as a program: DATA_DIR, and after how many statements to die.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from ipamd.core.commands import Command
from tests.storage.driver import Driver
from tests.storage.pods import add, delete, pool

ENTRIES = 12


def command(number: int) -> tuple[Command, ...]:
    """The commands of an entry: a pod comes, and the one before it goes; never the first."""
    if number == 0:
        return (pool("p", "192.0.2.0/24", cooldown_s=1),)
    return (add(f"t/{number}"), *([delete(f"t/{number - 1}")] if number > 2 else []))


def child(data_dir: Path, kill_after: int) -> subprocess.Popen[bytes]:
    """Start the process."""
    root = Path(__file__).parents[2]
    program = [sys.executable, "-m", "tests.storage.crash", str(data_dir), str(kill_after)]
    return subprocess.Popen(program, cwd=root)


def run(data_dir: Path, kill_after: int) -> None:
    """Apply entries; die before the statement with that number."""
    driver, left = Driver(data_dir), kill_after

    def count(_statement: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    driver.connection.set_trace_callback(count)
    for number in range(ENTRIES):
        driver.log_ms += 100
        driver.run(*command(number))
    driver.connection.set_trace_callback(None)
    driver.close()


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))
