"""Owns snapshots as files: a copy of the database of one moment, with a hash, made while others read and write.

The file is the SQLite database, then a SHA-256, a mark and the format of the file (one byte). It is made on demand
and read by another member, which takes it into its own database in one transaction: whoever reads there goes on with
what it saw.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from ipamd.core.ports import SnapshotRefused
from ipamd.storage import statements as st
from ipamd.storage.database import APPLICATION_ID, FORMAT, connect
from ipamd.storage.errors import DiskFull
from ipamd.storage.opening import level_above

FILE_FORMAT: Final = 1
"""Of what is around the database, which has a format of its own."""

_MARK: Final = b"IPAMSNA" + bytes((FILE_FORMAT,))
_TRAILER_BYTES: Final = 32 + len(_MARK)
_PAGES: Final = 512
_CHUNK_BYTES: Final = 1 << 20
_NO_ROOM: Final = sqlite3.SQLITE_FULL


class SnapshotFacts(NamedTuple):
    """What a snapshot's file holds: the position in the log, and how large it is."""

    applied: int
    term: int
    size_bytes: int


def make_snapshot(database: Path, path: Path) -> SnapshotFacts:
    """Write a snapshot of a database to a file of its own; any thread may. What lay there is replaced.

    Raises DiskFull, with no file left behind.
    """
    draft = path.with_name(f"{path.name}.part")
    draft.unlink(missing_ok=True)
    try:
        with closing(connect(database)) as source:
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            index, term = _copy(source, draft)
        _seal(draft)
    except sqlite3.OperationalError as error:
        draft.unlink(missing_ok=True)
        if error.sqlite_errorcode & 0xFF == _NO_ROOM:
            raise DiskFull(f"no space is left for a snapshot at {path}") from error
        raise
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    draft.replace(path)
    return SnapshotFacts(index, term, path.stat().st_size)


def inspect_snapshot(path: Path, cluster_id: str | None) -> tuple[int, int]:
    """Index and term of a snapshot. Raises SnapshotRefused for what is not whole, not sound, or not this cluster's."""
    _check_hash(path)
    with _opened(path) as connection:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION_ID:
            raise SnapshotRefused(f"the snapshot {path} is a database of another program, not of ipamd")
        if version > FORMAT:
            raise SnapshotRefused(
                f"the snapshot {path} has format {version}, this program reads formats up to {FORMAT}"
            )
        finding = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if finding != "ok":
            raise SnapshotRefused(f"the snapshot {path} is damaged: {finding}")
        theirs = connection.execute(st.CLUSTER_ID).fetchone()
        if cluster_id is not None and (theirs is None or theirs[0] != cluster_id):
            raise SnapshotRefused(f"the snapshot {path} is of another cluster")
        newer = level_above(connection)
        if newer is not None:
            raise SnapshotRefused(f"the snapshot {path} {newer}")
        applied, term = connection.execute(st.POSITION).fetchone()
        return applied, term


def copy_snapshot(path: Path, target: sqlite3.Connection) -> None:
    """Take a snapshot that was inspected into a database, as one transaction. Raises SnapshotRefused, DiskFull.

    One of an older format is brought to the current one first, in a file of its own.
    """
    with _opened(path) as source, _current(path, source) as current:
        try:
            current.backup(target)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == _NO_ROOM:
                raise DiskFull("no space is left to install a snapshot") from error
            raise SnapshotRefused(f"the snapshot {path} cannot be copied: {error}") from error


def _copy(source: sqlite3.Connection, draft: Path) -> tuple[int, int]:
    """Copy as of one moment, in steps, so that this process's other threads get their turn."""
    source.execute("BEGIN")
    row = source.execute(st.META).fetchone()
    with closing(sqlite3.connect(draft, isolation_level=None)) as target:
        source.backup(target, pages=_PAGES)
    source.execute("ROLLBACK")
    return row[1], row[2]


@contextmanager
def _current(path: Path, source: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """The same state in the current format."""
    if source.execute("PRAGMA user_version").fetchone()[0] == FORMAT:
        yield source
        return
    from ipamd.storage.migrate import upgrade  # noqa: PLC0415 - alembic is slow to load and seldom needed

    draft = path.with_name(f"{path.name}.current")
    draft.unlink(missing_ok=True)
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            source.backup(connection)
            upgrade(connection)
            yield connection
    finally:
        draft.unlink(missing_ok=True)


def _seal(path: Path) -> None:
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        file.write(_hash(file, size, _MARK) + _MARK)
        file.flush()
        os.fsync(file.fileno())


def _check_hash(path: Path) -> None:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END) - _TRAILER_BYTES
            if size < 0:
                raise SnapshotRefused(f"the snapshot {path} is not whole")
            file.seek(size)
            trailer = file.read()
            if trailer[:32] != _hash(file, size, trailer[32:]) or trailer[32:-1] != _MARK[:-1]:
                raise SnapshotRefused(f"the snapshot {path} is not whole, or was changed on its way")
            if trailer[-1] != FILE_FORMAT:
                raise SnapshotRefused(
                    f"the snapshot {path} is a file of format {trailer[-1]}, this program reads format {FILE_FORMAT}"
                )
    except OSError as error:
        raise SnapshotRefused(f"the snapshot {path} cannot be read: {error.strerror}") from error


def _hash(file: BinaryIO, size: int, mark: bytes) -> bytes:
    """SHA-256 of the first bytes and the mark; the file is read from its beginning and left behind them."""
    whole = hashlib.sha256()
    file.seek(0)
    while size > 0:
        part = file.read(min(size, _CHUNK_BYTES))
        if not part:
            break
        whole.update(part)
        size -= len(part)
    whole.update(mark)
    return whole.digest()


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as a database that nobody changes; SQLite does not read what follows its pages."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None)
        with closing(connection):
            yield connection
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == _NO_ROOM:
            raise
        raise SnapshotRefused(f"the snapshot {path} cannot be read: {error}") from error
