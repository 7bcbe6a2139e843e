"""Owns the examination of a data directory: is the state sound, and does it fit the journal? It changes nothing.

Each check is independent; what one cannot read is a finding and the others go on.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import func, select

from ipamd.core.addresses import Address
from ipamd.core.intervals import Span
from ipamd.core.invariants import violations
from ipamd.core.model import Range
from ipamd.storage import statements as st
from ipamd.storage.compiled import sql
from ipamd.storage.database import FILE_NAME, FORMAT, connect, file_format
from ipamd.storage.digest import machine_digest
from ipamd.storage.errors import SENSELESS, NewerFormat, StorageError
from ipamd.storage.opening import level_above
from ipamd.storage.pool_rows import read_pool
from ipamd.storage.records import SqliteRecords
from ipamd.storage.spans import computed_spans, read_spans
from ipamd.storage.tables import attachments, pools

FILE: Final = "file"
INDEXES: Final = "indexes"
FREE_SPACE: Final = "free space"
JOURNAL: Final = "journal"
FORMATS: Final = "format"
"""Where findings are, as far as it matters to whoever repairs them."""

_MOST: Final = 200
_OF_INDEXES: Final = re.compile(r"missing from index|wrong # of entries in index")
"""What SQLite says of an index that is not that of its table: the table is right, and the index follows from it."""

_POOL_IDS: Final = sql(pools.select().with_only_columns(pools.c.id).order_by(pools.c.name))
_NEWEST_BINDING: Final = sql(select(func.max(attachments.c.bound_index)))


class JournalFacts(NamedTuple):
    """What the journal of the log holds: its first and last index, and the term of an entry (None: not there)."""

    first: int
    last: int
    term_at: Callable[[int], int | None]


class Finding(NamedTuple):
    """Something that is not as it should be: one sentence, and where."""

    where: str
    sentence: str


def examine(data_dir: Path, journal: JournalFacts | None = None) -> list[Finding]:
    """All findings in a data directory; none where all is well. `journal` None: it is not compared."""
    path = data_dir / FILE_NAME
    if not path.exists():
        return [Finding(FILE, f"{path} is missing")]
    try:
        found = file_format(path)
    except NewerFormat as error:
        return [Finding(FORMATS, str(error))]
    except StorageError as error:
        return [Finding(FILE, str(error))]
    if found != FORMAT:
        return [Finding(FORMATS, f"the database has format {found}; ipamd migrate brings it to {FORMAT}")]
    # The second one is read-only in effect alone: SQLite leaves CHECKs out on a file that it may not write. As long
    # as the first is open, its close does not fold the write-ahead log in.
    with closing(connect(path, mode="ro")) as keeper, closing(connect(path, wal=False)) as connection:
        keeper.execute("SELECT 1 FROM sqlite_master")
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        newer = _newer_level(connection)
        return list(_examine(connection, journal)) if newer is None else [Finding(FORMATS, f"{path} {newer}")]


def position(data_dir: Path) -> tuple[int, int] | None:
    """Index and term of the entry applied last; None where that cannot be read."""
    try:
        with closing(connect(data_dir / FILE_NAME, mode="ro")) as connection:
            row = connection.execute(st.META).fetchone()
    except sqlite3.DatabaseError:
        return None
    return None if row is None else (row[1], row[2])


def digest_of(data_dir: Path) -> str | None:
    """The digest of the state: equal to that of every member that has applied the same entries. None: not readable."""
    try:
        with closing(connect(data_dir / FILE_NAME, mode="ro")) as connection:
            return machine_digest(connection)
    except (sqlite3.DatabaseError, *SENSELESS):
        return None


def _newer_level(connection: sqlite3.Connection) -> str | None:
    """What is to be said of a state that needs a newer program; None: nothing, or it cannot be told."""
    try:
        return level_above(connection)
    except (sqlite3.DatabaseError, *SENSELESS):
        return None


def _examine(connection: sqlite3.Connection, journal: JournalFacts | None) -> Iterator[Finding]:
    checks: list[tuple[str, Callable[[sqlite3.Connection], Iterator[str]]]] = [
        (FILE, _file_is_sound),
        (INDEXES, _indexes_are_right),
        ("references", _references_hold),
        ("laws", _laws_hold),
        (FREE_SPACE, _free_space_is_right),
    ]
    if journal is not None:
        checks.append((JOURNAL, lambda connection: _journal_fits(connection, journal)))
    for where, check in checks:
        try:
            yield from (Finding(where, sentence) for sentence in check(connection))
        except (sqlite3.DatabaseError, ValueError, LookupError, TypeError) as error:
            # A damaged file shows in what its rows turn into.
            yield Finding(where, f"cannot be read: {error}")


def _file_is_sound(connection: sqlite3.Connection) -> Iterator[str]:
    for (sentence,) in connection.execute(f"PRAGMA integrity_check({_MOST})"):
        if sentence != "ok" and not _OF_INDEXES.search(sentence):
            yield str(sentence)


def _indexes_are_right(connection: sqlite3.Connection) -> Iterator[str]:
    for (sentence,) in connection.execute(f"PRAGMA integrity_check({_MOST})"):
        if _OF_INDEXES.search(sentence):
            yield str(sentence)


def _references_hold(connection: sqlite3.Connection) -> Iterator[str]:
    for table, row_id, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"row {row_id or '(without number)'} of {table} refers to a row of {parent} that is not there"


def _laws_hold(connection: sqlite3.Connection) -> Iterator[str]:
    row = connection.execute(st.META).fetchone()
    if row is None:
        yield "the position in the log is missing"
        return
    newest = connection.execute(_NEWEST_BINDING).fetchone()[0]
    if newest is not None and newest > row[1]:
        yield f"entry {newest} has bound an address, the position in the log stands at {row[1]}"
    yield from violations(SqliteRecords(connection))


def _free_space_is_right(connection: sqlite3.Connection) -> Iterator[str]:
    for (pool_id,) in connection.execute(_POOL_IDS).fetchall():
        stored = read_pool(connection, pool_id)
        for ids, inner in zip(stored.range_ids, stored.pool.sets, strict=True):
            for range_id, one in zip(ids, inner, strict=True):
                kept = tuple(read_spans(connection, range_id))
                right = computed_spans(connection, stored.pool.space, one)
                if kept != right:
                    yield f"pool {stored.pool.name}, {one.subnet}: {_difference(one, kept, right)}"


def _difference(one: Range, kept: tuple[Span, ...], right: tuple[Span, ...]) -> str:
    """The first place where what is kept as free is not what is free."""
    wrong = next((span for span in kept if span not in right), None)
    if wrong is not None:
        return f"{_text(one, wrong)} is kept as free, which is not so"
    missing = next(span for span in right if span not in kept)
    return f"{_text(one, missing)} is free, which is not kept"


def _text(one: Range, span: Span) -> str:
    return f"{Address(one.family, span.first)}-{Address(one.family, span.last)}"


def _journal_fits(connection: sqlite3.Connection, journal: JournalFacts) -> Iterator[str]:
    row = connection.execute(st.META).fetchone()
    index, term = row[1], row[2]
    if not journal.first <= index <= journal.last:
        yield (f"the database has applied entry {index}, the journal holds entries {journal.first} to {journal.last}")
        return
    journalled = journal.term_at(index)
    if journalled is not None and journalled != term:
        yield f"the database has entry {index} of term {term}, the journal has it of term {journalled}"
