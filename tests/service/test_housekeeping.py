"""What is due is ended by the leader, and by nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ipamd.core.commands import Expire, decode_command
from ipamd.core.ports import Unavailable
from ipamd.service import housekeeping
from ipamd.service.housekeeping import Housekeeping
from ipamd.service.proposer import Proposer
from tests.support.scripted import ScriptedLog, TurnedClock, counting_bytes


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(housekeeping, "_EVERY_S", 0.005)
    return iter(())


async def proposals_within_s(log: ScriptedLog, limit_s: float = 0.2, enough: int = 1) -> int:
    clock = TurnedClock()
    keeper = Housekeeping(log, Proposer(log, clock, counting_bytes()), clock)
    keeper.start()
    for _ in range(int(limit_s / 0.002)):
        await asyncio.sleep(0.002)
        if len(log.items) >= enough:
            break
    await keeper.stop()
    return len(log.items)


async def test_the_leader_ends_what_is_due() -> None:
    log = ScriptedLog()
    log.now = log.now._replace(log_ms=500, next_due_log_ms=500)
    assert await proposals_within_s(log, 2) >= 1
    command = decode_command(log.items[0].command)
    assert isinstance(command, Expire)
    assert command.origin.by == "system"


@pytest.mark.parametrize(
    "change", [{"next_due_log_ms": 501}, {"next_due_log_ms": None}, {"next_due_log_ms": 400, "is_leader": False}]
)
async def test_nothing_is_proposed_early_or_by_others(change: dict[str, object]) -> None:
    log = ScriptedLog()
    log.now = log.now._replace(log_ms=500, **change)  # type: ignore[arg-type]
    assert await proposals_within_s(log) == 0


async def test_it_goes_on_when_the_log_does_not_answer() -> None:
    log = ScriptedLog(Unavailable("no leader", "none"), Unavailable("no leader", "unknown"))
    log.now = log.now._replace(log_ms=500, next_due_log_ms=1)
    assert await proposals_within_s(log, 2, enough=3) >= 3
