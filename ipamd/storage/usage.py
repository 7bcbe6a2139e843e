"""Owns the counts of a pool: how its usable addresses are spent, from ranges of indexes, never address by address."""

from __future__ import annotations

import sqlite3
from typing import Final

from sqlalchemy import ColumnElement, Table, func, literal_column, select

from ipamd.core.addresses import Address, to_blob
from ipamd.core.intervals import Span, Spans, count, intersect, normalise, subtract
from ipamd.core.model import Pool
from ipamd.core.ports import FamilyCounts
from ipamd.storage.compiled import sql, value
from ipamd.storage.tables import addresses, attachments, cooling, quarantine


def _between(table: Table) -> ColumnElement[bool]:
    """Of one family, between two addresses."""
    address = table.c.address
    return (address >= value("first")) & (address <= value("last")) & (func.length(address) == value("size"))


_TAKEN: Final = sql(
    select(func.count().filter(addresses.c.pool_id == value("pool")), func.count())
    .select_from(addresses)
    .where(addresses.c.space == value("space"), _between(addresses))
)
"""Addresses between two: those of a pool, and all."""

_HELD: Final = sql(
    select(func.count())
    .select_from(attachments.join(addresses, addresses.c.attachment_id == attachments.c.id))
    .where(attachments.c.pool_id == value("pool"), attachments.c.bound == literal_column("0"), _between(addresses))
)
_is_quarantined = (
    select(quarantine.c.address)
    .where(quarantine.c.space == cooling.c.space, quarantine.c.address == cooling.c.address)
    .exists()
)


def _is_also_in(other: Table, table: Table) -> ColumnElement[bool]:
    """Whether the address of a row is in another table too."""
    same = (other.c.space == table.c.space) & (other.c.address == table.c.address)
    return select(other.c.address).where(same).exists()


_COOLING: Final = sql(
    select(func.count())
    .select_from(cooling)
    .where(cooling.c.space == value("space"), _between(cooling), ~_is_also_in(quarantine, cooling))
)
"""What cools while in quarantine is not to be had even when nothing else is: it counts as quarantined."""

_QUARANTINED: Final = sql(
    select(func.count())
    .select_from(quarantine)
    .where(quarantine.c.space == value("space"), _between(quarantine), ~_is_also_in(addresses, quarantine))
)
"""Who holds a quarantined address keeps it: it counts as bound or held."""


def usable_spans(pool: Pool, family: int) -> Spans:
    """What the ranges of one family of a pool give, together."""
    ranges = [one for inner in pool.sets for one in inner if one.family == family]
    return normalise(span for one in ranges for span in one.usable)


def spent_counts(
    connection: sqlite3.Connection, pool: Pool, family: int, spans: Spans, withheld: Spans = ()
) -> FamilyCounts:
    """How the addresses of some spans, which the pool gives, are spent. What else would be free may be `withheld`."""
    open_counts = _spent(connection, pool, family, subtract(spans, withheld))
    if not withheld:
        return open_counts
    shut = _spent(connection, pool, family, intersect(spans, withheld))
    shut = shut._replace(withheld=shut.free, free=0)
    return FamilyCounts(*(one + other for one, other in zip(open_counts, shut, strict=True)))


def _spent(connection: sqlite3.Connection, pool: Pool, family: int, spans: Spans) -> FamilyCounts:
    bound = held = cool = quarantined = elsewhere = 0
    for span in spans:
        bounds = _bounds(family, span)
        mine, taken = connection.execute(_TAKEN, (pool.id, pool.space, *bounds)).fetchone()
        kept = _count(connection, _HELD, (pool.id, *bounds))
        bound, held, elsewhere = bound + mine - kept, held + kept, elsewhere + taken - mine
        cool += _count(connection, _COOLING, (pool.space, *bounds))
        quarantined += _count(connection, _QUARANTINED, (pool.space, *bounds))
    total = count(spans)
    free = total - bound - held - cool - quarantined - elsewhere
    return FamilyCounts(total, bound, held, cool, quarantined, withheld=0, elsewhere=elsewhere, free=free)


def _bounds(family: int, span: Span) -> tuple[bytes, bytes, int]:
    first, last = to_blob(Address(family, span.first)), to_blob(Address(family, span.last))
    return first, last, len(first)


def _count(connection: sqlite3.Connection, statement: str, key: tuple[object, ...]) -> int:
    return int(connection.execute(statement, key).fetchone()[0])
