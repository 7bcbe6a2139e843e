"""The simulation: the same seed gives the same run, named and new seeds break no law, mutants are caught.

ROUNDS=1, and CI=true, is 50 named and 50 new seeds; ROUNDS=1 all mutants too. SIM_SEED is where the new ones begin.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.sim.mutants import MUTANTS, hunt
from tests.sim.runs import Tally, many
from tests.sim.seeds import NAMED, OTHERS
from tests.sim.world import Result, simulate

ROUNDS = float(os.environ.get("ROUNDS", "0.1"))
SEED = int(os.environ.get("SIM_SEED", str(time.time_ns() % 10**9)))
SHARE = 1.0 if os.environ.get("CI") == "true" else min(ROUNDS, 1.0)
OLD = list(OTHERS)[: round(len(OTHERS) * SHARE)]
NEW = range(SEED, SEED + max(3, round(50 * SHARE)))
QUICK = ("h3", "h8", "no-mark", "no-generation")
"""Mutants that the first run or two catch."""


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """What members log while they are killed is of no use here."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def play(seed: int, members: int | None) -> Result:
    result = simulate(seed, members)
    assert result.violation is None, f"seed {seed}, {result.members} members: {result.violation}"
    return result


@pytest.mark.parametrize("members", [1, 3])
def test_the_same_seed_gives_the_same_run_in_every_process(members: int) -> None:
    code = f"from tests.sim.world import simulate; print(simulate(5, {members}).trace)"
    traces = {
        subprocess.run(
            [sys.executable, "-c", f"import logging; logging.disable(50); {code}"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert traces == {f"{simulate(5, members).trace}\n"}


def test_another_seed_gives_another_run() -> None:
    assert simulate(5, 1).trace != simulate(6, 1).trace


@pytest.mark.parametrize("named", NAMED, ids=lambda named: f"{named.seed}-{named.members or 'any'}")
def test_a_seed_that_once_broke_a_law(named: tuple[int, int | None, str]) -> None:
    play(named[0], named[1])


@pytest.mark.timeout(900)
def test_seeds_break_no_law_and_see_enough(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nsimulated: seeds {[one.seed for one in NAMED]}, {OLD} and {NEW.start} to {NEW.stop - 1}")  # noqa: T201
    tally = Tally()
    for result in many([*OLD, *NEW], jobs=os.cpu_count() or 1):
        tally.add(result)
    assert [(one.seed, one.members, one.violation) for one in tally.violations] == []
    assert tally.seen["acknowledged"] > 50 * tally.runs, "the runs did too little"
    assert tally.runs < 40 or not tally.missing()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", MUTANTS if ROUNDS >= 1 else QUICK)
def test_a_mutant_is_caught(name: str) -> None:
    found = hunt(name, 600)
    assert found.caught, found.sentence
