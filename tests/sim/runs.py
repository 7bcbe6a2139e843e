"""Owns running many seeds, on several cores, and what they must have seen together to count."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.sim.world import Result, simulate

MINIMUM = {"elections": 50, "installs": 20, "truncations": 20, "membership changes": 10, "acknowledged": 5_000}
"""What 200 runs must have seen, or they show nothing."""


@dataclass
class Tally:
    """The sum of many runs."""

    runs: int = 0
    spent_s: float = 0.0
    violations: list[Result] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def add(self, result: Result) -> None:
        """One more."""
        self.runs += 1
        self.spent_s += result.took_s
        self.seen.update(result.seen)
        if result.violation is not None:
            self.violations.append(result)

    def missing(self) -> list[str]:
        """What was not seen often enough, in proportion; few runs may see nothing of the rarer things."""
        share = self.runs / 200
        wanted = {name: int(least * share) for name, least in MINIMUM.items()}
        return [
            f"{self.seen[name]} {name} in {self.runs} runs, at least {least} are needed"
            for name, least in wanted.items()
            if self.seen[name] < least
        ]


def many(seeds: Iterable[int], members: int | None = None, jobs: int = 1) -> Iterator[Result]:
    """The results, as they come."""
    work = [(seed, members) for seed in seeds]
    if jobs <= 1:
        yield from map(_one, work)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, logging.disable, (logging.CRITICAL,)) as pool:
        yield from pool.imap_unordered(_one, work)


def _one(work: tuple[int, int | None]) -> Result:
    gc.disable()  # what a run leaves is collected after it, at once
    started_s = time.process_time()
    result = simulate(*work)
    gc.collect()
    gc.enable()
    return result._replace(took_s=time.process_time() - started_s)
