"""After a restore an ADD waits a moment for this host's own report, and only then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from ipamd.core.commands import Found, Report
from ipamd.core.model import Settings
from ipamd.service import firstreport
from ipamd.service.firstreport import FirstReport
from ipamd.service.ports import Facts
from ipamd.service.reader import Reader
from ipamd.service.request import Request
from ipamd.storage.restore import renew
from tests.core.restored import MEMBERS
from tests.core.world import ORIGIN
from tests.storage.driver import WALL_MS, Driver
from tests.support.scripted import ScriptedLog


class Clock:
    """Time passes while somebody pauses, and only then."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.after: Callable[[int], object] = int
        """Called after each pause, with how many there were."""

        self._pauses = 0

    def monotonic_s(self) -> float:
        return self.now_s

    def wall_ms(self) -> int:
        return WALL_MS

    async def sleep(self, delay_s: float) -> None:
        self.now_s += delay_s
        self._pauses += 1
        self.after(self._pauses)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(firstreport, "asyncio", SimpleNamespace(sleep=made.sleep))
    return made


def driven(directory: Path, *, restored: bool) -> Driver:
    """A state in which node n1 has reported, perhaps restored since."""
    driver = Driver(directory)
    driver.run(Found(ORIGIN, "old", Settings(), MEMBERS), Report(ORIGIN, "n1", "b1", 1))
    if restored:
        driver.close()
        renew(directory, "new", WALL_MS)
        driver.open()
        driver.log_ms += 1
    return driver


async def waited_s(clock: Clock, made: FirstReport, patience_s: float = 60.0) -> float:
    began_s = clock.now_s
    await made.wait(Request("test", "r", began_s + patience_s))
    return clock.now_s - began_s


def made_for(driver: Driver, clock: Clock, node: str = "n1") -> FirstReport:
    return FirstReport(Reader(ScriptedLog(), driver.state, clock), Facts("m1", node))


async def test_nobody_waits_where_nothing_was_restored(tmp_path: Path, clock: Clock) -> None:
    driver = driven(tmp_path, restored=False)
    assert await waited_s(clock, made_for(driver, clock)) == 0
    driver.close()


async def test_nobody_waits_for_a_node_that_never_reported(tmp_path: Path, clock: Clock) -> None:
    driver = driven(tmp_path, restored=True)
    assert await waited_s(clock, made_for(driver, clock, "n2")) == 0
    driver.close()


async def test_it_ends_with_the_report(tmp_path: Path, clock: Clock) -> None:
    driver = driven(tmp_path, restored=True)
    made = made_for(driver, clock)

    def report(pauses: int) -> None:
        if pauses == 3:
            driver.run(Report(ORIGIN, "n1", "b1", driver.machine.applied[0]))

    clock.after = report
    assert await waited_s(clock, made) == pytest.approx(0.3)
    assert await waited_s(clock, made) == 0
    driver.close()


async def test_or_with_its_patience_which_is_one_for_all(tmp_path: Path, clock: Clock) -> None:
    driver = driven(tmp_path, restored=True)
    made = made_for(driver, clock)
    assert 0 < await waited_s(clock, made, patience_s=1.0) < 1.0, "the caller's own time counts too"
    began_s = clock.now_s
    assert 0 < await waited_s(clock, made) < firstreport.PATIENCE_S
    assert clock.now_s - began_s == pytest.approx(firstreport.PATIENCE_S - 0.5)
    assert await waited_s(clock, made) == 0
    driver.close()
