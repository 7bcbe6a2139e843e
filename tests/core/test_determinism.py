"""The same commands give the same state everywhere: another order of hashes changes nothing, and neither does a replay."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

from ipamd.core.commands import Binding, ReclaimCause, RenameNode
from ipamd.core.memory import KEYS, MemoryState
from ipamd.core.model import FOREVER, Attachment, Strategy
from tests.core.world import ORIGIN, World, range_of

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "from tests.core.test_determinism import played, digest; print(digest(played(300).state))"


def played(steps: int) -> World:
    """A world after many commands of all sorts, always the same ones."""
    choice = random.Random(7)
    world = World(MemoryState())
    world.pool("p", "10.0.0.0/26", "2001:db8::/122", strategy=Strategy.RANDOM, cooldown_s=9, cooldown_min_s=2)
    world.pool("q", "10.0.0.0/27", allow_overlap=True, strategy=Strategy.ROUND_ROBIN, hold_s=5)
    world.pool("r", (range_of("10.1.0.0/29"), range_of("10.1.0.8/29")), hold_s=FOREVER)
    for step in range(steps):
        world.log_ms += choice.randrange(800)
        pod, node = f"t/a{choice.randrange(12)}", f"n{choice.randrange(3)}"
        pools = choice.choice(("p", "q", "r", "q p", "r q p"))
        match choice.randrange(8):
            case 0 | 1 | 2 | 3:
                world.add(pod, f"c{step}", pools=pools, node=node, uid=f"u{step // 50}", boot=f"b{step // 30}")
            case 4:
                world.reserve(pod, pools=pools, ttl_s=choice.choice((None, 3)))
            case 5:
                world.delete(f"c{step - 1}", node=node, boot=f"b{step // 30}")
            case 6:
                there = tuple(Binding(one.id, one.generation) for one in world.state.all(Attachment))
                world.reclaim(cause=ReclaimCause.NODE_RELEASE, node=node, bindings=there)
            case _:
                world.quarantine(f"10.0.0.{choice.randrange(64)}", for_s=choice.choice((1, 4)))
    world.replace("q", "10.0.0.0/28", allow_overlap=True, force=True)
    world.run(RenameNode(ORIGIN, "n1", "n9"))
    world.drop_pool("r", force=True)
    return world


def digest(state: MemoryState) -> str:
    """A digest of all records in the order of their keys, and of the counters."""
    lines = [repr(state.all(kind)) for kind in KEYS]
    return hashlib.sha256("\n".join([*lines, repr((state.last_id, state.last_event))]).encode()).hexdigest()


def test_the_order_of_hashes_changes_nothing() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "4242")
    }
    assert digests == {digest(played(300).state) + "\n"}


def test_the_story_is_worth_its_telling() -> None:
    """It leaves records of most kinds, or the digests would agree about nothing."""
    state = played(300).state
    assert sum(bool(state.all(kind)) for kind in KEYS) >= 9
    assert state.last_event > 200
