"""One member from outside: proposals, barriers, deadlines, stopping, and what a restart remembers."""

from __future__ import annotations

import asyncio
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from ipamd.consensus.limits import Limits
from ipamd.core.entries import MAX_ENTRY_BYTES
from ipamd.core.outcomes import Code, Refused
from ipamd.core.ports import Unavailable
from ipamd.system import SystemClock
from tests.consensus.journals import ManualClock
from tests.consensus.listmachine import ListMachine
from tests.consensus.members import Member, item, place, running


class SlowMachine(ListMachine):
    """Applies nothing with commands in it until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self._held = threading.Event()

    def apply(self, entries):
        self._held.set()
        assert self.gate.wait(30)
        self._held.clear()
        return super().apply(entries)

    async def holds(self) -> None:
        """Return once the Raft thread stands at the closed gate."""
        assert await asyncio.to_thread(self._held.wait, 30)


async def test_a_sole_member_leads_at_once(tmp_path: Path) -> None:
    patient = Limits(election_min_s=60, election_max_s=61, leader_fallback_s=61, connection_s=62)
    async with running(tmp_path, limits=patient) as member:
        status = member.node.status()
        assert (status.leader, status.is_leader, status.term) == ("n1", True, 1)
        assert status.applied == status.committed == 2
        assert member.node.ready
        assert member.node.trouble is None
    assert member.machine.closed
    assert member.fatal == []


async def test_commands_are_answered_with_their_own_outcomes_in_order(tmp_path: Path) -> None:
    async with running(tmp_path) as member:
        answers = await asyncio.gather(*[member.node.propose(item(b"%d" % number), 30) for number in range(500)])
        assert [member.machine.commands[place(answer) - 1] for answer in answers] == [b"%d" % n for n in range(500)]
        assert [member.machine.indexes[place(answer) - 1] for answer in answers] == [one.index for one in answers]
        assert len({one.index for one in answers}) < 100


async def test_what_comes_in_during_a_sync_shares_the_next_one(tmp_path: Path) -> None:
    async with running(tmp_path) as member:
        before = member.node.figures.syncs
        await asyncio.gather(*[member.node.propose(item(), 30) for _ in range(2000)])
        figures = member.node.figures
        assert figures.syncs - before < 100
        assert figures.items == 2000
        assert figures.sync_s > 0
        assert member.node.in_flight == 0


async def test_the_same_op_at_once_and_later_has_one_outcome(tmp_path: Path) -> None:
    async with running(tmp_path) as member:
        same = item(b"once")
        answers = await asyncio.gather(*[member.node.propose(same, 30) for _ in range(20)])
        answers.append(await member.node.propose(same, 30))
        assert {place(answer) for answer in answers} == {1}
        assert member.machine.commands == [b"once"]
    async with running(tmp_path) as member:
        assert place(await member.node.propose(same, 30)) == 1
        assert member.machine.commands == [b"once"]


async def test_one_op_for_two_requests_is_told_apart_in_the_same_entry(tmp_path: Path) -> None:
    async with running(tmp_path) as member:
        first, second = item(b"a", b"k" * 16, b"fingerprint 1"), item(b"b", b"k" * 16, b"fingerprint 2")
        one, two = await asyncio.gather(member.node.propose(first, 30), member.node.propose(second, 30))
        assert place(one) == 1
        assert isinstance(two.outcome, Refused)
        assert two.outcome.code is Code.IDEMPOTENCY_CONFLICT


async def test_a_restart_remembers_everything_and_applies_nothing_twice(tmp_path: Path) -> None:
    async with running(tmp_path) as member:
        await asyncio.gather(*[member.node.propose(item(b"%d" % number), 30) for number in range(100)])
        machine, term = member.machine, member.node.status().term
    machine.closed = False
    async with running(tmp_path, machine=machine) as member:
        assert len(machine.commands) == 100
        assert member.node.status().term == term + 1
    fresh = ListMachine()
    async with running(tmp_path, machine=fresh) as member:
        assert fresh.commands == machine.commands


async def test_a_barrier_waits_for_all_that_was_proposed_before(tmp_path: Path) -> None:
    machine = SlowMachine()
    async with running(tmp_path, machine=machine) as member:
        machine.gate.clear()
        proposal = asyncio.create_task(member.node.propose(item(), 30))
        await machine.holds()
        barriers = [asyncio.create_task(member.node.barrier(30)) for _ in range(50)]
        await asyncio.sleep(0.03)
        assert not any(barrier.done() for barrier in barriers)
        machine.gate.set()
        indexes = set(await asyncio.gather(*barriers))
        assert min(indexes) > (await proposal).index
        assert len(indexes) == 1


async def test_a_barrier_alone_makes_an_entry_without_commands(tmp_path: Path) -> None:
    async with running(tmp_path) as member:
        before = member.node.status().applied
        assert await member.node.barrier(30) == before + 1
        assert member.machine.applied[0] == before + 1
        assert member.machine.commands == []


async def test_a_deadline_says_whether_it_may_still_take_effect(tmp_path: Path) -> None:
    machine = SlowMachine()
    async with running(tmp_path, machine=machine) as member:
        machine.gate.clear()
        taken = asyncio.create_task(member.node.propose(item(b"taken"), 2))
        await machine.holds()
        waiting = asyncio.create_task(member.node.propose(item(b"waiting"), 0.1))
        reader = asyncio.create_task(member.node.barrier(0.1))
        ends = await asyncio.gather(taken, waiting, reader, return_exceptions=True)
        assert [end.outcome for end in ends if isinstance(end, Unavailable)] == ["unknown", "none", "none"]
        machine.gate.set()
        await member.node.barrier(30)
        assert machine.commands == [b"taken"]
        assert member.node.in_flight == 0


async def test_a_caller_that_goes_away_before_its_command_was_taken_changes_nothing(tmp_path: Path) -> None:
    machine = SlowMachine()
    async with running(tmp_path, machine=machine) as member:
        machine.gate.clear()
        first = asyncio.create_task(member.node.propose(item(b"first"), 30))
        await machine.holds()
        second = asyncio.create_task(member.node.propose(item(b"second"), 30))
        await asyncio.sleep(0.01)
        second.cancel()
        first.cancel()
        await asyncio.gather(first, second, return_exceptions=True)  # gone before the thread can take anything
        machine.gate.set()
        await member.node.barrier(30)
        assert machine.commands == [b"first"]
        assert member.node.in_flight == 0


async def test_too_many_at_once_are_told_to_come_again(tmp_path: Path) -> None:
    machine = SlowMachine()
    async with running(tmp_path, machine=machine, limits=Limits(in_flight=10)) as member:
        machine.gate.clear()
        tasks = [asyncio.create_task(member.node.propose(item(), 30)) for _ in range(15)]
        done, pending = await asyncio.wait(tasks, timeout=0.1)
        assert len(done) == 5
        for task in done:
            with pytest.raises(Unavailable, match="10 requests are under way already") as caught:
                await task
            assert caught.value.outcome == "none"
        machine.gate.set()
        assert len(await asyncio.gather(*pending)) == 10


async def test_what_no_entry_can_carry_is_a_fault_of_the_caller(tmp_path: Path) -> None:
    async with running(tmp_path) as member:
        with pytest.raises(ValueError, match="does not fit"):
            await member.node.propose(item(bytes(MAX_ENTRY_BYTES)), 30)
        with pytest.raises(ValueError, match="16 bytes"):
            await member.node.propose(item(op=b"short"), 30)
        large = [item(bytes(300_000)) for _ in range(3)]
        assert len({(await member.node.propose(one, 30)).index for one in large}) == 3


async def test_a_stop_under_load_answers_everybody(tmp_path: Path) -> None:
    acknowledged: list[bytes] = []

    async def client(member: Member, number: int) -> str:
        for turn in range(100_000):
            command = b"%d-%d" % (number, turn)
            try:
                await member.node.propose(item(command), 30)
            except Unavailable as error:
                return error.outcome
            acknowledged.append(command)
        return "never stopped"

    async with running(tmp_path) as member:
        clients = [asyncio.create_task(client(member, number)) for number in range(32)]
        await asyncio.sleep(0.2)
        await member.node.stop()
        assert set(await asyncio.gather(*clients)) == {"none"}
        assert member.machine.commands == acknowledged
    async with running(tmp_path) as member:
        assert member.machine.commands == acknowledged


async def test_nothing_is_taken_before_the_start_and_after_the_stop(tmp_path: Path) -> None:
    member = Member(tmp_path)
    with pytest.raises(Unavailable) as before:
        await member.node.propose(item(), 1)
    await member.node.start()
    await member.node.wait_ready(30)
    await member.node.stop()
    with pytest.raises(Unavailable, match="is stopping") as after:
        await member.node.barrier(1)
    assert (before.value.outcome, after.value.outcome) == ("none", "none")
    await member.node.stop()


async def test_a_member_that_never_started_closes_all_the_same(tmp_path: Path) -> None:
    member = Member(tmp_path)
    await member.node.stop()
    assert member.machine.closed


async def test_the_log_clock_never_falls_whatever_the_wall_does(tmp_path: Path) -> None:
    wall = SystemClock().wall_ms()
    stamps = []
    for start_s, day in ((1000.0, 0), (5.0, -1), (77.0, +1)):
        clock = ManualClock(start_s, wall + day * 86_400_000)
        machine = ListMachine()
        async with running(tmp_path, clock=clock, machine=machine) as member:
            for _ in range(5):
                await member.node.propose(item(), 30)
                clock.now_s += 1.5
                clock.now_wall_ms -= 1000
            assert member.node.status().log_ms == machine.log_ms + 1500
        stamps = machine.stamps
    log = [stamp.log_ms for stamp in stamps]
    assert log == sorted(log)
    steps = [later - earlier for earlier, later in pairwise(log)]
    assert steps == [1500, 1500, 1500, 1500, 0] * 2 + [1500] * 4
    walls = [stamp.wall_ms for stamp in stamps]
    assert walls == sorted(walls)
    assert walls[9] == walls[0] == wall
    assert walls[10] == wall + 86_400_000


async def test_nothing_goes_round_once_it_has_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes in while the last things end wakes the thread once more; the machine is closed by then."""

    class Woken(ListMachine):
        def close(self) -> None:
            super().close()
            member.node._wake()

    machine, closed_at_step = Woken(), list[bool]()
    async with running(tmp_path, machine=machine) as member:
        step = member.node._replica.step

        def watched() -> bool:
            closed_at_step.append(machine.closed)
            return step()

        monkeypatch.setattr(member.node._replica, "step", watched)
        await member.node.propose(item(), 30)
    assert closed_at_step.count(False) > 0
    assert closed_at_step.count(True) == 0
    assert member.fatal == []
