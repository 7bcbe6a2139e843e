"""Random lives of hosts against three servers of which one is always about to be killed.

ROUNDS=1 is 500 lives of 30 steps; CLUSTER_SEED repeats the choices of a run (not its timing).
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.cluster.lives import GRACE_S, JSON, Lives
from tests.support.cluster import Cluster, rounds

SEED = int(os.environ.get("CLUSTER_SEED", str(time.time_ns() % 10**9)))
LIVES, AT_A_TIME = rounds(500, 8), 6
CALM_S = 3.0


@contextmanager
def killed_now_and_then(cluster: Cluster, chance: random.Random) -> Iterator[Counter[str]]:
    """A member after the other is killed and comes back, while the block lasts."""
    ending, done = threading.Event(), Counter[str]()

    def kill() -> None:
        while not ending.wait(chance.uniform(CALM_S, 2 * CALM_S)):
            victim = chance.choice([*cluster])
            victim.kill()
            done[victim.name] += 1
            victim.start()

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield done
    finally:
        ending.set()
        thread.join()


@pytest.mark.timeout(1800)
def test_the_living_keep_their_addresses_and_the_dead_do_not(three: Cluster) -> None:
    settings = three.any().ask("GET", "/v1/settings").json | {"evidence_grace_s": GRACE_S}
    three.any().ask("PUT", "/v1/settings", settings, 10.0, **JSON)
    lives = [Lives(three, number, SEED + number) for number in range(LIVES)]

    def play(one: Lives) -> str:
        try:
            one.play()
        except AssertionError as error:
            return f"seed {SEED}, {one.pool}: {error}"
        return ""

    with killed_now_and_then(three, random.Random(SEED)) as kills, ThreadPoolExecutor(AT_A_TIME) as pool:
        broken = [said for said in pool.map(play, lives) if said]
    did = sum((one.did for one in lives), Counter[str]())
    print(f"seed {SEED}: {LIVES} lives, {dict(did)}, killed {dict(kills)}")  # noqa: T201 - pytest shows it
    assert not broken, "\n".join(broken)
    assert did["add: 0"] > LIVES
    assert all(did[f"add: {code}"] for code in (11, 114)) or LIVES < 20
    assert kills
    three.level()
