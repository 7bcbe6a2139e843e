"""Backups by themselves: one after the other, the oldest removed, and what fails is tried again and counted."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ipamd.core.commands import CreatePool
from ipamd.core.ports import Unavailable
from ipamd.errors import ApiError
from ipamd.service import backups
from ipamd.service.backups import Backups, Schedule
from ipamd.service.reader import Reader
from ipamd.service.request import Request
from ipamd.storage.backups import BackupFiles, hash_of, name_of
from ipamd.storage.database import FILE_NAME
from ipamd.storage.snapshots import inspect_snapshot
from tests.core.world import ORIGIN, definition
from tests.storage.driver import Driver
from tests.support.eventually import until
from tests.support.scripted import ScriptedLog, TurnedClock

CLUSTER = "c" * 32
REQUEST = Request("test", "r", 1e9)


class Site:
    """A state, and what makes backups of it into a directory."""

    def __init__(self, directory: Path, every_s: float = 3600, keep: int = 2) -> None:
        self.driver, self.clock = Driver(directory / "data"), TurnedClock()
        self.place = directory / "backups"
        self.schedule = Schedule(self.place, every_s, keep)
        self.files = BackupFiles(directory / "data" / FILE_NAME)
        self.made = Backups(
            self.files,
            Reader(ScriptedLog(), self.driver.state, self.clock),
            self.clock,
            scratch=directory / "data" / "sending",
            schedule=self.schedule,
            cluster_id=lambda: CLUSTER,
        )

    @property
    def names(self) -> list[str]:
        return sorted(path.name for path in self.place.iterdir())

    def change(self, name: str) -> int:
        self.driver.run(CreatePool(ORIGIN, definition(name, "192.0.2.0/24", space=name)))
        return self.driver.machine.applied[0]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.driver.close()


async def test_the_newest_are_kept_each_with_its_hash(site: Site) -> None:
    indexes = []
    for name in ("a", "b", "c"):
        indexes.append(site.change(name))
        made = await site.made.keep(site.schedule)
        assert made.log_index == indexes[-1]
    kept = [name_of(CLUSTER, index) for index in indexes[1:]]
    assert site.names == sorted([*kept, *(f"{name}.sha256" for name in kept)])
    for name in kept:
        assert (site.place / f"{name}.sha256").read_text() == f"{hash_of(site.place / name)}  {name}\n"
        assert (site.place / name).stat().st_mode & 0o777 == 0o600
    assert site.place.stat().st_mode & 0o777 == 0o700


async def test_what_is_not_its_own_is_left_alone(site: Site) -> None:
    site.place.mkdir()
    others = ["notes.txt", f"ipamd-{'d' * 32}-000000000001.db", f"ipamd-{CLUSTER}-1.db"]
    for name in others:
        (site.place / name).write_text("x")
    for name in ("a", "b", "c"):
        site.change(name)
        await site.made.keep(site.schedule)
    assert set(others) <= set(site.names)


async def test_it_goes_on_by_itself_and_a_restart_does_not_begin_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, every_s=0.05, keep=3)
    site.change("a")
    keep, begun, ended = site.files.keep, 0, 0

    def counted(*given: Any) -> Any:
        nonlocal begun, ended
        begun += 1
        try:
            return keep(*given)
        finally:
            ended += 1

    monkeypatch.setattr(site.files, "keep", counted)
    site.made.start()
    await until(lambda: ended > 1)
    await site.made.stop()
    await until(lambda: ended == begun)  # its thread goes on to the end of the one that was under way
    assert len(site.names) == 2
    figures = site.made.figures
    assert figures is not None
    assert (figures.age_s, figures.failed) == (0, 0)
    os.utime(next(site.place.glob("*.db")), (site.clock.wall_ms() / 1000 - 1000,) * 2)
    slow = Schedule(site.place, 3600, 3)
    monkeypatch.setattr(site.made, "_schedule", slow)
    assert 2599 <= await site.made._until_first_s(slow) <= 2600
    site.driver.close()


async def test_what_fails_is_counted_and_tried_again_soon(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.place.write_text("a file where the directory should be")
    assert await site.made._try(site.schedule) == backups.AGAIN_S
    figures = site.made.figures
    assert figures is not None
    assert (figures.age_s, figures.failed) == (None, 1)
    site.place.unlink()
    site.change("a")
    assert await site.made._try(site.schedule) == site.schedule.every_s
    site.clock.epoch_ms += 5_000
    figures = site.made.figures
    assert figures is not None
    assert (figures.age_s, figures.failed) == (5.0, 1)


async def test_so_is_what_sqlite_cannot_write(site: Site) -> None:
    """As over a quota: it is no error of this program's own writing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
    try:
        assert await site.made._try(site.schedule) == backups.AGAIN_S
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert site.names == []
    assert await site.made._try(site.schedule) == site.schedule.every_s


def test_members_that_share_a_directory_do_not_meet_in_their_drafts(site: Site, tmp_path: Path) -> None:
    other = Site(tmp_path / "other")
    for number in range(2):
        site.change(f"a{number}")
    with ThreadPoolExecutor(2) as pool:
        for _ in range(8):
            other.change(f"b{other.driver.machine.applied[0]}")
            made = list(pool.map(lambda one: one.files.keep(site.place, CLUSTER), (site, other)))
            for one in made:
                inspect_snapshot(one.path, None)
    assert all(name.endswith((".db", ".db.sha256")) for name in site.names)
    other.driver.close()


async def test_one_that_is_sent_is_gone_afterwards_and_one_is_made_at_a_time(site: Site) -> None:
    site.change("a")
    async with site.made.taken(REQUEST) as made:
        assert made.path.stat().st_size == made.size_bytes
        with pytest.raises(ApiError) as refused:
            async with site.made.taken(REQUEST):
                raise AssertionError
        assert refused.value.row.code == "too_many_requests"
    assert not made.path.exists()
    async with site.made.taken(REQUEST):
        pass


async def test_before_there_is_a_cluster_there_is_no_backup(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site.made, "_cluster_id", lambda: None)
    with pytest.raises(Unavailable):
        await site.made.keep(site.schedule)
