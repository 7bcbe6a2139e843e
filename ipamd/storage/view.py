"""Owns the View over SQLite: what decisions read, each by one look-up of an index."""

# ruff: noqa: D102 - core.ports.View says what each method is

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ipamd.core.addresses import Address, Network, to_blob
from ipamd.core.imports import StagedPart
from ipamd.core.model import (
    AssignedAddress,
    Attachment,
    Boot,
    Cluster,
    Cooling,
    Cursor,
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
from ipamd.core.restored import Disputed, Restored
from ipamd.storage import statements as st
from ipamd.storage.catalogue import Catalogue
from ipamd.storage.pool_rows import StoredPool
from ipamd.storage.rows import (
    to_assigned,
    to_attachment,
    to_boot,
    to_cluster,
    to_cooling,
    to_cursor,
    to_disputed,
    to_member,
    to_node,
    to_part,
    to_quarantine,
    to_reservation,
    to_restored,
    to_settings,
    to_sighting,
    to_silence,
    to_token,
    to_tombstone,
)
from ipamd.storage.spans import next_free, next_unoccupied
from ipamd.storage.tables import Row

T = TypeVar("T")

_DEFAULTS = Settings()


class SqliteView:
    """The state as one connection sees it: core.ports.View."""

    def __init__(self, connection: sqlite3.Connection, catalogue: Catalogue, last_id: int, last_event: int) -> None:
        self.connection = connection
        self.catalogue = catalogue
        self.last_id = last_id
        self.last_event = last_event
        self._run = connection.execute
        self._ask = connection.cursor().execute
        """For what is read at once: the cursor is used again by the next."""

        self._settings: Settings | None = None

    def cluster(self) -> Cluster | None:
        row = self._run(st.CLUSTER).fetchone()
        return None if row is None else to_cluster(row)

    def cluster_id(self) -> str | None:
        cluster = self.cluster()
        return None if cluster is None else cluster.id

    def members(self) -> Sequence[Member]:
        return self._all(to_member, st.MEMBERS)

    def settings(self) -> Settings:
        if self._settings is None:
            self._settings = self._one(to_settings, st.SETTINGS) or _DEFAULTS
        return self._settings

    def forget_settings(self) -> None:
        """Read the settings anew at the next question: they were written."""
        self._settings = None

    def pool(self, name: str) -> Pool | None:
        return self._pool(st.POOL_BY_NAME, name)

    def pool_by_id(self, pool_id: int) -> Pool | None:
        return self._pool(st.POOL_BY_ID, pool_id)

    def pools_of_space(self, space: str) -> Sequence[Pool]:
        return [self.stored(*row).pool for row in self._run(st.POOLS_OF_SPACE, (space,)).fetchall()]

    def pools_on(self, space: str, subnet: Network) -> Sequence[Pool]:
        place = (to_blob(Address(subnet.family, subnet.value)), subnet.prefix, space)
        return [self.stored(*row).pool for row in self._run(st.POOLS_ON, place).fetchall()]

    def stored(self, pool_id: int, revision: int) -> StoredPool:
        """A pool with the ids of its ranges."""
        return self.catalogue.get(self.connection, pool_id, revision)

    def range_id(self, pool: Pool, position: int, order: int) -> int:
        """The id of the row of `pool.sets[position][order]`. Raises LookupError: the state does not have the pool."""
        found = self._range_id(pool, position, order)
        if found is None:
            raise LookupError(f"pool {pool.name} has no ranges here")
        return found

    def _range_id(self, pool: Pool, position: int, order: int) -> int | None:
        stored = self.catalogue.peek(pool.id)
        if stored is None or stored.pool is not pool:
            row = self._run(st.POOL_BY_ID, (pool.id,)).fetchone()
            if row is None:
                return None
            stored = self.stored(*row)
        return stored.range_ids[position][order]

    def reservation(self, pool_id: int, pod_ref: str) -> Reservation | None:
        return self._one(to_reservation, st.RESERVATION, pool_id, pod_ref)

    def reservation_by_id(self, reservation_id: int) -> Reservation | None:
        return self._one(to_reservation, st.RESERVATION_BY_ID, reservation_id)

    def reservations_named(self, prefix: str) -> Sequence[Reservation]:
        return self._all(to_reservation, st.RESERVATIONS_NAMED, prefix, _behind(prefix))

    def cooling_named(self, prefix: str) -> Sequence[Cooling]:
        return self._all(to_cooling, st.COOLING_NAMED, prefix, _behind(prefix))

    def attachment_by_id(self, attachment_id: int) -> Attachment | None:
        return self._one(to_attachment, st.ATTACHMENT_BY_ID, attachment_id)

    def attachments(self, reservation_id: int) -> Sequence[Attachment]:
        return self._all(to_attachment, st.ATTACHMENTS, reservation_id)

    def attachments_of_container(self, container_id: str, ifname: str) -> Sequence[Attachment]:
        return self._all(to_attachment, st.ATTACHMENTS_OF_CONTAINER, container_id, ifname)

    def attachments_of_node(self, node: str, after_id: int, limit: int) -> Sequence[Attachment]:
        return self._all(to_attachment, st.ATTACHMENTS_OF_NODE, node, after_id, limit)

    def attachments_of_pool(self, pool_id: int) -> Iterable[Attachment]:
        return map(to_attachment, self._run(st.ATTACHMENTS_OF_POOL, (pool_id,)))

    def assigned(self, attachment_id: int) -> Sequence[AssignedAddress]:
        return self._all(to_assigned, st.ASSIGNED, attachment_id)

    def assigned_of_pool(self, pool_id: int) -> Iterable[AssignedAddress]:
        return map(to_assigned, self._run(st.ASSIGNED_OF_POOL, (pool_id,)))

    def holder(self, space: str, address: Address) -> AssignedAddress | None:
        return self._one(to_assigned, st.HOLDER, space, to_blob(address))

    def cooling(self, space: str, address: Address) -> Cooling | None:
        return self._one(to_cooling, st.COOLING, space, to_blob(address))

    def cooling_of_pod(self, pool_id: int, pod_ref: str, ifname: str) -> Sequence[Cooling]:
        found = self._all(to_cooling, st.COOLING_OF_POD, pool_id, pod_ref, ifname)
        return sorted(found, key=lambda one: one.address) if len(found) > 1 else found  # seldom worth SQLite's sorter

    def oldest_cooling(self, space: str, first: Address, last: Address, now_log_ms: int) -> Cooling | None:
        bounds = (to_blob(first), to_blob(last))
        found = self._one(
            to_cooling, st.OLDEST_COOLING_OF_FEW, space, st.FEW_COOLING, *bounds, len(bounds[0]), now_log_ms
        )
        # What cools longest in the space is seldom elsewhere; if it is, look through the interval instead.
        return found or self._one(to_cooling, st.OLDEST_COOLING, space, *bounds, len(bounds[0]), now_log_ms)

    def quarantine(self, space: str, address: Address) -> Quarantine | None:
        return self._one(to_quarantine, st.QUARANTINE, space, to_blob(address))

    def next_free(self, pool: Pool, position: int, order: int, first: int, last: int) -> int | None:
        if first > last:
            return None
        one, range_id = pool.sets[position][order], self._range_id(pool, position, order)
        if range_id is None:
            return next_unoccupied(self.connection, pool.space, one, first, last)
        return next_free(self.connection, range_id, one.family, first, last)

    def cursor(self, pool_id: int, position: int) -> Cursor | None:
        return self._one(to_cursor, st.CURSOR, pool_id, position)

    def generation_floor(self, pool_id: int) -> int:
        row = self._ask(st.GENERATION_FLOOR, (pool_id,)).fetchone()
        return 0 if row is None else int(row[1])

    def tombstone(self, node: str, cni_network: str, container_id: str, ifname: str) -> Tombstone | None:
        return self._one(to_tombstone, st.TOMBSTONE, node, cni_network, container_id, ifname)

    def node(self, name: str) -> Node | None:
        return self._one(to_node, st.NODE, name)

    def known_nodes(self) -> Iterable[Node]:
        return self._all(to_node, st.NODES)

    def sighting(self, attachment_id: int) -> Sighting | None:
        return self._one(to_sighting, st.SIGHTING, attachment_id)

    def mass_silence(self) -> MassSilence | None:
        return self._one(to_silence, st.MASS_SILENCE)

    def restored(self) -> Restored | None:
        return self._one(to_restored, st.RESTORED)

    def is_unconfirmed(self, pool_id: int) -> bool:
        return self._ask(st.IS_UNCONFIRMED, (pool_id,)).fetchone() is not None

    def unconfirmed_of_space(self, space: str) -> Sequence[Pool]:
        return [self.stored(*row).pool for row in self._run(st.UNCONFIRMED_OF_SPACE, (space,)).fetchall()]

    def unconfirmed(self) -> Sequence[Pool]:
        return [self.stored(*row).pool for row in self._run(st.UNCONFIRMED).fetchall()]

    def unconfirmed_around(self, address: Address) -> Sequence[Pool]:
        blob = to_blob(address)
        rows = self._run(st.UNCONFIRMED_AT, (blob, blob, len(blob))).fetchall()
        return [self.stored(*row).pool for row in rows]

    def disputed(self, space: str, address: Address) -> Disputed | None:
        return self._one(to_disputed, st.DISPUTED, space, to_blob(address))

    def disputes(self) -> Sequence[Disputed]:
        return self._all(to_disputed, st.DISPUTES)

    def boot(self, node: str, boot_id: str) -> Boot | None:
        return self._one(to_boot, st.BOOT, node, boot_id)

    def boots(self, node: str) -> Sequence[Boot]:
        return self._all(to_boot, st.BOOTS, node)

    def tombstones_of_node(self, node: str) -> Iterable[Tombstone]:
        return self._all(to_tombstone, st.TOMBSTONES_OF_NODE, node)

    def token(self, token_id: str) -> Token | None:
        return self._one(to_token, st.TOKEN, token_id)

    def token_of_digest(self, digest: bytes) -> Token | None:
        return self._one(to_token, st.TOKEN_OF_DIGEST, digest)

    def tokens_of_node(self, node: str) -> Sequence[Token]:
        return self._all(to_token, st.TOKENS_OF_NODE, node)

    def ended_tokens(self, until_ms: int, limit: int) -> Sequence[Token]:
        return self._all(to_token, st.ENDED_TOKENS, until_ms, limit)

    def due_holds(self, now_log_ms: int, limit: int) -> Sequence[Attachment]:
        return self._all(to_attachment, st.DUE_HOLDS, now_log_ms, limit)

    def due_cooling(self, now_log_ms: int, limit: int) -> Sequence[Cooling]:
        return self._all(to_cooling, st.DUE_COOLING, now_log_ms, limit)

    def due_quarantines(self, now_log_ms: int, limit: int) -> Sequence[Quarantine]:
        return self._all(to_quarantine, st.DUE_QUARANTINES, now_log_ms, limit)

    def due_tombstones(self, now_log_ms: int, limit: int) -> Sequence[Tombstone]:
        return self._all(to_tombstone, st.DUE_TOMBSTONES, now_log_ms, limit)

    def staged(self, import_id: str) -> Sequence[StagedPart]:
        return self._all(to_part, st.STAGED, import_id)

    def due_parts(self, now_log_ms: int, limit: int) -> Sequence[StagedPart]:
        return self._all(to_part, st.DUE_PARTS, now_log_ms, limit)

    def _pool(self, statement: str, key: str | int) -> Pool | None:
        row = self._ask(statement, (key,)).fetchone()
        return None if row is None else self.stored(*row).pool

    def _one(self, make: Callable[[Row], T], statement: str, *key: Any) -> T | None:
        row = self._ask(statement, key).fetchone()
        return None if row is None else make(row)

    def _all(self, make: Callable[[Row], T], statement: str, *key: Any) -> list[T]:
        return [make(row) for row in self._ask(statement, key)]


def _behind(prefix: str) -> str:
    """The first text in the order of bytes that is behind all that begin with an ASCII text."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
