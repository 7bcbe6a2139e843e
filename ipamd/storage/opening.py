"""Owns opening the state: a new file is filled, an older one brought to the current format first."""

from __future__ import annotations

from pathlib import Path

from ipamd.storage.database import FORMAT, Database, file_format, prepare


def open_database(data_dir: Path) -> Database:
    """Open the state in a data directory: made if it is not there, brought to the current format if it is older.

    Raises ForeignFile, NewerFormat, Broken.
    """
    path = prepare(data_dir)
    if file_format(path) != FORMAT:
        from ipamd.storage.migrate import migrate  # noqa: PLC0415 - alembic is slow to load and seldom needed

        migrate(path)
    return Database(path)
