"""A member whose disk fails or fills, whose machine fails or fills: it stops with one sentence, or waits and goes on."""

from __future__ import annotations

import asyncio
import errno
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ipamd.consensus.failures import StartRefused
from ipamd.consensus.limits import Limits
from ipamd.core.ports import Unavailable
from tests.consensus.journals import content, open_journal
from tests.consensus.listmachine import Full, ListMachine
from tests.consensus.members import PATIENCE_S, Member, item, place, running
from tests.consensus.net import Net, answers
from tests.consensus.simdisk import SimDisk

ROOT = Path("/")
QUICK = Limits(retry_s=0.02, segment_bytes=4096, room_bytes=10_000)


async def refused(member: Member) -> Unavailable:
    with pytest.raises(Unavailable) as caught:
        await member.node.propose(item(b"refused"), 30)
    return caught.value


async def test_poison_stops_the_member_once_and_for_all() -> None:
    async with running(ROOT, files=SimDisk()) as member:
        await member.node.propose(item(b"good"), 30)
        calls = member.machine.calls
        with pytest.raises(Unavailable) as caught:
            await member.node.propose(item(b"poison"), 30)
        assert caught.value.outcome == "unknown"
        assert await member.until_fatal() == "the log cannot go on: ValueError: poison"
        await asyncio.sleep(0.1)
        assert member.machine.calls == calls + 1
        assert len(member.fatal) == 1
        assert (await refused(member)).outcome == "none"
        assert not member.node.ready
    assert not member.machine.closed


async def until_refused(member: Member, acknowledged: list[bytes]) -> Unavailable:
    while True:
        try:
            await member.node.propose(item(b"x" * 300), 30)
        except Unavailable as error:
            return error
        acknowledged.append(b"x" * 300)


def fill_up(disk: SimDisk) -> None:
    """No room at all, on a disk of some size."""
    disk.create(ROOT / "ballast").pwrite(bytes(500_000), 0)
    disk.capacity = sum(len(inode.page) for inode in disk.seen.values())


@pytest.mark.parametrize("call", ["pwrite", "datasync"])
async def test_a_failing_disk_stops_the_member(call: str) -> None:
    disk = SimDisk()
    async with running(ROOT, files=disk) as member:
        disk.fault = lambda name, _: OSError(errno.EIO, "Input/output error") if name == call else None
        with pytest.raises(Unavailable) as caught:
            await member.node.propose(item(b"lost"), 30)
        assert caught.value.outcome == "unknown"
        assert "Input/output error" in await member.until_fatal()
        syncs = [name for name, _ in disk.log].count(call)
        await asyncio.sleep(0.1)
        assert [name for name, _ in disk.log].count(call) == syncs
        assert b"lost" not in member.machine.commands


async def test_a_full_disk_refuses_with_nothing_changed_until_there_is_room() -> None:
    disk = SimDisk()
    async with running(ROOT, files=disk, limits=QUICK) as member:
        acknowledged = [b"first"]
        await member.node.propose(item(b"first"), 30)
        fill_up(disk)
        refusal = await until_refused(member, acknowledged)
        assert refusal.outcome == "none"
        assert member.node.trouble is not None
        assert "no room for the journal" in member.node.trouble
        assert not member.node.status().is_leader
        assert (await refused(member)).outcome == "none"
        await asyncio.sleep(0.1)
        assert not member.node.ready
        disk.capacity = 10**9
        await member.node.wait_ready(PATIENCE_S)
        acknowledged.append(b"again")
        await member.node.propose(item(b"again"), 30)
        assert member.machine.commands == acknowledged
        assert member.node.figures.full >= 1
        assert member.fatal == []
    async with running(ROOT, files=disk.killed()) as member:
        assert member.machine.commands == acknowledged


async def test_a_little_room_is_not_enough() -> None:
    disk = SimDisk()
    async with running(ROOT, files=disk, limits=QUICK) as member:
        fill_up(disk)
        with pytest.raises(Unavailable):
            await member.node.propose(item(bytes(5000)), 30)
        assert disk.capacity is not None
        disk.capacity += 200
        await asyncio.sleep(0.1)
        assert not member.node.ready


async def test_a_disk_that_is_full_at_the_start_is_refused() -> None:
    disk = SimDisk()
    disk.capacity = 100
    with pytest.raises(StartRefused, match="make room first"):
        Member(ROOT, files=disk)


