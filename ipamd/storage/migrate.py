"""Owns the way from an older format to the current one: a copy is kept first, then all steps in one transaction."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

import ipamd
from ipamd.storage.database import FORMAT, connect, file_format
from ipamd.storage.durable import sync
from ipamd.storage.tables import metadata


def migrate(path: Path) -> Path | None:
    """Bring a database to the current format. Where the copy of the older one is; None: there was nothing to keep.

    Raises ForeignFile, NewerFormat. A migration that fails changes nothing.
    """
    found = file_format(path)
    if found == FORMAT:
        return None
    copy = keep_copy(path, found) if found else None
    with closing(connect(path)) as connection:
        upgrade(connection)
    return copy


def upgrade(connection: sqlite3.Connection, revision: str = "head") -> None:
    """Carry out the migrations up to a revision, all or none. What SQLite raises passes through as it is."""
    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    event.listen(engine, "begin", _begin)
    try:
        with engine.connect() as bound, bound.begin():
            command.upgrade(configuration(bound), revision)
    except DBAPIError as error:
        raise (error.orig or error) from error


def configuration(connection: Connection) -> Config:
    """Alembic's configuration for a connection."""
    config = Config()
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    config.attributes["target_metadata"] = metadata
    return config


def scripts() -> Path:
    """Where the migrations lie: beside the package in a checkout, inside it once installed."""
    package = Path(ipamd.__file__).parent
    inside = package / "migrations"
    return inside if inside.is_dir() else package.parent / "migrations"


def keep_copy(path: Path, found: int) -> Path:
    """A durable copy of a database beside it, named after its format; an unfinished one never has the name."""
    copy = path.with_name(f"{path.name}.format-{found}")
    part = copy.with_name(f"{copy.name}.part")
    part.unlink(missing_ok=True)
    os.close(os.open(part, os.O_CREAT | os.O_RDWR, 0o600))
    with closing(connect(path)) as source, closing(sqlite3.connect(part)) as target:
        source.backup(target)
    sync(part)
    part.replace(copy)
    sync(path.parent)
    return copy


def _begin(connection: Connection) -> None:
    """The driver does not begin transactions on its own here, so that changes of tables are part of one."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")
