"""Owns what is free, as closed intervals for each range: split when an address is taken, joined when it comes back.

The invariant, which `ipamd doctor` recomputes: the spans of a range are what it gives, less what its space has
assigned, cooling, in quarantine or withheld; they are disjoint and do not touch. Every step is a few look-ups by key,
whatever the size of the range. Taking what is taken and giving back what is free changes nothing.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterator

from ipamd.core.addresses import Address, Network, host_mask, to_blob
from ipamd.core.intervals import Span, Spans, contains, intersect, normalise, subtract
from ipamd.core.model import Range
from ipamd.core.withheld import usable_of
from ipamd.storage import statements as st
from ipamd.storage.compiled import insert, sql, value
from ipamd.storage.fronts import Fronts
from ipamd.storage.pool_rows import StoredPool, read_pool
from ipamd.storage.tables import addresses, cooling, free_spans, quarantine

_this_range = free_spans.c.range_id == value("range")
_this_span = _this_range & (free_spans.c.last == value("last"))

AT_OR_AFTER = sql(
    free_spans.select()
    .with_only_columns(free_spans.c.first, free_spans.c.last)
    .where(_this_range, free_spans.c.last >= value("from"))
    .order_by(free_spans.c.last)
    .limit(value("one"))
)
"""The span around an address, or else the next one."""

ALL_OF = sql(
    free_spans.select()
    .with_only_columns(free_spans.c.first, free_spans.c.last)
    .where(_this_range)
    .order_by(free_spans.c.last)
)
INSERT = insert(free_spans)
DELETE = sql(free_spans.delete().where(_this_span))
DELETE_ALL = sql(free_spans.delete().where(_this_range))
SET_FIRST = sql(free_spans.update().values(first=value("new")).where(_this_span))
SET_LAST = sql(free_spans.update().values(last=value("new")).where(_this_span))

OCCUPIED = {
    table.name: sql(
        table.select()
        .with_only_columns(table.c.address)
        .where(table.c.space == value("space"), table.c.address >= value("first"), table.c.address <= value("last"))
        .order_by(table.c.address)
    )
    for table in (addresses, cooling, quarantine)
}
"""By table: the addresses of a space in an interval of bytes, in which the other family's may lie too."""


def next_free(connection: sqlite3.Connection, range_id: int, family: int, first: int, last: int) -> int | None:
    """The lowest free address of a range between two."""
    row = connection.execute(AT_OR_AFTER, (range_id, to_blob(Address(family, first)), 1)).fetchone()
    if row is None:
        return None
    found = max(first, int.from_bytes(row[0], "big"))
    return found if found <= last else None


def next_unoccupied(connection: sqlite3.Connection, space: str, one: Range, first: int, last: int) -> int | None:
    """The lowest address between two that a range gives and nothing occupies: for a pool that has no free spans yet."""
    withheld = read_withheld(connection, space, one)
    for span in subtract(intersect(one.usable, (Span(first, last),)), withheld):
        free = span.first
        for number in _occupied(connection, space, one.family, span):
            if number > free:
                break
            free = max(free, number + 1)
        if free <= span.last:
            return free
    return None


def read_spans(connection: sqlite3.Connection, range_id: int) -> Iterator[Span]:
    """The free spans of a range, ascending."""
    for first, last in connection.execute(ALL_OF, (range_id,)):
        yield Span(int.from_bytes(first, "big"), int.from_bytes(last, "big"))


def computed_spans(connection: sqlite3.Connection, space: str, one: Range) -> Spans:
    """What the free spans of a range have to be, from what occupies its space and what is withheld there."""
    return subtract(subtract(one.usable, read_withheld(connection, space, one)), occupied_spans(connection, space, one))


def read_withheld(connection: sqlite3.Connection, space: str, one: Range) -> Spans:
    """What is withheld between the bounds of a range, since pools around it are not confirmed after a restore."""
    if one.first > one.last:
        return ()
    last, first = to_blob(Address(one.family, one.last)), to_blob(Address(one.family, one.first))
    rows = connection.execute(st.UNCONFIRMED_AROUND, (space, last, first, len(first))).fetchall()
    return usable_of([read_pool(connection, pool_id).pool for pool_id, _ in rows], one.family)


def occupied_spans(connection: sqlite3.Connection, space: str, one: Range) -> Spans:
    """What is taken between the bounds of a range."""
    spans: list[Span] = []
    for number in _occupied(connection, space, one.family, Span(one.first, one.last)):
        if spans and number <= spans[-1].last + 1:
            spans[-1] = Span(spans[-1].first, number)
        else:
            spans.append(Span(number, number))
    return tuple(spans)


def _occupied(connection: sqlite3.Connection, space: str, family: int, span: Span) -> Iterator[int]:
    """What is taken in a span, ascending, read as far as it is asked for."""
    size = 4 if family == 4 else 16
    bounds = (space, to_blob(Address(family, span.first)), to_blob(Address(family, span.last)))
    tables = [connection.execute(statement, bounds) for statement in OCCUPIED.values()]
    return (int.from_bytes(blob, "big") for (blob,) in heapq.merge(*tables) if len(blob) == size)


