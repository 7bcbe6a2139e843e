"""Owns consistent reads of one moment: a read transaction each, on connections that are kept for the next."""

# ruff: noqa: D102 - core.ports.Snapshot and State say what each method is

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Final

from sqlalchemy import func, literal_column, select

from ipamd.core.addresses import Address
from ipamd.core.intervals import Spans
from ipamd.core.model import Attachment, Event, Node, Pool, Token
from ipamd.core.ports import Doubt, FamilyCounts, HistoryRow, NodeRow, ReservationFilter, ReservationRow
from ipamd.core.withheld import withheld_spans
from ipamd.storage import statements as st
from ipamd.storage.catalogue import Catalogue
from ipamd.storage.compiled import LARGEST, sql, value
from ipamd.storage.database import Database
from ipamd.storage.doubts import doubts_of
from ipamd.storage.errors import damage, is_damage
from ipamd.storage.history import events_complete_since, read_history, read_holding_at
from ipamd.storage.listing import list_reservations
from ipamd.storage.rows import to_attachment, to_event, to_node, to_token
from ipamd.storage.tables import attachments, events, nodes, pools, tokens
from ipamd.storage.usage import spent_counts, usable_spans
from ipamd.storage.view import SqliteView

_POOLS: Final = sql(
    select(pools.c.id, pools.c.revision)
    .where(pools.c.name > value("after"))
    .order_by(pools.c.name)
    .limit(value("limit"))
)
_EVENTS: Final = sql(events.select().where(events.c.id > value("after")).order_by(events.c.id).limit(value("limit")))
_NODES: Final = sql(nodes.select().where(nodes.c.name > value("after")).order_by(nodes.c.name).limit(value("limit")))
_BOUND: Final = sql(select(func.count()).select_from(attachments).where(attachments.c.node == value("node")))
_is_unclaimed = (attachments.c.bound == literal_column("1")) & attachments.c.node.is_(None)
_UNCLAIMED_COUNT: Final = sql(select(func.count()).select_from(attachments).where(_is_unclaimed))
_UNCLAIMED: Final = sql(
    attachments.select()
    .where(_is_unclaimed, attachments.c.id > value("after"))
    .order_by(attachments.c.id)
    .limit(value("limit"))
)
_TOKENS: Final = sql(tokens.select().order_by(tokens.c.id))

KEPT_READERS: Final = 8
"""How many idle connections are kept; each has a cache of its own."""


class SqliteSnapshot(SqliteView):
    """The state of one moment: core.ports.Snapshot."""

    def __init__(self, connection: sqlite3.Connection, catalogue: Catalogue) -> None:
        row = connection.execute(st.META).fetchone()  # the transaction's first read fixes its moment
        super().__init__(connection, catalogue, last_id=row[5], last_event=row[6])
        self.applied_index: int = row[1]
        self.log_ms: int = row[3]
        self.wall_ms: int = row[4]

    def pools(self, after: str, limit: int) -> Sequence[Pool]:
        return [self.stored(*row).pool for row in self.connection.execute(_POOLS, (after, limit)).fetchall()]

    def reservations(
        self, wanted: ReservationFilter, after: tuple[str, str] | None, limit: int
    ) -> Sequence[ReservationRow]:
        return list_reservations(self, wanted, after, limit)

    def counts(self, pool: Pool) -> dict[int, FamilyCounts]:
        families = sorted({one.family for inner in pool.sets for one in inner})
        return {family: self.spent(pool, family, usable_spans(pool, family)) for family in families}

    def doubts(self, pool: Pool) -> Sequence[Doubt]:
        return doubts_of(self.connection, pool)

    def spent(self, pool: Pool, family: int, spans: Spans) -> FamilyCounts:
        return spent_counts(self.connection, pool, family, spans, withheld_spans(self, pool.space, family))

    def history(self, space: str, address: Address, before_index: int | None, limit: int) -> Sequence[HistoryRow]:
        return read_history(self, space, address, before_index, limit)

    def holding_at(self, space: str, address: Address, at_ms: int) -> HistoryRow | None:
        return read_holding_at(self, space, address, at_ms)

    def events_since_ms(self) -> int | None:
        return events_complete_since(self, self.wall_ms)

    def events(self, after: int, limit: int) -> Sequence[Event]:
        return [to_event(row) for row in self.connection.execute(_EVENTS, (min(after, LARGEST), limit))]

    def nodes(self, after: str, limit: int) -> Sequence[NodeRow]:
        rows = self.connection.execute(_NODES, (after, limit)).fetchall()
        return [self._node_row(to_node(row)) for row in rows]

    def unclaimed_count(self) -> int:
        return int(self.connection.execute(_UNCLAIMED_COUNT).fetchone()[0])

    def unclaimed(self, after_id: int, limit: int) -> Sequence[Attachment]:
        return [to_attachment(row) for row in self.connection.execute(_UNCLAIMED, (after_id, limit))]

    def tokens(self) -> Sequence[Token]:
        return [to_token(row) for row in self.connection.execute(_TOKENS)]

    def next_token_end(self, after_ms: int) -> int | None:
        found: int | None = self.connection.execute(st.NEXT_TOKEN_END, (after_ms,)).fetchone()[0]
        return found

    def _node_row(self, node: Node) -> NodeRow:
        bound = self.connection.execute(_BOUND, (node.name,)).fetchone()[0]
        return NodeRow(node, tuple(self.boots(node.name)), bound)


class SqliteState:
    """Gives out snapshots, to any thread: core.ports.State.

    `fatal` is told in one sentence, by whoever reads, that the file is damaged: nobody should go on serving from it.
    """

    def __init__(
        self,
        database: Database,
        catalogue: Catalogue | None = None,
        fatal: Callable[[str], None] = lambda _sentence: None,
    ) -> None:
        self._database = database
        self._catalogue = catalogue or Catalogue()
        self._fatal = fatal
        self._idle: list[sqlite3.Connection] = []
        self._lock = Lock()

    @contextmanager
    def snapshot(self) -> Iterator[SqliteSnapshot]:
        connection = self._take()
        connection.execute("BEGIN")
        try:
            yield SqliteSnapshot(connection, self._catalogue)
        except sqlite3.DatabaseError as error:
            if is_damage(error):
                self._fatal(str(damage(self._database.path, error)))
            raise
        finally:
            connection.execute("ROLLBACK")
            self._give_back(connection)

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._database.reader()

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if len(self._idle) < KEPT_READERS:
                self._idle.append(connection)
                return
        connection.close()
