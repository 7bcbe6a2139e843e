"""What runs beside the requests goes on until it is stopped, and not a moment longer."""

from __future__ import annotations

import asyncio

import pytest

from ipamd.service import background
from ipamd.service.background import Background
from tests.support.eventually import until


class Work(Background):
    """Fails as often as it is told to, and then goes on for ever."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures, self.began = failures, 0

    async def _run(self) -> None:
        self.began += 1
        if self.began <= self.failures:
            raise LookupError("nobody foresaw this")
        await asyncio.Event().wait()


async def test_what_fails_begins_anew_and_the_log_has_the_reason(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "AGAIN_S", 0.001)
    work = Work(failures=2)
    work.start()
    await until(lambda: work.began == 3)
    assert caplog.text.count("Work failed for a reason that nobody foresaw") == 2
    assert "LookupError: nobody foresaw this" in caplog.text
    await asyncio.wait_for(work.stop(), 60)
    await asyncio.sleep(0.01)
    assert work.began == 3


async def test_a_stop_ends_what_waits_to_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "AGAIN_S", 600.0)
    work = Work(failures=1)
    work.start()
    await asyncio.sleep(0)
    await asyncio.wait_for(work.stop(), 60)
    assert work.began == 1
    await Work(failures=0).stop()