class FreeSpans:
    """Keeps the free spans of all ranges. Finds the ranges that give an address by the few prefix lengths in use."""

    def __init__(self, connection: sqlite3.Connection, fronts: Fronts) -> None:
        self._run = connection.cursor().execute
        self._connection = connection
        self._fronts = fronts
        self._ranges: dict[tuple[str, Network], list[tuple[int, Range]]] = {}
        self._prefixes: dict[tuple[str, int], dict[int, int]] = {}
        self._withheld: dict[tuple[str, int], Spans] = {}

    def withhold(self, space: str, family: int, spans: Spans) -> Spans:
        """What is withheld in a space from now on, whatever became of it; what is so no longer, or only now.

        The pools that give any of that are to be rebuilt.
        """
        old = self._withheld.get((space, family), ())
        self._withheld[space, family] = spans
        return normalise((*subtract(old, spans), *subtract(spans, old)))

    def enlist(self, stored: StoredPool) -> None:
        """Learn of a pool's ranges."""
        for range_id, one in _ranges_of(stored):
            self._ranges.setdefault((stored.pool.space, one.subnet), []).append((range_id, one))
            prefixes = self._prefixes.setdefault((stored.pool.space, one.family), {})
            prefixes[one.subnet.prefix] = prefixes.get(one.subnet.prefix, 0) + 1

    def strike(self, stored: StoredPool) -> None:
        """Forget a pool's ranges; their rows go with them."""
        space = stored.pool.space
        for range_id, one in _ranges_of(stored):
            self._fronts.forget(range_id)
            there = self._ranges[space, one.subnet]
            there.remove((range_id, one))
            if not there:
                del self._ranges[space, one.subnet]
            prefixes = self._prefixes[space, one.family]
            prefixes[one.subnet.prefix] -= 1
            if not prefixes[one.subnet.prefix]:
                del prefixes[one.subnet.prefix]

    def rebuild(self, stored: StoredPool) -> None:
        """Write the spans of a pool's ranges anew, from what occupies its space."""
        for range_id, one in _ranges_of(stored):
            self._fronts.forget(range_id)
            self._run(DELETE_ALL, (range_id,))
            for span in computed_spans(self._connection, stored.pool.space, one):
                self._insert(range_id, one.family, span.first, span.last)

    def occupy(self, space: str, address: Address) -> None:
        """Take an address out of the free spans of every range that gives it."""
        for range_id in self._giving(space, address):
            self._take(range_id, address)

    def vacate(self, space: str, address: Address) -> None:
        """Give an address back to every range that gives it, unless it is withheld."""
        if contains(self._withheld.get((space, address.family), ()), address.value):
            return
        for range_id in self._giving(space, address):
            self._give(range_id, address)

    def _giving(self, space: str, address: Address) -> Iterator[int]:
        family, number = address
        for prefix in self._prefixes.get((space, family), ()):
            network = Network(family, number & ~host_mask(family, prefix), prefix)
            for range_id, one in self._ranges.get((space, network), ()):
                if one.gives(address):
                    yield range_id

    def _take(self, range_id: int, address: Address) -> None:
        family, number = address
        span = self._fronts.span_around(range_id, number) or self._span_around(range_id, address)
        if span is None:
            return
        first, last = span
        last_blob = to_blob(Address(family, last))
        if number == last:
            if number == first:
                self._run(DELETE, (range_id, last_blob))
            else:
                self._run(SET_LAST, (to_blob(Address(family, number - 1)), range_id, last_blob))
        else:
            self._run(SET_FIRST, (to_blob(Address(family, number + 1)), range_id, last_blob))
            if number != first:
                self._insert(range_id, family, first, number - 1)
        self._fronts.taken(range_id, number, last)

    def _span_around(self, range_id: int, address: Address) -> Span | None:
        blob = to_blob(address)
        found = self._run(AT_OR_AFTER, (range_id, blob, 1)).fetchone()
        if found is None or found[0] > blob:
            return None
        return Span(int.from_bytes(found[0], "big"), int.from_bytes(found[1], "big"))

    def _give(self, range_id: int, address: Address) -> None:
        self._fronts.forget(range_id)
        family, number = address
        blob = to_blob(address)
        before = blob if number == 0 else to_blob(Address(family, number - 1))
        spans = self._run(AT_OR_AFTER, (range_id, before, 2)).fetchall()
        left = next((span for span in spans if span[1] == before != blob), None)
        right = next((span for span in spans if span[1] >= blob), None)
        if right is not None and right[0] <= blob:
            return
        if right is not None and int.from_bytes(right[0], "big") == number + 1:
            if left is not None:
                self._run(DELETE, (range_id, before))
            self._run(SET_FIRST, (left[0] if left else blob, range_id, right[1]))
        elif left is not None:
            self._run(SET_LAST, (blob, range_id, before))
        else:
            self._run(INSERT, (range_id, blob, blob))

    def _insert(self, range_id: int, family: int, first: int, last: int) -> None:
        self._run(INSERT, (range_id, to_blob(Address(family, last)), to_blob(Address(family, first))))


def _ranges_of(stored: StoredPool) -> Iterator[tuple[int, Range]]:
    for ids, inner in zip(stored.range_ids, stored.pool.sets, strict=True):
        yield from zip(ids, inner, strict=True)
