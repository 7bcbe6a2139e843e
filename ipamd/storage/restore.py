"""Owns making the state of a new cluster from a backup, or from the stopped directory of one member of an old one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from ipamd.core.invariants import violations
from ipamd.core.levels import NewerEntry
from ipamd.core.ports import LogEntry, SnapshotRefused
from ipamd.core.restoring import Backup, restore
from ipamd.storage import statements as st
from ipamd.storage.backups import hash_file, hash_of
from ipamd.storage.catalogue import Catalogue
from ipamd.storage.compiled import sql, value
from ipamd.storage.database import FILE_NAME, FORMAT, Database, connect, file_format
from ipamd.storage.deadlines import Deadlines
from ipamd.storage.errors import SENSELESS, Broken, NewerFormat, told_of_damage
from ipamd.storage.machine import SqliteMachine
from ipamd.storage.opening import open_database, refuse_newer_level
from ipamd.storage.records import SqliteRecords
from ipamd.storage.snapshots import copy_snapshot, inspect_snapshot
from ipamd.storage.tables import meta, ops
from ipamd.storage.working import WorkingView
from ipamd.storage.writer import Writer

_AT_ONCE: Final = 256
"""How many entries of a journal are applied in one transaction."""

_FORGET_OUTCOMES: Final = sql(ops.delete())
_POSITION: Final = ("log_ms", "wall_ms", "last_id", "last_event")
_STORE: Final = sql(meta.update().values({name: value(name) for name in _POSITION}))


class Found(NamedTuple):
    """What a new cluster begins with: the position in the log, and the cluster that it was."""

    log_index: int
    term: int
    wall_ms: int
    cluster_id: str
    epoch: int
    """Of the new cluster."""


def check_backup(path: Path) -> None:
    """Look at a backup before anything is written. Raises SnapshotRefused."""
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise SnapshotRefused(f"{path} is no file, as a backup is")
    _check_hash_beside(path)
    inspect_snapshot(path, None)
    with _readable(path) as connection:
        if connection.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
            return  # its laws are looked at once it is brought to this format
        if connection.execute(st.CLUSTER).fetchone() is None:
            raise SnapshotRefused(f"the state in {path} is of no cluster: none was ever founded with it")
        found = _breach(connection)
        if found is not None:
            raise SnapshotRefused(f"the state in {path} is not sound: {found}")


def copy_backup(path: Path, data_dir: Path) -> None:
    """Put the state of a backup that was checked into an empty directory. Raises StorageError, SnapshotRefused."""
    open_database(data_dir).close()
    with closing(connect(data_dir / FILE_NAME)) as target:
        copy_snapshot(path, target)


def copy_member(source: Path, data_dir: Path) -> None:
    """Put the state of a stopped member, as its database has it, into an empty directory. Raises StorageError."""
    path = source / FILE_NAME
    if file_format(path) == 0:
        raise Broken(f"{path} is empty: nothing of the state is left in it")
    with told_of_damage(path):
        refuse_newer_level(path)
    open_database(data_dir).close()
    # As in doctor.py: the second one writes nothing, and as long as the first is open it folds no log in.
    with (
        told_of_damage(path),
        closing(connect(path, mode="ro")) as keeper,
        closing(connect(path, wal=False)) as read,
        closing(connect(data_dir / FILE_NAME)) as target,
    ):
        keeper.execute("SELECT 1 FROM sqlite_master")
        read.execute("PRAGMA query_only = ON")
        read.backup(target)


def applied_of(data_dir: Path) -> int:
    """The index of the entry applied last. Raises StorageError."""
    with told_of_damage(data_dir / FILE_NAME), closing(connect(data_dir / FILE_NAME, mode="ro")) as connection:
        return int(connection.execute(st.META).fetchone()[1])


def apply_entries(data_dir: Path, entries: Iterable[LogEntry]) -> None:
    """Carry out what a journal has beyond the state. Raises StorageError."""
    with _opened(data_dir) as database:
        machine = SqliteMachine(database)
        waiting = iter(entries)
        try:
            while some := list(islice(waiting, _AT_ONCE)):
                machine.apply(some)
        except NewerEntry as error:
            raise NewerFormat(str(error)) from error


def renew(data_dir: Path, cluster_id: str, now_ms: int) -> Found:
    """Make the state in a directory that of a new cluster. Raises StorageError: it is not sound, or of no cluster."""
    path = data_dir / FILE_NAME
    with _opened(data_dir) as database:
        connection = database.writer
        connection.execute("BEGIN IMMEDIATE")
        _refuse_unsound(path, connection)
        found = _renew(path, connection, cluster_id, now_ms)
        _refuse_unsound(path, connection)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return found


def _check_hash_beside(path: Path) -> None:
    """The hash beside a backup may be lacking: the file has one of its own, of all but itself."""
    beside = hash_file(path)
    try:
        wanted = beside.read_text().split()[:1] if beside.exists() else []
        if wanted and wanted != [hash_of(path)]:
            raise SnapshotRefused(f"{path} is not the backup that {beside} is of: it was changed, or cut off")
    except (OSError, ValueError) as error:
        raise SnapshotRefused(f"{path} or {beside} cannot be read: {error}") from error


@contextmanager
def _opened(data_dir: Path) -> Iterator[Database]:
    with told_of_damage(data_dir / FILE_NAME):
        database = open_database(data_dir)
        try:
            yield database
        finally:
            database.close()


@contextmanager
def _readable(path: Path) -> Iterator[sqlite3.Connection]:
    """A backup as a database that nobody changes."""
    try:
        address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection:
            yield connection
    except sqlite3.DatabaseError as error:
        raise SnapshotRefused(f"{path} cannot be read: {error}") from error


def _refuse_unsound(path: Path, connection: sqlite3.Connection) -> None:
    found = _breach(connection)
    if found is not None:
        raise Broken(f"the state that was copied to {path} is not sound: {found}")


def _breach(connection: sqlite3.Connection) -> str | None:
    """The first law that a state breaks, as a sentence."""
    try:
        return next(iter(violations(SqliteRecords(connection))), None)
    except SENSELESS as error:
        return f"it makes no sense ({type(error).__name__}: {error})"


def _renew(path: Path, connection: sqlite3.Connection, cluster_id: str, now_ms: int) -> Found:
    _, index, term, log_ms, wall_ms, last_id, last_event = connection.execute(st.META).fetchone()
    view = WorkingView(connection, Catalogue(), last_id, last_event)
    old = view.cluster()
    if old is None:
        raise Broken(f"the state that was copied to {path} is of no cluster: none was ever founded with it")
    writer = Writer(view, Deadlines(connection))
    backup = Backup(index, log_ms, wall_ms, cluster_id, now_ms)
    decision = restore(view, SqliteRecords(connection), backup)
    writer.carry_out(decision.changes)
    connection.execute(_FORGET_OUTCOMES)
    # What is reported in the new cluster's first moment is later than all that the backup has.
    position = (log_ms + 1, max(wall_ms, now_ms), decision.last_id, decision.last_event)
    connection.execute(_STORE, position)
    return Found(index, term, wall_ms, old.id, old.epoch + 1)
