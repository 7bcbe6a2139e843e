"""Owns the stored outcomes: what answers a command that comes again under its op id, and how long that is kept.

All bounds count in log time and entries, so that every member keeps and forgets the same.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from sqlalchemy import func, literal_column, select

from ipamd.core.entries import Item
from ipamd.core.outcomes import Code, Outcome, Refused, decode_outcome, encode_outcome
from ipamd.storage.compiled import insert, sql, value
from ipamd.storage.tables import ops

MAX_KEYED: Final = 1_000_000
"""How many outcomes are kept under callers' idempotency keys at most; the oldest go first."""

_FIND: Final = sql(select(ops.c.fingerprint, ops.c.outcome).where(ops.c.op == value("op")))
_INSERT: Final = insert(ops)
_is_keyed = ops.c.keyed == literal_column("1")
_COUNT_KEYED: Final = sql(select(func.count()).select_from(ops).where(_is_keyed))
_DROP_EXPIRED: Final = sql(
    ops.delete()
    .where(
        ops.c.id.in_(
            select(ops.c.id)
            .where(ops.c.expires_log_ms <= value("now"))
            .order_by(ops.c.expires_log_ms, ops.c.id)
            .limit(value("limit"))
        )
    )
    .returning(ops.c.keyed)
)
_DROP_OLDEST_KEYED: Final = sql(
    ops.delete().where(ops.c.id.in_(select(ops.c.id).where(_is_keyed).order_by(ops.c.id).limit(value("limit"))))
)


class Ops:
    """The stored outcomes, over the writing connection."""

    def __init__(self, connection: sqlite3.Connection, max_keyed: int) -> None:
        self._run = connection.cursor().execute
        self._max_keyed = max_keyed
        self._keyed: int = self._run(_COUNT_KEYED).fetchone()[0]

    def known(self, item: Item) -> Outcome | None:
        """What the command was answered the first time; None: it is new."""
        row = self._run(_FIND, (item.op,)).fetchone()
        if row is None:
            return None
        if row[0] != item.fingerprint:
            return Refused(Code.IDEMPOTENCY_CONFLICT, "the idempotency key was used for another request before")
        return decode_outcome(row[1])

    def keep(self, item: Item, outcome: Outcome, index: int, until_log_ms: int) -> None:
        """Store the outcome of an item until a time on the log's clock."""
        keyed = int(bool(item.fingerprint))
        self._run(_INSERT, (None, item.op, item.fingerprint, index, until_log_ms, keyed, encode_outcome(outcome)))
        self._keyed += keyed

    def drop_expired(self, now_log_ms: int, limit: int) -> None:
        """Drop up to `limit` outcomes that are due."""
        self._keyed -= sum(keyed for (keyed,) in self._run(_DROP_EXPIRED, (now_log_ms, limit)))

    def drop_excess(self, limit: int) -> None:
        """Drop up to `limit` of the oldest keyed outcomes, as far as there are too many."""
        over = min(limit, self._keyed - self._max_keyed)
        if over > 0:
            self._keyed -= self._run(_DROP_OLDEST_KEYED, (over,)).rowcount
