"""kill -9 under load, again and again on one directory: what was acknowledged is there, once, and in order."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.consensus.members import running

ROOT = Path(__file__).resolve().parents[2]
LEAST = 21
"""A round with fewer acknowledgements would say little."""

ROUNDS = max(3, round(20 * float(os.environ.get("ROUNDS", "0.1"))))


def acknowledged_until_killed(directory: Path, name: str, after_s: float) -> list[bytes]:
    """Run the victim, kill it some time after its first acknowledgements; what it had acknowledged."""
    command = [sys.executable, "-m", "tests.consensus.victim", str(directory), name]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as victim:
        assert victim.stdout is not None
        first = b"".join(victim.stdout.readline() for _ in range(LEAST))
        time.sleep(after_s)
        victim.send_signal(signal.SIGKILL)
        rest = victim.stdout.read()
    return (first + rest).split()


async def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    chance = random.Random(7)
    acknowledged: list[bytes] = []
    for number in range(ROUNDS):
        found = acknowledged_until_killed(tmp_path, f"r{number}", chance.uniform(0.02, 0.3))
        assert len(found) >= LEAST
        acknowledged += found
    async with running(tmp_path) as member:
        commands = Counter(member.machine.commands)
        places = {command: place for place, command in enumerate(member.machine.commands)}
    assert [command for command in acknowledged if commands[command] != 1] == []
    assert max(commands.values()) == 1
    for client in {command.rsplit(b"-", 1)[0] for command in acknowledged}:
        own = [places[command] for command in acknowledged if command.rsplit(b"-", 1)[0] == client]
        assert own == sorted(own)
