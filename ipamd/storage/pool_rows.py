"""Owns the rows of a pool: its definition as columns, its ranges and their excludes in tables of their own."""

from __future__ import annotations

import json
import sqlite3
from typing import NamedTuple

from ipamd.core.addresses import Address, Network, parse_address, parse_network, to_blob
from ipamd.core.intervals import Span
from ipamd.core.model import Dns, Pool, PoolDefinition, Range, Route, Strategy
from ipamd.storage.compiled import insert, sql, value
from ipamd.storage.rows import json_text
from ipamd.storage.tables import Row, excludes, pools, ranges

POOL = sql(pools.select().where(pools.c.id == value("id")))
RANGES = sql(ranges.select().where(ranges.c.pool_id == value("pool")).order_by(ranges.c.position, ranges.c.ord))
EXCLUDES = sql(excludes.select().where(excludes.c.range_id == value("range")).order_by(excludes.c.ord))
INSERT_RANGE = insert(ranges)
INSERT_EXCLUDE = insert(excludes)


class StoredPool(NamedTuple):
    """A pool with what only the store knows: its revision, and the ids of its ranges by position and order."""

    pool: Pool
    revision: int
    range_ids: tuple[tuple[int, ...], ...]


def read_pool(connection: sqlite3.Connection, pool_id: int) -> StoredPool:
    """A pool that is there, from its rows."""
    row = connection.execute(POOL, (pool_id,)).fetchone()
    sets: list[list[Range]] = []
    ids: list[list[int]] = []
    for one in connection.execute(RANGES, (pool_id,)).fetchall():
        if one[2] == len(sets):
            sets.append([])
            ids.append([])
        sets[-1].append(_to_range(one, connection.execute(EXCLUDES, one[:1]).fetchall()))
        ids[-1].append(one[0])
    pool = Pool(row[0], _to_definition(row, tuple(map(tuple, sets))), row[14])
    return StoredPool(pool, row[1], tuple(map(tuple, ids)))


def pool_row(pool: Pool, revision: int) -> Row:
    """The row of a pool, without its ranges."""
    it = pool.definition
    routes = [[str(route.dst), None if route.gw is None else str(route.gw)] for route in it.routes]
    dns = [it.dns.nameservers, it.dns.domain, it.dns.search, it.dns.options]
    return (
        pool.id,
        revision,
        it.name,
        it.space,
        json_text(routes),
        json_text(dns),
        it.strategy.value,
        it.cooldown_s,
        it.cooldown_min_s,
        it.hold_s,
        it.reclaim,
        int(it.allow_overlap),
        json_text(it.labels),
        int(it.inline),
        pool.created_ms,
    )


def write_ranges(connection: sqlite3.Connection, pool: Pool) -> tuple[tuple[int, ...], ...]:
    """Write the ranges of a pool that has none yet; their ids."""
    return tuple(
        tuple(_write_range(connection, (pool.id, position, order), one) for order, one in enumerate(inner))
        for position, inner in enumerate(pool.sets)
    )


def _write_range(connection: sqlite3.Connection, place: tuple[int, int, int], it: Range) -> int:
    subnet = to_blob(Address(it.family, it.subnet.value))
    bounds = [_blob(it.family, one) for one in (it.first, it.last, it.range_start, it.range_end, it.gateway)]
    range_id = connection.execute(INSERT_RANGE, (None, *place, subnet, it.subnet.prefix, *bounds)).lastrowid or 0
    for order, span in enumerate(it.excludes):
        bytes_ = (_blob(it.family, span.first), _blob(it.family, span.last))
        connection.execute(INSERT_EXCLUDE, (range_id, order, *bytes_))
    return range_id


def _to_range(row: Row, exclude_rows: list[Row]) -> Range:
    subnet = Network(4 if len(row[4]) == 4 else 6, int.from_bytes(row[4], "big"), row[5])
    first, last = int.from_bytes(row[6], "big"), int.from_bytes(row[7], "big")
    holes = tuple(Span(int.from_bytes(one[2], "big"), int.from_bytes(one[3], "big")) for one in exclude_rows)
    return Range(subnet, first, last, _number(row[8]), _number(row[9]), holes, _number(row[10]))


def _to_definition(row: Row, sets: tuple[tuple[Range, ...], ...]) -> PoolDefinition:
    return PoolDefinition(
        name=row[2],
        sets=sets,
        space=row[3],
        routes=tuple(_to_route(*one) for one in json.loads(row[4])),
        dns=_to_dns(*json.loads(row[5])),
        strategy=Strategy(row[6]),
        cooldown_s=row[7],
        cooldown_min_s=row[8],
        hold_s=row[9],
        reclaim=row[10],
        allow_overlap=bool(row[11]),
        labels=tuple((key, text) for key, text in json.loads(row[12])),
        inline=bool(row[13]),
    )


def _to_route(dst: str, gw: str | None) -> Route:
    return Route(parse_network(dst), None if gw is None else parse_address(gw))


def _to_dns(nameservers: list[str], domain: str, search: list[str], options: list[str]) -> Dns:
    return Dns(tuple(nameservers), domain, tuple(search), tuple(options))


def _blob(family: int, number: int | None) -> bytes | None:
    return None if number is None else to_blob(Address(family, number))


def _number(blob: bytes | None) -> int | None:
    return None if blob is None else int.from_bytes(blob, "big")
