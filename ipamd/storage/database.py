"""Owns the database file: how it is opened, protected and closed. One connection writes, any number read.

The journal of the log is what makes an acknowledged write durable; the database may lag behind it after a power loss,
which `synchronous = NORMAL` allows, and replays what it misses.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final, Literal

from ipamd.storage.errors import Broken, ForeignFile, NewerFormat, damage, is_damage

FILE_NAME: Final = "state.db"
APPLICATION_ID: Final = int.from_bytes(b"ipam", "big")
"""Marks the file as ours (SQLite keeps it in the header, `file` shows it)."""

FORMAT: Final = 1
"""The format that this program reads and writes (`PRAGMA user_version`); each migration raises it by one."""

WRITER_CACHE_KIB: Final = 64 * 1024
READER_CACHE_KIB: Final = 8 * 1024
_CHECKPOINT_PAGES: Final = 4000
_WAL_KEEP_BYTES: Final = 64 * 1024 * 1024
_BUSY_MS: Final = 5000
_STATEMENTS: Final = 512


class Database:
    """An open state database of the current format. Connections may be handed from one thread to another."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writer = connect(path, cache_kib=WRITER_CACHE_KIB)
        self.writer.execute("PRAGMA foreign_keys = ON")
        self.writer.execute("PRAGMA synchronous = NORMAL")
        self.writer.execute("PRAGMA secure_delete = OFF")
        self.writer.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        self.writer.execute(f"PRAGMA journal_size_limit = {_WAL_KEEP_BYTES}")

    def reader(self) -> sqlite3.Connection:
        """Another connection, that cannot write."""
        connection = connect(self.path, cache_kib=READER_CACHE_KIB)
        connection.execute("PRAGMA query_only = ON")
        return connection

    def sync_wal(self) -> None:
        """Make durable what was committed and lies in the write-ahead log.

        Opening and closing this file is safe: SQLite's locks are on the other two, where closing would drop them.
        """
        wal = os.open(f"{self.path}-wal", os.O_RDONLY)
        try:
            os.fsync(wal)
        finally:
            os.close(wal)

    def close(self) -> None:
        """Close the writer; the last connection to go leaves a single file."""
        self.writer.close()


def prepare(data_dir: Path) -> Path:
    """The database's path; directory and file are there and belong to their owner alone."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    data_dir.chmod(0o700)
    path = data_dir / FILE_NAME
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    path.chmod(0o600)  # what SQLite puts beside it gets the same mode
    return path


def connect(
    path: Path, *, cache_kib: int = READER_CACHE_KIB, mode: Literal["ro", "rw"] = "rw", wal: bool = True
) -> sqlite3.Connection:
    """A connection without the driver's own transactions; one that may write puts the file into WAL mode."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS,
    )
    try:
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        connection.execute(f"PRAGMA cache_size = -{cache_kib}")
        if mode == "rw" and wal:
            connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def file_format(path: Path) -> int:
    """The format of a state database; 0: an empty file. Raises ForeignFile, NewerFormat, Broken."""
    try:
        with closing(connect(path, mode="ro")) as connection:
            application = _pragma(connection, "application_id")
            version = _pragma(connection, "user_version")
            empty = connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            raise ForeignFile(f"{path} is not a SQLite database") from None
        if is_damage(error):
            raise damage(path, error) from error
        raise Broken(f"{path} cannot be read: {error}") from error
    if empty and application == version == 0:
        return 0
    if application != APPLICATION_ID:
        raise ForeignFile(f"{path} is a SQLite database of another program, not of ipamd")
    if version > FORMAT:
        raise NewerFormat(f"{path} has format {version}, this program reads formats up to {FORMAT}")
    return version


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
