"""The power of the whole rack goes under load: what was answered is there afterwards, on all of them.

ROUNDS=1 is 20 cuts with more than 20,000 acknowledged ADDs; POWER_SEED repeats the choices of a run (not its timing).
Each member has a file system of its own. When the power goes, nothing that was not synced is on it.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.checker import Rules, check
from tests.kill.load import AT_ONCE, Load, Pod
from tests.support.cluster import Cluster, MemberServer, owned_twice, rounds
from tests.support.disks import Disk
from tests.support.history import Call, History, Read, Shown, Verb

pytestmark = pytest.mark.needs_disks

ROUNDS = rounds(20, 2)
SEED = int(os.environ.get("POWER_SEED", str(time.time_ns() % 10**9)))
ADDS_A_ROUND = 1_010
LONGEST_ROUND_S = 300.0
CLIENTS_A_MEMBER, PODS_A_CLIENT = 12, 40
SUBNET = "10.8.0.0/20"
DISK_MIB = 256
MEMBERS = ("n1", "n2", "n3")


class Rack:
    """Three members on three disks, their load and its history."""

    def __init__(self, cluster: Cluster, disks: dict[str, Disk]) -> None:
        self.cluster, self.disks = cluster, disks
        self.rng, self.history = random.Random(SEED), History()
        self.groups = {
            name: [[Pod(f"{name}/p{c}-{i}") for i in range(PODS_A_CLIENT)] for c in range(CLIENTS_A_MEMBER)]
            for name in MEMBERS
        }

    @property
    def adds(self) -> int:
        """Acknowledged ADDs so far."""
        return sum(call.done and call.verb is Verb.ADD and call.address is not None for call in self.history.calls)

    async def one_round(self) -> None:
        """Load on all until enough is acknowledged, then the power goes."""
        loads = [
            Load(f"unix:{member.socket}", "power", self.history, self.rng, self.groups[member.name])
            for member in self.cluster
        ]
        running = [asyncio.create_task(load.run()) for load in loads]
        await self._wait_for_adds(self.adds + ADDS_A_ROUND)
        await asyncio.sleep(self.rng.uniform(0, 0.3))
        self.cut_power()
        await asyncio.gather(*running)

    async def _wait_for_adds(self, wanted: int) -> None:
        deadline_s = time.monotonic() + LONGEST_ROUND_S
        while self.adds < wanted:
            assert time.monotonic() < deadline_s, f"seed {SEED}: {self.adds} of {wanted} ADDs in time"
            await asyncio.sleep(0.05)

    def cut_power(self) -> None:
        """All disks are dead, then all processes; a file that nobody synced shows that the cut took effect."""
        for member in self.rng.sample([*self.cluster], 3):
            (self.disks[member.name].place / "unsynced").write_bytes(b"never synced")
            self.disks[member.name].cut_power()
        for member in self.cluster:
            member.kill()

    def power_on(self) -> None:
        """The disks as the cut left them; the doctor looks before anybody else does."""
        for member in self.cluster:
            disk = self.disks[member.name]
            disk.unmount()
            disk.mount()
            self._is_lost(disk)
            examine(member)
        self.cluster.revive()

    def _is_lost(self, disk: Disk) -> None:
        """What nobody synced is gone; but somebody else's sync may have kept its name."""
        unsynced = disk.place / "unsynced"
        if unsynced.exists():
            assert unsynced.read_bytes() == b"", "the power cut had no effect"
            unsynced.unlink()

    def look(self) -> None:
        """What all have now, as calls of the history: it is the same everywhere, and none has two owners."""
        called_s = time.monotonic()
        listed = self.cluster.any().listed("power", stale=False)
        returned_s = time.monotonic()
        assert owned_twice(listed) == [], f"seed {SEED}"
        held = {pod: Shown(container, address.partition("/")[0]) for address, pod, _, container in listed}
        self.history.reads.append(Read(called_s, returned_s, held))
        for pod in (pod for groups in self.groups.values() for group in groups for pod in group):
            shown = held.get(pod.name, Shown(None, ""))
            self.history.note(
                Call(pod.name, Verb.SEEN, shown.container, called_s, returned_s, True, shown.address or None)
            )
            pod.learn(shown.container)
        assert self.cluster.level("power") == listed, f"seed {SEED}"

    def laws(self) -> None:
        """The whole history so far obeys the laws."""
        final = {
            member.name: {
                pod: Shown(container, address.partition("/")[0])
                for address, pod, _, container in member.listed("power")
            }
            for member in self.cluster
        }
        assert check(self.history, Rules(SUBNET), final) == [], f"seed {SEED}"


def examine(member: MemberServer) -> None:
    """`ipamd doctor` finds nothing in what the cut left."""
    command = [sys.executable, "-m", "ipamd.main", "doctor", "--data-dir", str(member.data_dir)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, f"seed {SEED}, {member.name}\n{ended.stdout}{ended.stderr}"


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    """Three members on disks of their own."""
    with ExitStack() as stack:
        disks = {name: stack.enter_context(Disk(tmp_path / name / "data", DISK_MIB)) for name in MEMBERS}
        cluster = stack.enter_context(Cluster(tmp_path, 3, "--digest-every-s", "2", *AT_ONCE))
        cluster.pool("power", SUBNET)
        yield Rack(cluster, disks)


@pytest.mark.timeout(300 + 400 * ROUNDS)
async def test_power_cuts_lose_nothing_that_was_answered(rack: Rack) -> None:
    print(f"seed {SEED}, {ROUNDS} rounds")  # noqa: T201 - pytest shows it with a failure
    for _ in range(ROUNDS):
        await rack.one_round()
        rack.power_on()
        rack.look()
    rack.laws()
    rack.cluster.wait_for_equal_digests()
    unknown = sum(not call.done for call in rack.history.calls)
    print(f"{rack.adds} ADDs acknowledged, {rack.history.acknowledged} calls in all, {unknown} unknown")  # noqa: T201 - likewise
    assert rack.adds >= 1_000 * ROUNDS
    assert unknown > 0, "no cut met a call under way"
