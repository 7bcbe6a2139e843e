"""Owns the history of an address: who held it and when, read off its events from the newest to the oldest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from sqlalchemy import ColumnElement, literal_column

from ipamd.core.addresses import Address, to_blob
from ipamd.core.imports import known_ifname
from ipamd.core.model import Event, EventKind
from ipamd.core.ports import HistoryRow
from ipamd.storage.compiled import LARGEST, sql, value
from ipamd.storage.rows import to_event
from ipamd.storage.tables import events
from ipamd.storage.view import SqliteView

_BEGINS: Final = (EventKind.BOUND, EventKind.HELD, EventKind.REBOUND, EventKind.CLAIMED)
_ENDS: Final = (EventKind.RELEASED, EventKind.MOVED)


def _one_of(kinds: tuple[EventKind, ...]) -> ColumnElement[bool]:
    return events.c.kind.in_([literal_column(f"'{kind.value}'") for kind in kinds])


_of_address = (events.c.space == value("space")) & (events.c.address == value("address"))
_BEFORE: Final = sql(
    events.select()
    .where(_of_address, events.c.id < value("before"), _one_of(_BEGINS + _ENDS))
    .order_by(events.c.id.desc())
)
_FROM: Final = sql(
    events.select()
    .where(_of_address, events.c.id >= value("from"), _one_of(_BEGINS + _ENDS))
    .order_by(events.c.id)
    .limit(value("one"))
)
_END_FROM: Final = sql(
    events.select()
    .where(_of_address, events.c.id >= value("from"), _one_of(_ENDS))
    .order_by(events.c.id)
    .limit(value("one"))
)


def read_history(
    view: SqliteView, space: str, address: Address, before_index: int | None, limit: int
) -> list[HistoryRow]:
    """The holdings of an address that began below an index, newest first."""
    key, before = (space, to_blob(address)), LARGEST if before_index is None else min(before_index, LARGEST)
    ends = view.connection.execute(_END_FROM, (*key, before, 1)).fetchone()
    found = map(to_event, view.connection.execute(_BEFORE, (*key, before)))
    rows = list(islice(_holdings(found, to_event(ends) if ends else None), limit))
    if not rows and before > 0 and view.connection.execute(_FROM, (*key, before, 1)).fetchone() is None:
        return list(_holder_without_events(view, space, address))
    return rows


def _holdings(found: Iterator[Event], end: Event | None) -> Iterator[HistoryRow]:
    """A holding begins at its oldest event. A move ends it on one node and begins it on another.

    Whose it was is what its newest event says: what an import brought is not known at the beginning.
    """
    first: Event | None = None
    last: Event | None = None
    node: str | None = None
    for event in found:
        if event.kind is EventKind.RELEASED:
            if first is not None:
                yield _row(first, last or first, node, end)
            first, last, node, end = None, None, None, event
            continue
        first, last, node = event, last or event, node or event.node
        if event.kind is EventKind.MOVED:
            yield _row(first, last, node, end)
            first, last, node, end = None, None, None, event
    if first is not None:
        yield _row(first, last or first, node, end)


def _row(first: Event, last: Event, node: str | None, end: Event | None) -> HistoryRow:
    return HistoryRow(
        last.pool or "",
        last.pod_ref or "",
        last.ifname or first.ifname or "",
        node,
        first.at_ms,
        end.at_ms if end else None,
        first.index,
        end.index if end else None,
    )


def _holder_without_events(view: SqliteView, space: str, address: Address) -> Iterator[HistoryRow]:
    """Who holds an address since longer than events are kept: since when is known, at which index is not."""
    assigned = view.holder(space, address)
    attachment = assigned and view.attachment_by_id(assigned.attachment_id)
    reservation = attachment and view.reservation_by_id(attachment.reservation_id)
    pool = attachment and view.pool_by_id(attachment.pool_id)
    if attachment and reservation and pool:
        node = attachment.owner.node if attachment.owner else None
        yield HistoryRow(
            pool.name,
            reservation.pod_ref,
            known_ifname(attachment.ifname) or "",
            node,
            reservation.created_ms,
            None,
            0,
            None,
        )
