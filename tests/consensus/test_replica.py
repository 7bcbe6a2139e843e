"""A whole member without its thread, stopped at each step of its disk: what it acknowledged is there afterwards."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from ipamd.consensus.failures import JournalFailed
from ipamd.consensus.intake import Waiter
from ipamd.consensus.limits import Limits
from ipamd.consensus.replica import Replica
from ipamd.core.ports import Answer, Applied, LogEntry
from tests.consensus.journals import ManualClock, open_journal
from tests.consensus.listmachine import ListMachine
from tests.consensus.members import item
from tests.consensus.simdisk import Crash, SimDisk

LIMITS = Limits(segment_bytes=700, keep_entries=4, apply_entries=3)
WAVES = 8


def replica_on(disk: SimDisk, machine: ListMachine) -> Replica:
    return Replica(
        name="n1",
        directory=Path("/journal"),
        machine=machine,
        files=disk,
        clock=ManualClock(),
        chance=random.Random(0),
        limits=LIMITS,
    )


def settle(replica: Replica) -> None:
    for _ in range(50):
        if not replica.step() and replica.trouble is None:
            return
    raise AssertionError(replica.trouble)


async def lived(disk: SimDisk, acknowledged: list[bytes]) -> None:
    """Start, and take in some waves of commands; the commands that were acknowledged before the disk stopped."""
    loop = asyncio.get_running_loop()
    waiters: list[Waiter] = []
    try:
        replica = replica_on(disk, ListMachine())
        settle(replica)
        for wave in range(WAVES):
            for number in range(wave % 3 + 1):
                waiters.append(Waiter(item(b"%d-%d" % (wave, number)), loop, loop.create_future()))
                replica.intake.put(waiters[-1])
            settle(replica)
    finally:
        await asyncio.sleep(0)
        answered = [one for one in waiters if one.future.done() and isinstance(one.future.result(), Answer)]
        acknowledged += [one.item.command for one in answered if one.item is not None]


async def test_what_was_acknowledged_survives_a_power_loss_at_every_step() -> None:
    whole, everything = SimDisk(), list[bytes]()
    await lived(whole, everything)
    assert len(everything) == 15
    assert whole.steps > 30
    for stop_at in range(1, whole.steps + 1):
        disk, acknowledged = SimDisk(stop_at=stop_at), list[bytes]()
        with pytest.raises(Crash):
            await lived(disk, acknowledged)
        for after in (disk.killed(), *(disk.unplugged(random.Random(seed)) for seed in range(3))):
            machine = ListMachine()
            settle(replica_on(after, machine))
            assert machine.commands[: len(acknowledged)] == acknowledged
            assert machine.commands == everything[: len(machine.commands)]


async def test_a_member_begins_a_term_with_each_start() -> None:
    disk, terms = SimDisk(), []
    for _ in range(3):
        replica = replica_on(disk, ListMachine())
        settle(replica)
        terms.append(replica.status.term)
        disk = disk.unplugged(random.Random(0))
    assert terms == [1, 2, 3]


async def test_nothing_is_applied_that_a_power_loss_could_still_take() -> None:
    disk = SimDisk()

    class Watching(ListMachine):
        def apply(self, entries: Sequence[LogEntry]) -> list[Applied]:
            for seed in range(5):
                journal = open_journal(disk.unplugged(random.Random(seed)))
                assert journal.last >= entries[-1].index
            return super().apply(entries)

    machine = Watching()
    settle(replica_on(disk, machine))
    settle(replica_on(disk, Watching()))
    assert machine.calls > 0


async def test_a_machine_that_is_elsewhere_stops_the_member() -> None:
    machine = ListMachine()
    replica = replica_on(SimDisk(), machine)
    settle(replica)
    loop = asyncio.get_running_loop()
    replica.intake.put(Waiter(None, loop, loop.create_future()))
    machine.applied = (1, 0)
    with pytest.raises(JournalFailed, match="entry 3 is due, but the state is at 1"):
        settle(replica)
