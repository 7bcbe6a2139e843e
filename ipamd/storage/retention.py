"""Owns how long events stay: by age on the wall clock of the log, and by number."""

from __future__ import annotations

import sqlite3
from typing import Final

from sqlalchemy import func, select

from ipamd.core.model import Settings
from ipamd.storage.compiled import sql, value
from ipamd.storage.tables import events

_DAY_MS: Final = 86_400_000

_OLDEST: Final = sql(select(events.c.id, events.c.at_ms).order_by(events.c.id).limit(value("one")))
_some = select(events.c.at_ms).order_by(events.c.id).limit(value("limit")).subquery()
_COUNT_AGED: Final = sql(select(func.count()).select_from(_some).where(_some.c.at_ms < value("cutoff")))
_DROP: Final = sql(events.delete().where(events.c.id < value("first")))


class Retention:
    """Drops the oldest events, over the writing connection. Their times never fall, so age and index agree."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._run = connection.execute
        self._look()

    def prune(self, settings: Settings, wall_ms: int, last_event: int, limit: int) -> None:
        """Drop up to `limit` events that are too old or too many."""
        if self._oldest is None:
            self._look()
        if self._oldest is None:
            return
        first, at_ms = self._oldest
        cutoff = wall_ms - settings.events_days * _DAY_MS
        over = min(limit, last_event - first + 1 - settings.events_max)
        if at_ms < cutoff:
            over = max(over, self._run(_COUNT_AGED, (limit, cutoff)).fetchone()[0])
        if over > 0:
            self._run(_DROP, (first + over,))
            self._look()

    def _look(self) -> None:
        row = self._run(_OLDEST, (1,)).fetchone()
        self._oldest: tuple[int, int] | None = None if row is None else (row[0], row[1])
