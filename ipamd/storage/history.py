"""Owns the history of an address: who held it and when, read off its events from the newest to the oldest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from sqlalchemy import ColumnElement, literal_column, select

from ipamd.core.addresses import Address, to_blob
from ipamd.core.imports import known_ifname
from ipamd.core.model import Event, EventKind
from ipamd.core.ports import HistoryRow
from ipamd.storage.compiled import LARGEST, sql, value
from ipamd.storage.rows import to_event
from ipamd.storage.tables import events
from ipamd.storage.view import SqliteView

_ENDS: Final = (EventKind.RELEASED, EventKind.MOVED)
_OF_HOLDINGS: Final = (EventKind.BOUND, EventKind.HELD, EventKind.REBOUND, EventKind.CLAIMED, *_ENDS)


def _one_of(kinds: tuple[EventKind, ...]) -> ColumnElement[bool]:
    return events.c.kind.in_([literal_column(f"'{kind.value}'") for kind in kinds])


_of_address = (events.c.space == value("space")) & (events.c.address == value("address"))
_UP_TO: Final = sql(
    events.select().where(_of_address, events.c.id <= value("last"), _one_of(_OF_HOLDINGS)).order_by(events.c.id.desc())
)
_END_FROM: Final = sql(
    select(events.c.id)
    .where(_of_address, events.c.id >= value("from"), _one_of(_ENDS))
    .order_by(events.c.id)
    .limit(value("one"))
)
_OLDEST: Final = sql(select(events.c.id, events.c.at_ms).order_by(events.c.id).limit(value("one")))
_TIME: Final = sql(select(events.c.at_ms).where(events.c.id == value("id")))


def read_history(
    view: SqliteView, space: str, address: Address, before_index: int | None, limit: int
) -> list[HistoryRow]:
    """The holdings of an address that began below an index, newest first."""
    key, before = (space, to_blob(address)), LARGEST if before_index is None else min(before_index, LARGEST)
    end = view.connection.execute(_END_FROM, (*key, before, 1)).fetchone()
    found = map(to_event, view.connection.execute(_UP_TO, (*key, end[0] if end else LARGEST)))
    rows = _rows(found, view, space, address)
    return list(islice((row for row in rows if row.from_index < before), limit))


def read_holding_at(view: SqliteView, space: str, address: Address, at_ms: int) -> HistoryRow | None:
    """The holding of an address at a moment, as far as events are kept; None: nobody had it."""
    index = _newest_at(view, at_ms)
    row = next(iter(read_history(view, space, address, index + 1, 1)), None)
    return row if row is not None and (row.to_index is None or row.to_index > index) else None


def events_complete_since(view: SqliteView, wall_ms: int) -> int | None:
    """Since when every event is kept (`wall_ms`: now, as the state has it); None: since the first there ever was."""
    if view.last_event == 0:
        return None
    oldest = view.connection.execute(_OLDEST, (1,)).fetchone()
    if oldest is None:
        return wall_ms
    return None if oldest[0] == 1 else int(oldest[1])


def _newest_at(view: SqliteView, at_ms: int) -> int:
    """The index of the newest event of a moment or before; one below the oldest that is kept if all are younger.

    Indexes have no gaps, and times never fall as they rise: some twenty look-ups find it among millions.
    """
    oldest = view.connection.execute(_OLDEST, (1,)).fetchone()
    low, high = oldest[0] - 1 if oldest else view.last_event, view.last_event
    while low < high:
        middle = (low + high + 1) // 2
        if view.connection.execute(_TIME, (middle,)).fetchone()[0] <= at_ms:
            low = middle
        else:
            high = middle - 1
    return int(low)


@dataclass(slots=True)
class _Holding:
    """A holding that is read from its end on: its newest event knows best whose it was."""

    end: Event | None
    newest: Event
    first: Event
    node: str | None

    def begins_elsewhere(self, older: Event) -> bool:
        """Whether it was held before for the same pod, but not bound where it is from `first` on.

        A restored pod is rebound to the node that reports it, wherever it was; else what is rebound stays on its node,
        which only an import left open.
        """
        if older.node == self.first.node:
            return False
        if self.first.kind is EventKind.REBOUND:
            return older.node is not None or older.kind is EventKind.HELD
        return self.first.kind is EventKind.BOUND

    def row(self) -> HistoryRow:
        return HistoryRow(
            self.newest.pool or "",
            self.newest.pod_ref or "",
            self.newest.ifname or self.first.ifname or "",
            self.node,
            self.first.at_ms,
            self.end.at_ms if self.end else None,
            self.first.index,
            self.end.index if self.end else None,
        )


def _rows(found: Iterator[Event], view: SqliteView, space: str, address: Address) -> Iterator[HistoryRow]:
    """The holdings that some events tell; the one that lasts has the names of now."""
    is_told = False
    for holding, is_whole in _holdings(found):
        is_told = True
        row = holding.row() if is_whole else _since_the_oldest(holding.row(), view)
        yield row if holding.end else _as_of_now(row, view, space, address)
    if not is_told:
        yield from _holder_without_events(view, space, address)


def _holdings(found: Iterator[Event]) -> Iterator[tuple[_Holding, bool]]:
    """Each holding, and whether its beginning is among the events. A move ends it on one node, and begins another."""
    holding: _Holding | None = None
    for event in found:
        if event.kind is EventKind.RELEASED:
            holding = _Holding(event, event, event, event.node)
            continue
        if holding is None:
            holding = _Holding(None, event, event, event.node)
        elif holding.begins_elsewhere(event):
            yield holding, True
            holding = _Holding(holding.first, holding.newest, event, event.node)
        holding.first, holding.node = event, holding.node or event.node
        if event.begins:
            yield holding, True
            holding = None
        elif event.kind is EventKind.MOVED:
            yield holding, True
            holding = _Holding(event, event, event, None)
    if holding is not None:
        yield holding, False


def _since_the_oldest(row: HistoryRow, view: SqliteView) -> HistoryRow:
    """A holding that began before the oldest event that is kept."""
    oldest = view.connection.execute(_OLDEST, (1,)).fetchone()
    return row._replace(from_ms=oldest[1], from_index=0)


def _as_of_now(row: HistoryRow, view: SqliteView, space: str, address: Address) -> HistoryRow:
    """A holding that lasts, with the names of now: a node that was renamed, a pod that was."""
    for now in _holder_without_events(view, space, address):
        return now._replace(node=now.node or row.node, from_ms=row.from_ms, from_index=row.from_index)
    return row


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
