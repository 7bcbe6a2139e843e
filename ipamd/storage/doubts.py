"""Owns counting the bound addresses of a pool whose container may be gone: suspect ones, and those of lost nodes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

from sqlalchemy import ColumnElement, func, literal_column, select

from ipamd.core.addresses import Address, to_blob
from ipamd.core.model import Pool
from ipamd.core.ports import Doubt
from ipamd.storage.compiled import sql, value
from ipamd.storage.tables import addresses, attachments, nodes
from ipamd.storage.usage import usable_spans

_held = attachments.join(addresses, addresses.c.attachment_id == attachments.c.id)


def _in_span() -> tuple[ColumnElement[bool], ...]:
    address = addresses.c.address
    return (
        attachments.c.pool_id == value("pool"),
        address >= value("first"),
        address <= value("last"),
        func.length(address) == value("size"),
    )


_LOST: Final = sql(
    select(nodes.c.name, nodes.c.silent_since_ms, func.count())
    .select_from(nodes.join(_held, attachments.c.node == nodes.c.name))
    .where(nodes.c.lost_log_ms.is_not(None), *_in_span())
    .group_by(nodes.c.name)
)
_SUSPECT: Final = sql(
    select(attachments.c.node, func.count())
    .select_from(_held.join(nodes, nodes.c.name == attachments.c.node))
    .where(attachments.c.suspect == literal_column("1"), nodes.c.lost_log_ms.is_(None), *_in_span())
    .group_by(attachments.c.node)
)


def doubts_of(connection: sqlite3.Connection, pool: Pool) -> list[Doubt]:
    """By family and node; an address that is suspect on a lost node counts as lost."""
    found: dict[tuple[int, str], Doubt] = {}
    for doubt in _each(connection, pool):
        key = (doubt.family, doubt.node)
        old = found.get(key)
        found[key] = (
            doubt if old is None else old._replace(suspect=old.suspect + doubt.suspect, lost=old.lost + doubt.lost)
        )
    return [found[key] for key in sorted(found)]


def _each(connection: sqlite3.Connection, pool: Pool) -> Iterator[Doubt]:
    for family in sorted({one.family for inner in pool.sets for one in inner}):
        for span in usable_spans(pool, family):
            first, last = to_blob(Address(family, span.first)), to_blob(Address(family, span.last))
            key = (pool.id, first, last, len(first))
            for node, since_ms, count in connection.execute(_LOST, key):
                yield Doubt(family, node, 0, count, since_ms)
            for node, count in connection.execute(_SUSPECT, key):
                yield Doubt(family, node, count, 0, None)
