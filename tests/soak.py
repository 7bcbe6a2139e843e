"""Owns `make soak`: the faults on real processes at full counts, again and again until the time is over.

`python -m tests.soak --minutes N --seed S` prints a seed, a line for each part of each pass, and a table in the end. The
same seed makes the same choices; when things happen depends on the machine.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PARTS: tuple[tuple[str, str, str], ...] = (
    ("kills of one server", "tests/kill", ""),
    ("kills of members", "tests/cluster/test_rounds.py", "kills"),
    ("cuts and pauses", "tests/cluster/test_rounds.py", "cuts"),
    ("clock jumps", "tests/cluster/test_rounds.py", "clock"),
    ("power cuts", "tests/cluster/test_power.py", ""),
    ("disks", "tests/cluster/test_disks.py", ""),
    ("isolated members", "tests/cluster/test_cut_off.py", ""),
    ("hard times", "tests/cluster/test_hard_times.py", ""),
    ("compaction", "tests/cluster/test_compaction.py", ""),
    ("failover, restarts", "tests/cluster", "failover or restarts or any_member"),
    ("much work", "tests/cluster/test_work.py", ""),
    ("kills of the log alone", "tests/consensus/test_kill.py", ""),
    ("simulation", "tests/sim", ""),
)
SUMMARY = re.compile(r"^(?:=+ )?((?:\d+ (?:passed|failed|skipped|deselected|errors?)(?:, )?)+) in ", re.MULTILINE)
PRINTED = re.compile(r"^\.?(seed .*|\d+ acknowledged.*|\d+ leaders lost.*)$", re.MULTILINE)


class Ran(NamedTuple):
    """How a part went."""

    part: str
    seed: int
    took_s: float
    status: int
    counts: str
    figures: str

    def line(self) -> str:
        """One line of the table."""
        verdict = "ok" if self.status == 0 else "FAILED"
        return f"| {self.part} | {self.seed} | {self.took_s:.0f} s | {verdict}: {self.counts} | {self.figures} |"


def run(part: tuple[str, str, str], seed: int, rounds: str, logs: Path) -> Ran:
    """One part at full counts, its output in a file of its own."""
    name, path, choice = part
    command = [sys.executable, "-m", "pytest", "-q", "-s", path, *(("-k", choice) if choice else ())]
    seeds = dict.fromkeys(("CLUSTER_SEED", "KILL_SEED", "POWER_SEED", "SIM_SEED"), str(seed))
    began_s = time.monotonic()
    done = subprocess.run(
        command,
        env={**os.environ, "ROUNDS": rounds, **seeds},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    (logs / f"{name.replace(' ', '-')}-{seed}.log").write_text(done.stdout)
    counts = [match[1] for match in SUMMARY.finditer(done.stdout)][-1:] or ["nothing was run"]
    return Ran(
        name, seed, time.monotonic() - began_s, done.returncode, counts[0], "; ".join(PRINTED.findall(done.stdout))
    )


def passes(minutes: float, seed: int, rounds: str, logs: Path) -> Iterator[Ran]:
    """Every part once, whatever time it takes, and then again until the time is over."""
    until_s = time.monotonic() + 60 * minutes
    chance = random.Random(seed)
    is_first = True
    while is_first or time.monotonic() < until_s:
        for part in PARTS:
            if is_first or time.monotonic() < until_s:
                yield run(part, chance.randrange(10**9), rounds, logs)
        is_first = False


def main() -> int:
    """The command; its exit status is 1 if any part failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9)
    parser.add_argument("--rounds", default="1")
    args = parser.parse_args()
    logs = Path(tempfile.mkdtemp(prefix="ipamd-soak-"))
    say(f"seed {args.seed}, at least {args.minutes:g} minutes; output in {logs}")
    ran: list[Ran] = []
    for one in passes(args.minutes, args.seed, args.rounds, logs):
        say(one.line())
        ran.append(one)
    failed = [one for one in ran if one.status != 0]
    say(f"\nseed {args.seed}\n\n| part | seed | time | result | figures |\n|---|---|---|---|---|")
    say("\n".join(one.line() for one in ran))
    say(f"\n{len(ran)} parts, {len(failed)} failed")
    return 1 if failed else 0


def say(text: str) -> None:
    """To whoever waits, at once."""
    print(text, flush=True)  # noqa: T201 - it is what the command is for


if __name__ == "__main__":
    sys.exit(main())
