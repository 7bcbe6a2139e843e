"""Which events are kept depends on the log alone: not on transactions, restarts, or what a member looked at before."""

from __future__ import annotations

from pathlib import Path

from ipamd.core.commands import ChangeSettings
from ipamd.core.model import Settings
from tests.core.world import ORIGIN
from tests.storage.driver import Driver
from tests.storage.pods import add, delete, pool

HOUR_MS = 3_600_000


def lived(driver: Driver) -> None:
    """Pods come and go for days, while fewer and fewer events are kept."""
    driver.run(pool("p", "192.0.2.0/24", cooldown_s=0))
    for number in range(60):
        driver.log_ms += HOUR_MS
        driver.run(add(f"t/{number}", f"c{number}"), *([delete(f"c{number - 1}")] if number else []))
        if number == 20:
            driver.run(ChangeSettings(ORIGIN, events_days=1))
        if number == 40:
            driver.run(ChangeSettings(ORIGIN, events_max=7))


def test_members_keep_the_same_events_however_they_apply(tmp_path: Path) -> None:
    one, two, three = (Driver(tmp_path / name) for name in ("one", "two", "three"))
    lived(one)
    two.machine.apply(one.entries)
    for entry in one.entries:
        three.machine.apply([entry])
        three.reopen()
    assert one.rows("SELECT count(*) FROM events") == [(7,)]
    assert one.digest() == two.digest() == three.digest()
    for driver in (one, two, three):
        driver.close()


def test_by_default_thirty_days_or_five_millions_are_kept() -> None:
    assert (Settings().events_days, Settings().events_max) == (30, 5_000_000)
