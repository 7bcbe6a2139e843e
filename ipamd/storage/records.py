"""Owns reading a state as a whole, record by record: for the laws, for digests and for nothing in a hurry."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from sqlalchemy import Table

from ipamd.core.changes import Record
from ipamd.core.imports import StagedPart
from ipamd.core.model import (
    AssignedAddress,
    Attachment,
    Boot,
    Cluster,
    Cooling,
    Cursor,
    Event,
    GenerationFloor,
    MassSilence,
    Member,
    Node,
    Pool,
    Quarantine,
    Reservation,
    Settings,
    Sighting,
    Token,
    Tombstone,
)
from ipamd.core.restored import Disputed, Restored, Unconfirmed
from ipamd.storage import rows, tables
from ipamd.storage import statements as st
from ipamd.storage.compiled import sql
from ipamd.storage.pool_rows import read_pool
from ipamd.storage.tables import Row

R = TypeVar("R", bound=Record)


def _by_key(table: Table) -> str:
    return sql(table.select().order_by(*table.primary_key))


def _by_address(table: Table) -> str:
    return sql(table.select().order_by(table.c.space, *st.address_order(table)))


_POOL_IDS: Final = sql(tables.pools.select().with_only_columns(tables.pools.c.id).order_by(tables.pools.c.id))

_ALL: Final[dict[type[Any], tuple[str, Callable[[Row], Any]]]] = {
    Reservation: (_by_key(tables.reservations), rows.to_reservation),
    Attachment: (_by_key(tables.attachments), rows.to_attachment),
    AssignedAddress: (_by_address(tables.addresses), rows.to_assigned),
    Cooling: (_by_address(tables.cooling), rows.to_cooling),
    Quarantine: (_by_address(tables.quarantine), rows.to_quarantine),
    Cursor: (_by_key(tables.cursors), rows.to_cursor),
    GenerationFloor: (_by_key(tables.generation_floors), rows.to_floor),
    Tombstone: (_by_key(tables.tombstones), rows.to_tombstone),
    Node: (_by_key(tables.nodes), rows.to_node),
    Boot: (sql(tables.boots.select().order_by(tables.boots.c.node, tables.boots.c.ord)), rows.to_boot),
    Event: (_by_key(tables.events), rows.to_event),
    Settings: (st.SETTINGS, rows.to_settings),
    Token: (_by_key(tables.tokens), rows.to_token),
    Cluster: (st.CLUSTER, rows.to_cluster),
    Member: (st.MEMBERS, rows.to_member),
    StagedPart: (_by_key(tables.staged_parts), rows.to_part),
    Sighting: (_by_key(tables.sightings), rows.to_sighting),
    MassSilence: (st.MASS_SILENCE, rows.to_silence),
    Restored: (st.RESTORED, rows.to_restored),
    Unconfirmed: (_by_key(tables.unconfirmed), rows.to_unconfirmed),
    Disputed: (_by_address(tables.disputes), rows.to_disputed),
}


class SqliteRecords:
    """All records of the state that a connection sees: core.invariants.Records."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        row = connection.execute(st.META).fetchone()
        self.last_id: int = row[5]
        self.last_event: int = row[6]

    def all(self, kind: type[R]) -> Iterable[R]:
        """The records of a kind, by key."""
        if kind is Pool:
            ids = self._connection.execute(_POOL_IDS).fetchall()
            return (read_pool(self._connection, pool_id).pool for (pool_id,) in ids)  # type: ignore[misc]
        statement, make = _ALL[kind]
        return map(make, self._connection.execute(statement))
