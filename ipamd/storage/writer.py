"""Owns carrying out changes: each record into its table, and the free spans along with what occupies the spaces."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import Any, Final

from ipamd.core.addresses import to_blob
from ipamd.core.changes import Change, Drop, Occupy, Put, Record, Vacate
from ipamd.core.imports import StagedPart
from ipamd.core.intervals import Spans, intersect
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
from ipamd.core.withheld import usable_of
from ipamd.storage import rows, tables
from ipamd.storage import statements as st
from ipamd.storage.compiled import drop, insert, put, sql, value
from ipamd.storage.deadlines import Deadlines
from ipamd.storage.errors import Broken
from ipamd.storage.pool_rows import StoredPool, pool_row, write_ranges
from ipamd.storage.spans import FreeSpans
from ipamd.storage.tables import Row
from ipamd.storage.working import KEPT, WorkingView

_PUT: Final[dict[type[Any], tuple[str, Callable[[Any], Row]]]] = {
    Reservation: (put(tables.reservations), rows.reservation_row),
    Attachment: (put(tables.attachments), rows.attachment_row),
    # The first promise: who holds an address keeps it until it is dropped, whatever a decision says.
    AssignedAddress: (put(tables.addresses, "attachment_id"), rows.assigned_row),
    Cooling: (put(tables.cooling), rows.cooling_row),
    Quarantine: (put(tables.quarantine), rows.quarantine_row),
    Cursor: (put(tables.cursors), rows.cursor_row),
    GenerationFloor: (put(tables.generation_floors), rows.floor_row),
    Tombstone: (put(tables.tombstones), rows.tombstone_row),
    Node: (put(tables.nodes), rows.node_row),
    Boot: (put(tables.boots), rows.boot_row),
    Event: (insert(tables.events), rows.event_row),
    Settings: (put(tables.settings), rows.settings_row),
    Token: (put(tables.tokens), rows.token_row),
    Cluster: (put(tables.cluster), rows.cluster_row),
    Member: (put(tables.members), rows.member_row),
    StagedPart: (put(tables.staged_parts), rows.part_row),
    Sighting: (put(tables.sightings), rows.sighting_row),
    MassSilence: (put(tables.mass_silence), rows.silence_row),
    Restored: (put(tables.restored), rows.restored_row),
    Unconfirmed: (put(tables.unconfirmed), rows.unconfirmed_row),
    Disputed: (put(tables.disputes), rows.disputed_row),
}

_DROP: Final[dict[type[Any], tuple[str, Callable[[Any], Row]]]] = {
    Reservation: (drop(tables.reservations), lambda it: (it.id,)),
    Attachment: (drop(tables.attachments), lambda it: (it.id,)),
    AssignedAddress: (drop(tables.addresses), lambda it: (it.space, to_blob(it.address))),
    Cooling: (drop(tables.cooling), lambda it: (it.space, to_blob(it.address))),
    Quarantine: (drop(tables.quarantine), lambda it: (it.space, to_blob(it.address))),
    Cursor: (drop(tables.cursors), lambda it: (it.pool_id, it.position)),
    Tombstone: (drop(tables.tombstones), lambda it: (it.node, it.cni_network, it.container_id, it.ifname)),
    Node: (drop(tables.nodes), lambda it: (it.name,)),
    Boot: (drop(tables.boots), lambda it: (it.node, it.boot_id)),
    Token: (drop(tables.tokens), lambda it: (it.id,)),
    Member: (drop(tables.members), lambda it: (it.name,)),
    StagedPart: (drop(tables.staged_parts), lambda it: (it.import_id, it.number)),
    Restored: (drop(tables.restored), lambda _: (rows.SINGLE,)),
    Unconfirmed: (drop(tables.unconfirmed), lambda it: (it.pool_id,)),
    Disputed: (drop(tables.disputes), lambda it: (it.space, to_blob(it.address))),
}

_PUT_POOL: Final = put(tables.pools)
_DROP_POOL: Final = drop(tables.pools)
_DROP_RANGES: Final = sql(tables.ranges.delete().where(tables.ranges.c.pool_id == value("pool")))
_ALL_POOLS: Final = sql(
    tables.pools.select().with_only_columns(tables.pools.c.id, tables.pools.c.revision).order_by(tables.pools.c.id)
)


class Writer:
    """Carries out changes over the writing connection, inside the transaction that its caller began."""

    def __init__(self, view: WorkingView, deadlines: Deadlines) -> None:
        self._view = view
        self._deadlines = deadlines
        self._connection: sqlite3.Connection = view.connection
        self._execute = view.connection.cursor().execute
        self._free = FreeSpans(view.connection, view.fronts)
        for pool_id, revision in self._connection.execute(_ALL_POOLS).fetchall():
            self._free.enlist(view.stored(pool_id, revision))
        self._remark: set[str] = set()
        """The spaces in which other pools may be unconfirmed now."""

        for space in sorted({pool.space for pool in view.unconfirmed()}):
            self._withhold(space)

    def carry_out(self, changes: Iterable[Change]) -> None:
        """Write changes in their order. Raises Broken for one that contradicts what is there."""
        for change in changes:
            if isinstance(change, Put):
                self._put(change.record)
            elif isinstance(change, Drop):
                self._drop(change.record)
            elif isinstance(change, Occupy):
                self._free.occupy(change.space, change.address)
            elif isinstance(change, Vacate):
                self._free.vacate(change.space, change.address)
        if self._remark:
            self._settle_withheld()

    def _settle_withheld(self) -> None:
        """Other pools of some spaces are unconfirmed: what is free there is worked out anew, where that matters."""
        for space in sorted(self._remark):
            changed = self._withhold(space)
            for pool in self._view.pools_of_space(space):
                if any(intersect(usable_of((pool,), family), spans) for family, spans in changed.items()):
                    self._free.rebuild(self._stored_now(pool.id))
        self._remark.clear()

    def _withhold(self, space: str) -> dict[int, Spans]:
        """Read what is withheld in a space; what has changed, by family."""
        pools = self._view.unconfirmed_of_space(space)
        return {family: self._free.withhold(space, family, usable_of(pools, family)) for family in (4, 6)}

    def _stored_now(self, pool_id: int) -> StoredPool:
        stored = self._stored(pool_id)
        if stored is None:
            raise Broken(f"there is no pool of id {pool_id}")
        return stored

    def _mark(self, mark: Unconfirmed) -> None:
        """A pool is unconfirmed, or confirmed; it may be gone already."""
        stored = self._stored(mark.pool_id)
        if stored is not None:
            self._remark.add(stored.pool.space)

    def _put(self, record: Record) -> None:
        if isinstance(record, Pool):
            self._put_pool(record)
            return
        kind = type(record)
        statement, row = _PUT[kind]
        if self._execute(statement, row(record)).rowcount != 1:
            raise Broken(f"{record} would take an address from its holder")
        self._deadlines.note_record(record)
        if isinstance(record, Unconfirmed):
            self._mark(record)
        if kind in KEPT:
            self._view.forget(record)

    def _drop(self, record: Record) -> None:
        if isinstance(record, Pool):
            self._drop_pool(record)
            return
        kind = type(record)
        statement, key = _DROP[kind]
        if self._execute(statement, key(record)).rowcount != 1:
            raise Broken(f"{record} cannot be dropped: it is not there")
        if isinstance(record, Unconfirmed):
            self._mark(record)
        if kind in KEPT:
            self._view.forget(record)

    def _put_pool(self, pool: Pool) -> None:
        self._view.forget(pool)
        old = self._stored(pool.id)
        revision = old.revision + 1 if old else 1
        self._execute(_PUT_POOL, pool_row(pool, revision))
        if old and (old.pool.space, old.pool.sets) == (pool.space, pool.sets):
            self._view.catalogue.remember(StoredPool(pool, revision, old.range_ids))
            return
        if old:
            self._free.strike(old)
            self._execute(_DROP_RANGES, (pool.id,))
        new = StoredPool(pool, revision, write_ranges(self._connection, pool))
        self._view.catalogue.remember(new)
        self._free.enlist(new)
        self._free.rebuild(new)
        if self._view.is_unconfirmed(pool.id):
            self._remark.add(pool.space)

    def _drop_pool(self, pool: Pool) -> None:
        self._view.forget(pool)
        old = self._stored(pool.id)
        if old is None:
            raise Broken(f"pool {pool.name} cannot be dropped: it is not there")
        self._free.strike(old)
        if self._view.is_unconfirmed(pool.id):
            self._remark.add(pool.space)
        self._execute(_DROP_POOL, (pool.id,))
        self._view.catalogue.forget(pool.id)

    def _stored(self, pool_id: int) -> StoredPool | None:
        row = self._connection.execute(st.POOL_BY_ID, (pool_id,)).fetchone()
        return None if row is None else self._view.stored(*row)
