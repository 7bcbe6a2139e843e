"""Owns repairs of a database while nobody runs on it: only of what follows from the rest, so that no record is guessed.

What follows from the tables is SQLite's indexes and the free spans. All of it follows from the journal, where that
reaches back to the beginning: then the state is made anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

from ipamd.core.model import Member
from ipamd.core.ports import LogEntry
from ipamd.storage import statements as st
from ipamd.storage.compiled import sql
from ipamd.storage.database import FILE_NAME, connect
from ipamd.storage.doctor import examine
from ipamd.storage.durable import sync
from ipamd.storage.errors import Broken
from ipamd.storage.fronts import Fronts
from ipamd.storage.pool_rows import read_pool
from ipamd.storage.restore import apply_entries
from ipamd.storage.rows import to_member
from ipamd.storage.spans import FreeSpans
from ipamd.storage.tables import pools

_POOL_IDS: Final = sql(pools.select().with_only_columns(pools.c.id).order_by(pools.c.id))
_BESIDE: Final = ("-wal", "-shm")


class Made(NamedTuple):
    """A state that was made from a journal: of which cluster, who its members are, and how far it came."""

    cluster_id: str
    members: tuple[Member, ...]
    applied: int


def reindex(data_dir: Path) -> None:
    """Make all indexes of the database anew from its tables."""
    with closing(connect(data_dir / FILE_NAME)) as connection:
        connection.execute("REINDEX")


def rebuild_free_space(data_dir: Path) -> None:
    """Work out what is free in every pool from what is not, in one transaction."""
    with closing(connect(data_dir / FILE_NAME)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        spans = FreeSpans(connection, Fronts())
        for (pool_id,) in connection.execute(_POOL_IDS).fetchall():
            spans.rebuild(read_pool(connection, pool_id))
        connection.execute("COMMIT")


def members_of(data_dir: Path) -> tuple[Member, ...] | None:
    """The members as the state has them. None: not readable."""
    try:
        with closing(connect(data_dir / FILE_NAME, mode="ro")) as connection:
            return tuple(to_member(row) for row in connection.execute(st.MEMBERS))
    except sqlite3.DatabaseError:
        return None


def make_anew(directory: Path, entries: Iterable[LogEntry], last: int | None) -> Made:
    """Make a state from the entries of a log from its beginning, up to an index (None: all), in an empty directory.

    Raises StorageError: they do not make a sound state of a cluster.
    """
    directory.mkdir(mode=0o700)
    apply_entries(directory, takewhile(lambda entry: last is None or entry.index <= last, entries))
    with closing(connect(directory / FILE_NAME)) as connection:
        cluster = connection.execute(st.CLUSTER_ID).fetchone()
        applied = connection.execute(st.POSITION).fetchone()[0]
        members = tuple(to_member(row) for row in connection.execute(st.MEMBERS))
    if cluster is None:
        raise Broken("the journal does not reach back to the founding of the cluster")
    findings = examine(directory)
    if findings:
        raise Broken(f"the state that the journal makes is not sound: {findings[0].sentence}")
    return Made(cluster[0], members, applied)


def take_place(made: Path, data_dir: Path) -> None:
    """Put a state that was made into its place, durably. What lies there is lost: a copy was kept."""
    sync(made / FILE_NAME)
    for end in _BESIDE:
        (data_dir / f"{FILE_NAME}{end}").unlink(missing_ok=True)  # it would be read into the new one
    (made / FILE_NAME).replace(data_dir / FILE_NAME)
    sync(data_dir)
