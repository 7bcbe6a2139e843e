"""Owns the pools that were read once. A pool is many rows and changes seldom, and every ADD needs one.

An entry is good for one revision of one pool, which the reader takes from its own transaction, so that one catalogue
serves the writer and readers of any age. Ids are never given twice, so neither is a pair of id and revision - but for
what a rolled back transaction wrote, for which there is `clear`.
"""

from __future__ import annotations

import sqlite3

from ipamd.storage.pool_rows import StoredPool, read_pool


class Catalogue:
    """Pools by id. May be shared between threads."""

    def __init__(self) -> None:
        self._pools: dict[int, StoredPool] = {}

    def get(self, connection: sqlite3.Connection, pool_id: int, revision: int) -> StoredPool:
        """A pool that is there, at the revision that the connection's transaction sees."""
        stored = self._pools.get(pool_id)
        if stored is None or stored.revision != revision:
            stored = self._pools[pool_id] = read_pool(connection, pool_id)
        return stored

    def peek(self, pool_id: int) -> StoredPool | None:
        """A pool at whatever revision was seen last; None: not seen."""
        return self._pools.get(pool_id)

    def remember(self, stored: StoredPool) -> None:
        """Keep a pool that was just written."""
        self._pools[stored.pool.id] = stored

    def forget(self, pool_id: int) -> None:
        """Give up a pool that was dropped."""
        self._pools.pop(pool_id, None)

    def clear(self) -> None:
        """Give up all."""
        self._pools.clear()
