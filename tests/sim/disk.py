"""Owns a member's disk: journal and hard state on the simulated file layer, the database in a real folder.

SQLite's own writes cannot be intercepted from Python, so that the database is as durable as its last checkpoint: a
kill keeps it, a power loss may put back the copy that was made then.
"""

from __future__ import annotations

import atexit
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from ipamd.storage.database import FILE_NAME
from ipamd.storage.opening import open_database
from tests.consensus.simdisk import Names, SimDisk
from tests.sim.timeline import MemberClock

JOURNAL = Path("/journal")
SHM = Path("/dev/shm")

_COSTS_S = {"datasync": 4e-4, "sync_directory": 4e-4, "create": 1e-4}


class TimedDisk(SimDisk):
    """A simulated disk whose calls take time, more while it is `slow_s`."""

    def __init__(self, clock: MemberClock, names: Names | None = None) -> None:
        super().__init__(names)
        self.clock = clock
        self.slow_s = 0.0

    def step(self, name: str, path: Path, partly: Callable[[], None] = lambda: None) -> None:
        cost_s = _COSTS_S.get(name, 0.0)
        self.clock.spend(cost_s + (self.slow_s if name == "datasync" else 0.0))
        super().step(name, path, partly)
        self.log.clear()


class Storage:
    """The disk of one host, as long as the host lives."""

    def __init__(self, folder: Path, clock: MemberClock, template: Path) -> None:
        self.folder = folder
        self.files = TimedDisk(clock)
        self._clock = clock
        self._template = template
        self._durable = folder / "durable"
        self.wipe()

    def wipe(self) -> None:
        """An empty data directory."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._durable.mkdir(parents=True)
        shutil.copy(self._template, self.folder / self._template.name)
        shutil.copy(self._template, self._durable / self._template.name)
        self.files = TimedDisk(self._clock)

    def keep_durable(self) -> None:
        """The database is on the platter as it is now."""
        for path in list(self._durable.iterdir()):
            path.unlink()
        for path in self._databases():
            if not path.name.endswith("-shm"):
                shutil.copy(path, self._durable / path.name)

    def killed(self) -> None:
        """The process is gone, pages outlive it."""
        self.files.stop_at = None
        self.files.slow_s = 0.0

    def unplugged(self, chance: random.Random) -> None:
        """The power was gone: what was not synced is there or not."""
        self.files = TimedDisk(self._clock, self.files.unplugged(chance).seen)
        if chance.random() < 0.7:
            for path in self._databases():
                path.unlink()
            for path in self._durable.iterdir():
                shutil.copy(path, self.folder / path.name)

    def _databases(self) -> list[Path]:
        return sorted(path for path in self.folder.iterdir() if path.name.startswith("state.db"))


@cache
def template() -> Path:
    """An empty database, made once: the migrations take longer than a run."""
    folder = Path(tempfile.mkdtemp(prefix="ipamd-sim-template-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    open_database(folder).close()
    return folder / FILE_NAME


@contextmanager
def playground() -> Iterator[Path]:
    """A folder in memory."""
    folder = Path(tempfile.mkdtemp(prefix="ipamd-sim-", dir=SHM if SHM.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
