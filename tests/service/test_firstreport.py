"""After a restore an ADD waits a moment for this host's own report, and only then."""

from __future__ import annotations

import asyncio
from pathlib import Path

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
    def monotonic_s(self) -> float:
        return asyncio.get_running_loop().time()

    def wall_ms(self) -> int:
        return WALL_MS


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


async def waited_s(driver: Driver, made: FirstReport, patience_s: float = 60.0) -> float:
    began_s = asyncio.get_running_loop().time()
    await made.wait(Request("test", "r", began_s + patience_s))
    return asyncio.get_running_loop().time() - began_s


def made_for(driver: Driver, node: str = "n1") -> FirstReport:
    return FirstReport(Reader(ScriptedLog(), driver.state, Clock()), Facts("m1", node))


async def test_nobody_waits_where_nothing_was_restored(tmp_path: Path) -> None:
    driver = driven(tmp_path, restored=False)
    assert await waited_s(driver, made_for(driver)) < 1
    driver.close()


async def test_nobody_waits_for_a_node_that_never_reported(tmp_path: Path) -> None:
    driver = driven(tmp_path, restored=True)
    assert await waited_s(driver, made_for(driver, "n2")) < 1
    driver.close()


async def test_it_ends_with_the_report(tmp_path: Path) -> None:
    driver = driven(tmp_path, restored=True)
    made = made_for(driver)
    waiting = asyncio.create_task(waited_s(driver, made))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    driver.run(Report(ORIGIN, "n1", "b1", driver.machine.applied[0]))
    assert await waiting >= 0.3
    assert await waited_s(driver, made) < 1
    driver.close()


async def test_or_with_its_patience_which_is_one_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firstreport, "PATIENCE_S", 0.4)
    driver = driven(tmp_path, restored=True)
    made = made_for(driver)
    assert await waited_s(driver, made, patience_s=0.6) < 0.4, "the caller's own time counts too"
    await waited_s(driver, made)
    assert await waited_s(driver, made) < 0.3
    driver.close()
