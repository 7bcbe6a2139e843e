"""kill -9 at random moments under load: nothing that was answered is lost, and no address is given twice.

ROUNDS=1 is 200 rounds; KILL_SEED repeats the choices of a run (not its timing).
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.checker import Rules, check, doubles
from tests.kill.load import AT_ONCE, Load, Pod
from tests.support.history import Call, History, Read, Shown, Verb
from tests.support.server import Server
from tests.support.wire import Wire, json_body

ROUNDS = max(2, round(200 * float(os.environ.get("ROUNDS", "0.1"))))
SEED = int(os.environ.get("KILL_SEED", str(time.time_ns() % 10**9)))
CLIENTS, PODS_A_CLIENT = 16, 12
MINIMUM = 100
LOADED_S = 120.0
EXAMINE_EVERY = 10
SUBNET, GATEWAY = "10.7.0.0/24", "10.7.0.1"
POOL = {"name": "kill", "subnet": SUBNET, "gateway": GATEWAY}


class Trial:
    """A server, its load and their history, over all rounds."""

    def __init__(self, folder: Path) -> None:
        self.server = Server(folder, *AT_ONCE)
        self.target = f"unix:{self.server.socket}"
        self.rng = random.Random(SEED)
        self.history = History()
        self.groups = [[Pod(f"kill/p{c}-{i}") for i in range(PODS_A_CLIENT)] for c in range(CLIENTS)]

    async def found(self) -> None:
        """First start, with the pool."""
        self.server.start()
        body, headers = json_body(POOL)
        wire = await Wire.connect(self.target)
        reply = await wire.ask("POST", "/v1/pools", body, headers)
        wire.close()
        assert reply.status == 201, reply

    async def one_round(self) -> None:
        """Load, and kill -9 at a random moment once enough was acknowledged for the round to say something."""
        enough = self.history.acknowledged + MINIMUM
        load = Load(self.target, "kill", self.history, self.rng, self.groups)
        running = asyncio.create_task(load.run())
        async with asyncio.timeout(LOADED_S):
            while self.history.acknowledged < enough and not running.done():  # noqa: ASYNC110 - its clients count
                await asyncio.sleep(0.01)
        await asyncio.sleep(self.rng.uniform(0, 0.65))
        self.server.kill()
        await running

    async def look(self) -> None:
        """What the restarted server shows, as calls of the history; no address twice in it."""
        shown = {item["pod_ref"]: item["attachments"] for item in await self._reservations()}
        assert all(len(attachments) == 1 for attachments in shown.values()), shown
        held = {ref: first_address(attachments[0]) for ref, attachments in shown.items()}
        now_s = time.monotonic()
        looked = Read(now_s, now_s, {ref: Shown(None, address) for ref, address in held.items()})
        assert list(doubles(looked)) == [], f"seed {SEED}"
        for pod in (pod for group in self.groups for pod in group):
            container = shown[pod.name][0]["container_id"] if pod.name in shown else None
            self.history.note(Call(pod.name, Verb.SEEN, container, now_s, now_s, True, held.get(pod.name)))
            pod.learn(container)

    async def _reservations(self) -> list[dict[str, Any]]:
        wire, items, cursor = await Wire.connect(self.target), [], ""
        while cursor is not None:
            reply = await wire.ask("GET", f"/v1/reservations?limit=100{cursor and f'&cursor={cursor}'}")
            page = reply.json()
            items += page["items"]
            cursor = page["next"]
        wire.close()
        return items

    def laws(self) -> None:
        """The whole history so far obeys the laws."""
        assert check(self.history, Rules(SUBNET, frozenset({GATEWAY}))) == [], f"seed {SEED}"

    def examine(self) -> None:
        """`ipamd doctor` finds nothing in what the kill left."""
        command = [sys.executable, "-m", "ipamd.main", "doctor", "--data-dir", str(self.server.data_dir)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert ended.returncode == 0, f"seed {SEED}\n{ended.stdout}{ended.stderr}"


def first_address(attachment: dict[str, Any]) -> str:
    (text,) = attachment["addresses"]
    return str(text).partition("/")[0]


async def play(trial: Trial) -> None:
    """All rounds."""
    await trial.found()
    for number in range(1, ROUNDS + 1):
        await trial.one_round()
        is_examined = number == ROUNDS or number % EXAMINE_EVERY == 0
        if is_examined:
            trial.examine()
        trial.server.start()
        await trial.look()
        if is_examined:
            trial.laws()


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    """The server is gone at the end, even if the test is cut off by its time-out."""
    trial = Trial(tmp_path)
    yield trial
    if trial.server.process is not None and trial.server.process.poll() is None:
        trial.server.kill()


@pytest.mark.timeout(300 + 150 * ROUNDS)
async def test_kill_at_any_moment_loses_nothing_that_was_answered(trial: Trial) -> None:
    print(f"seed {SEED}, {ROUNDS} rounds")  # noqa: T201 - pytest shows it with a failure
    await play(trial)
    unknown = sum(not call.done for call in trial.history.calls)
    print(f"{trial.history.acknowledged} acknowledged, {unknown} unknown")  # noqa: T201 - likewise
    assert trial.history.acknowledged >= MINIMUM * ROUNDS
    assert unknown > 0, "no kill met a call under way: the moments were not random enough"
