"""Owns the command line of the simulation: many runs from one seed on, or the mutants that they must catch."""

# ruff: noqa: T201 - a command line

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable

from tests.sim.mutants import MUTANTS, hunt
from tests.sim.runs import Tally, many

LIMIT_S = 60.0
"""How long a mutant may live."""


def main() -> int:
    """Exit status 0: no law was broken and the runs saw enough; mutants: each was caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9)
    parser.add_argument("--members", type=int, help="1, 3 or 5; by default the seed says")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--mutants", nargs="*", metavar="NAME", help="hunt these (none named: all) instead")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if options.mutants is not None:
        return hunt_all(options.mutants or list(MUTANTS))
    return run_all(range(options.seed, options.seed + options.runs), options.members, options.jobs)


def run_all(seeds: range, members: int | None, jobs: int) -> int:
    """Run them, tell each violation as it comes and the sum in the end."""
    print(f"seeds {seeds.start} to {seeds.stop - 1}", flush=True)
    tally, started_s = Tally(), time.monotonic()
    for result in many(seeds, members, jobs):
        tally.add(result)
        if result.violation is not None:
            print(f"VIOLATION seed {result.seed} ({result.members} members): {result.violation}", flush=True)
    took_s = time.monotonic() - started_s
    rate = tally.runs / tally.spent_s * 60 if tally.spent_s else 0.0
    print(f"{tally.runs} runs in {took_s:.0f} s, {rate:.0f} a minute and core; violations: {len(tally.violations)}")
    print_counts(tally.seen)
    missing = tally.missing()
    for sentence in missing:
        print(f"VOID: {sentence}")
    return 1 if tally.violations or missing else 0


def hunt_all(names: Iterable[str]) -> int:
    """Each mutant until it is caught."""
    alive = 0
    for name in names:
        found = hunt(name, LIMIT_S)
        print(f"{name}: {found.sentence} [{found.runs} runs, {found.took_s:.1f} s]", flush=True)
        alive += not found.caught
    return 1 if alive else 0


def print_counts(seen: Counter[str]) -> None:
    """What the runs saw."""
    print(", ".join(f"{name} {count}" for name, count in sorted(seen.items())))


if __name__ == "__main__":
    sys.exit(main())
