"""Owns opening the state: a new file is filled, an older one brought to the current format first."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from ipamd.core import levels
from ipamd.storage import statements as st
from ipamd.storage.database import FORMAT, Database, connect, file_format, prepare
from ipamd.storage.errors import NewerFormat


def open_database(data_dir: Path) -> Database:
    """Open the state in a data directory: made if it is not there, brought to the current format if it is older.

    Raises ForeignFile, NewerFormat, Broken.
    """
    path = prepare(data_dir)
    if file_format(path) != FORMAT:
        from ipamd.storage.migrate import migrate  # noqa: PLC0415 - alembic is slow to load and seldom needed

        migrate(path)
    refuse_newer_level(path)
    return Database(path)


def refuse_newer_level(path: Path) -> None:
    """Raises NewerFormat where the log of a state has commands that this program does not know."""
    with closing(connect(path, mode="ro")) as connection:
        newer = level_above(connection)
    if newer is not None:
        raise NewerFormat(f"{path} {newer}")


def level_above(connection: sqlite3.Connection) -> str | None:
    """What is to be said of a state whose cluster has come to need a newer program; None: this one will do."""
    row = connection.execute(st.CLUSTER_LEVEL).fetchone()
    if row is None or row[0] <= levels.LEVEL:
        return None
    return (
        f"is of a cluster that has come to need level {row[0]} of ipamd, this program has level {levels.LEVEL}:"
        " start the newer version that ran here before"
    )