async def test_a_machine_without_room_is_tried_again_and_answers_then() -> None:
    limits = replace(QUICK, retry_s=5 * QUICK.tick_s)
    async with running(ROOT, files=SimDisk(), limits=limits) as member:
        member.machine.full = True
        before, began_s = member.machine.calls, time.monotonic()
        waiting = asyncio.create_task(member.node.propose(item(b"late"), PATIENCE_S))
        async with asyncio.timeout(PATIENCE_S):
            while member.machine.calls < before + 3:  # noqa: ASYNC110 - the Raft thread tries
                await asyncio.sleep(0.005)
        assert not waiting.done()
        assert member.node.trouble == "the list has no room"
        assert (await refused(member)).outcome == "none"
        tries, most = member.machine.calls - before, (time.monotonic() - began_s) / limits.retry_s
        member.machine.full = False
        assert place(await waiting) == 1
        await member.node.wait_ready(PATIENCE_S)
        assert tries <= most + 1, "it does not pause between two"
        assert member.fatal == []


async def test_state_and_journal_must_belong_together() -> None:
    disk = SimDisk()
    async with running(ROOT, files=disk) as member:
        for _ in range(3):
            await member.node.propose(item(), 30)
    for applied, sentence in (
        ((99, 1), r"up to index 99, but the journal holds 1 to \d+; if other members have"),
        ((4, 7), "index 4 is of term 7 in the state and of term 1 in the journal"),
        ((0, 0), "up to index 0"),
    ):
        machine = ListMachine()
        machine.applied = applied
        with pytest.raises(StartRefused, match=sentence):
            Member(ROOT, files=disk, machine=machine)


async def test_an_entry_of_a_foreign_kind_stops_the_member() -> None:
    disk = SimDisk()
    async with running(ROOT, files=disk) as member:
        await member.node.propose(item(), 30)
    journal = open_journal(disk, ROOT / "journal")
    journal.add(b"\x03membership", journal.last + 1, journal.last_term)
    journal.sync()
    member = Member(ROOT, files=disk, machine=member.machine)
    await member.node.start()
    assert "of a kind that this program does not know" in await member.until_fatal()
    await member.node.stop()


async def test_the_journal_is_trimmed_to_what_the_machine_surely_has() -> None:
    disk, machine = SimDisk(), ListMachine()
    limits = Limits(segment_bytes=4096, keep_entries=20)
    async with running(ROOT, files=disk, limits=limits, machine=machine) as member:
        for _ in range(100):
            await member.node.propose(item(bytes(200)), 30)
        assert open_journal(disk, ROOT / "journal").first == 1
        machine.durable = machine.applied[0]
    machine.closed = False
    async with running(ROOT, files=disk, limits=limits, machine=machine) as member:
        for _ in range(100):
            await member.node.propose(item(bytes(200)), 30)
    journal = open_journal(disk, ROOT / "journal")
    assert 60 < journal.first < machine.durable
    assert len(content(journal)) >= 20
    with pytest.raises(StartRefused, match="up to index 1, but the journal holds"):
        Member(ROOT, files=disk)


async def test_a_leader_whose_machine_has_no_room_makes_way() -> None:
    """Else everybody would wait for room at one member. It follows, and may lead again once there is room."""
    net = Net(retryable=(Full,))
    net.cluster("abc")
    net.lead("a")
    net.machine("a").full = True
    (waiter,) = await net.propose("a", b"committed")
    net.run(0.2)
    assert net["a"].trouble == "the list has no room"
    net.run(3)
    (leader,) = net.leaders()
    assert leader != "a"
    await net.propose(leader, b"others")
    net.run(0.5)
    assert net.machine(leader).commands == [b"committed", b"others"]
    assert net.machine("a").commands == []
    assert not net["a"].level
    net.machine("a").full = False
    net.run(1)
    assert net["a"].level
    assert net.machine("a").commands == [b"committed", b"others"]
    (end,) = await answers([waiter])
    assert end is not None


async def test_who_made_way_for_want_of_room_stands_again_once_there_is() -> None:
    net = Net(retryable=(Full,))
    net.cluster("abc")
    net.lead("a")
    net.machine("a").full = True
    await net.propose("a", b"committed")
    net.run(0.2)
    net.stop("b")
    net.stop("c")
    net.machine("a").full = False
    net.run(1)
    assert net.machine("a").commands == [b"committed"]
    net.restart("b")._engine._raft.refrain()
    net.run(5)
    assert net.leaders() == ["a"]
