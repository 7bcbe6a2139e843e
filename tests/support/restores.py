"""Owns backups for tests: a state with a few pods, the file made of it, and what a restore leaves."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner, Result

from ipamd.core.commands import Add, CreatePool, Found, PoolRequest
from ipamd.core.model import Owner, Settings
from ipamd.programs.restore import restore
from ipamd.storage.backups import BackupFiles
from ipamd.storage.database import FILE_NAME
from ipamd.storage.snapshots import FILE_FORMAT
from tests.core.restored import MEMBERS
from tests.core.world import ORIGIN, definition
from tests.storage.driver import Driver

MARK = b"IPAMSNA" + bytes((FILE_FORMAT,))


def make_backup(directory: Path, change: Callable[[Driver], object] = bool) -> Path:
    """A backup of a cluster with a pool and two pods; `change` is done to its state before."""
    driver = Driver(directory / "old")
    driver.run(Found(ORIGIN, "old", Settings(), MEMBERS))
    driver.run(CreatePool(ORIGIN, definition("p", "192.0.2.0/24")))
    for name in ("a", "b"):
        driver.run(Add(ORIGIN, (PoolRequest("p"),), f"t/{name}", "eth0", Owner(f"c-{name}", "n1", "k")))
    change(driver)
    driver.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    made = BackupFiles(directory / "old" / FILE_NAME).make(directory / "backup.db")
    driver.close()
    return made.path


def sealed(database: bytes, mark: bytes = MARK) -> bytes:
    """A database as a backup's file has it: with its hash and mark."""
    return database + hashlib.sha256(database + mark).digest() + mark


def run_restore(*arguments: str | Path) -> Result:
    """Run `ipamd restore`."""
    return CliRunner().invoke(restore, [str(one) for one in arguments])
