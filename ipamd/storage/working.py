"""Owns the View that the state machine decides from: what every ADD asks for and what changes seldom is kept in memory.

Nobody else writes, so what was read once stays true until the writer says that it wrote records of that kind. Whatever
is rolled back takes this view with it.
"""

# ruff: noqa: D102 - core.ports.View says what each method is

from __future__ import annotations

import sqlite3
from typing import Any, Final

from ipamd.core.changes import Record
from ipamd.core.model import Boot, GenerationFloor, Node, Pool, Settings
from ipamd.core.restored import Restored
from ipamd.storage.catalogue import Catalogue
from ipamd.storage.fronts import Fronts
from ipamd.storage.view import SqliteView

KEPT: Final = frozenset({Pool, GenerationFloor, Node, Boot, Settings, Restored})
"""The kinds of records of which anything is kept."""

_MOST: Final = 20_000
"""How many nodes and boots are kept at most."""


class WorkingView(SqliteView):
    """The state as the writer's own connection sees it."""

    def __init__(self, connection: sqlite3.Connection, catalogue: Catalogue, last_id: int, last_event: int) -> None:
        super().__init__(connection, catalogue, last_id, last_event)
        self.fronts = Fronts()
        self._pools: dict[str, Pool] = {}
        self._floors: dict[int, int] = {}
        self._nodes: dict[str, Node] = {}
        self._boots: dict[tuple[str, str], Boot] = {}
        self._restored: tuple[Restored | None] | None = None
        """What there is; None: not asked for yet."""

    def forget(self, record: Record) -> None:
        """A record of one of the kinds in KEPT was written or dropped."""
        if isinstance(record, Node):  # many report all the time: one does not cost the others their places
            self._nodes.pop(record.name, None)
        elif isinstance(record, Boot):
            self._boots.pop((record.node, record.boot_id), None)
        elif isinstance(record, GenerationFloor):
            self._floors.pop(record.pool_id, None)
        elif isinstance(record, Restored):
            self._restored = None
        elif isinstance(record, Pool):  # perhaps under another name; its floor goes with it
            self._pools.clear()
            self._floors.clear()
        elif isinstance(record, Settings):
            self.forget_settings()

    def pool(self, name: str) -> Pool | None:
        found = self._pools.get(name)
        if found is None and (found := super().pool(name)) is not None:
            self._pools[name] = found
        return found

    def generation_floor(self, pool_id: int) -> int:
        found = self._floors.get(pool_id)
        if found is None:
            found = self._floors[pool_id] = super().generation_floor(pool_id)
        return found

    def restored(self) -> Restored | None:
        if self._restored is None:
            self._restored = (super().restored(),)
        return self._restored[0]

    def node(self, name: str) -> Node | None:
        found = self._nodes.get(name)
        if found is None and (found := super().node(name)) is not None:
            _keep(self._nodes, name, found)
        return found

    def boot(self, node: str, boot_id: str) -> Boot | None:
        found = self._boots.get((node, boot_id))
        if found is None and (found := super().boot(node, boot_id)) is not None:
            _keep(self._boots, (node, boot_id), found)
        return found

    def next_free(self, pool: Pool, position: int, order: int, first: int, last: int) -> int | None:
        stored = self.catalogue.peek(pool.id)
        if stored is None or stored.pool is not pool or first > last:
            return super().next_free(pool, position, order, first, last)
        range_id = stored.range_ids[position][order]
        known = self.fronts.next_free(range_id, first)
        if known is not None:
            return known if known <= last else None
        found = super().next_free(pool, position, order, first, last)
        if found is not None:
            self.fronts.found(range_id, first, found)
        return found


def _keep(kept: dict[Any, Any], key: object, record: object) -> None:
    if len(kept) >= _MOST:
        kept.clear()
    kept[key] = record
