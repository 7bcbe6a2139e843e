"""Owns the statements that decisions read with, compiled once. Parameters are positional, in the order of the text."""

from __future__ import annotations

from typing import Final

from sqlalchemy import ColumnElement, Table, func, literal_column, select, union_all

from ipamd.core.imports import OPEN
from ipamd.storage.compiled import sql, value
from ipamd.storage.tables import (
    addresses,
    attachments,
    boots,
    cluster,
    cooling,
    cursors,
    disputes,
    generation_floors,
    mass_silence,
    members,
    meta,
    nodes,
    ops,
    pools,
    quarantine,
    ranges,
    reservations,
    restored,
    settings,
    sightings,
    staged_parts,
    tokens,
    tombstones,
    unconfirmed,
)


def by_key(table: Table) -> str:
    """The row with a primary key."""
    return sql(table.select().where(*(column == value(column.name) for column in table.primary_key)))


def address_order(table: Table) -> tuple[ColumnElement[int], ColumnElement[bytes]]:
    """Addresses in the core's order: by family, then numerically."""
    return func.length(table.c.address), table.c.address


META: Final = sql(meta.select())
CLUSTER: Final = sql(cluster.select())
CLUSTER_ID: Final = sql(cluster.select().with_only_columns(cluster.c.cluster_id))
CLUSTER_LEVEL: Final = sql(cluster.select().with_only_columns(cluster.c.level))
POSITION: Final = sql(meta.select().with_only_columns(meta.c.applied_index, meta.c.applied_term))
MEMBERS: Final = sql(members.select().order_by(members.c.name))
SETTINGS: Final = sql(settings.select())

_pool = select(pools.c.id, pools.c.revision)
POOL_BY_NAME: Final = sql(_pool.where(pools.c.name == value("name")))
POOL_BY_ID: Final = sql(_pool.where(pools.c.id == value("id")))
_every_pool = select(pools.c.id)
POOLS_OF_SPACE: Final = sql(_pool.where(pools.c.space == value("space")).order_by(pools.c.name))

POOLS_ON: Final = sql(
    _pool.join(ranges, ranges.c.pool_id == pools.c.id)
    .where(ranges.c.subnet == value("subnet"), ranges.c.prefix == value("prefix"), pools.c.space == value("space"))
    .distinct()
    .order_by(pools.c.name)
)

RESERVATION: Final = sql(
    reservations.select().where(reservations.c.pool_id == value("pool"), reservations.c.pod_ref == value("pod"))
)
RESERVATION_BY_ID: Final = by_key(reservations)
RESERVATIONS_NAMED: Final = sql(
    reservations.select()
    .where(
        reservations.c.pool_id.in_(_every_pool),
        reservations.c.pod_ref >= value("first"),
        reservations.c.pod_ref < value("behind"),
    )
    .order_by(func.abs(reservations.c.id))  # abs(): or the planner walks all of them in that order
)

_attachment = attachments.select()
_open: ColumnElement[bool] = attachments.c.ifname.between(literal_column(f"'{OPEN}'"), literal_column(f"'{OPEN}~'"))
ATTACHMENT_BY_ID: Final = by_key(attachments)
ATTACHMENTS: Final = sql(
    _attachment.where(attachments.c.reservation_id == value("reservation")).order_by(attachments.c.ifname)
)
ATTACHMENTS_OF_CONTAINER: Final = sql(
    _attachment.where(
        attachments.c.container_id == value("container"),
        (attachments.c.ifname == value("ifname")) | _open,
    ).order_by(attachments.c.id)
)
ATTACHMENTS_OF_NODE: Final = sql(
    _attachment.where(attachments.c.node == value("node"), attachments.c.id > value("after"))
    .order_by(attachments.c.id)
    .limit(value("limit"))
)
_of_pool = attachments.join(reservations, attachments.c.reservation_id == reservations.c.id)
ATTACHMENTS_OF_POOL: Final = sql(
    select(*attachments.c)
    .select_from(_of_pool)
    .where(reservations.c.pool_id == value("pool"))
    .order_by(attachments.c.id)
)

ASSIGNED: Final = sql(
    addresses.select()
    .where(addresses.c.attachment_id == value("attachment"))
    .order_by(addresses.c.position, *address_order(addresses))
)
ASSIGNED_OF_POOL: Final = sql(
    select(*addresses.c)
    .select_from(_of_pool.join(addresses, addresses.c.attachment_id == attachments.c.id))
    .where(reservations.c.pool_id == value("pool"))
    .order_by(*address_order(addresses))
)
HOLDER: Final = by_key(addresses)

COOLING: Final = by_key(cooling)
COOLING_OF_POD: Final = sql(
    cooling.select().where(
        cooling.c.pool_id == value("pool"), cooling.c.pod_ref == value("pod"), cooling.c.ifname == value("ifname")
    )
)
COOLING_NAMED: Final = sql(
    cooling.select()
    .where(
        cooling.c.pool_id.in_(_every_pool),
        cooling.c.pod_ref >= value("first"),
        cooling.c.pod_ref < value("behind"),
    )
    .order_by(cooling.c.space, *address_order(cooling))
)
FEW_COOLING: Final = 256
"""How many of those that cool longest in a space are looked at before the interval in question is."""

_few = (
    cooling.select()
    .where(cooling.c.space == value("space"))
    .order_by(cooling.c.freed_log_ms, *address_order(cooling))
    .limit(value("few"))
    .subquery()
)
OLDEST_COOLING_OF_FEW: Final = sql(
    select(_few)
    .where(
        _few.c.address >= value("first"),
        _few.c.address <= value("last"),
        func.length(_few.c.address) == value("size"),
        _few.c.hard_until_log_ms <= value("now"),
    )
    .order_by(_few.c.freed_log_ms, _few.c.address)
)
OLDEST_COOLING: Final = sql(
    cooling.select()
    .where(
        cooling.c.space == value("space"),
        cooling.c.address >= value("first"),
        cooling.c.address <= value("last"),
        func.length(cooling.c.address) == value("size"),
        cooling.c.hard_until_log_ms <= value("now"),
    )
    # abs() keeps the planner from the index by age: here the interval is the narrow way.
    .order_by(func.abs(cooling.c.freed_log_ms), cooling.c.address)
    .limit(literal_column("1"))
)
QUARANTINE: Final = by_key(quarantine)
CURSOR: Final = by_key(cursors)
GENERATION_FLOOR: Final = by_key(generation_floors)
TOMBSTONE: Final = by_key(tombstones)
TOMBSTONES_OF_NODE: Final = sql(
    tombstones.select()
    .where(tombstones.c.node == value("node"))
    .order_by(tombstones.c.cni_network, tombstones.c.container_id, tombstones.c.ifname)
)
NODE: Final = by_key(nodes)
NODES: Final = sql(nodes.select().order_by(nodes.c.name))
SIGHTING: Final = by_key(sightings)
RESTORED: Final = sql(restored.select())
IS_UNCONFIRMED: Final = by_key(unconfirmed)
_unconfirmed_pool = _pool.join(unconfirmed, unconfirmed.c.pool_id == pools.c.id).order_by(pools.c.name)
UNCONFIRMED_OF_SPACE: Final = sql(_unconfirmed_pool.where(pools.c.space == value("space")))
UNCONFIRMED: Final = sql(_unconfirmed_pool)
_unconfirmed_range = _unconfirmed_pool.join(ranges, ranges.c.pool_id == pools.c.id).distinct()
_meets: ColumnElement[bool] = (
    (ranges.c.first <= value("last"))
    & (ranges.c.last >= value("first"))
    & (func.length(ranges.c.first) == value("size"))
)
UNCONFIRMED_AT: Final = sql(_unconfirmed_range.where(_meets))
UNCONFIRMED_AROUND: Final = sql(_unconfirmed_range.where(pools.c.space == value("space"), _meets))
"""The unconfirmed pools of a space that may give an address between two."""

DISPUTED: Final = by_key(disputes)
DISPUTES: Final = sql(disputes.select().order_by(disputes.c.space, *address_order(disputes)))
MASS_SILENCE: Final = sql(mass_silence.select())
BOOT: Final = by_key(boots)
BOOTS: Final = sql(boots.select().where(boots.c.node == value("node")).order_by(boots.c.ord))
TOKEN: Final = by_key(tokens)
TOKEN_OF_DIGEST: Final = sql(tokens.select().where(tokens.c.digest == value("digest")))
TOKENS_OF_NODE: Final = sql(tokens.select().where(tokens.c.node == value("node")).order_by(tokens.c.id))
ENDED_TOKENS: Final = sql(
    tokens.select()
    .where(tokens.c.expires_ms.is_not(None), tokens.c.expires_ms <= value("until"))
    .order_by(tokens.c.expires_ms, tokens.c.id)
    .limit(value("limit"))
)
NEXT_TOKEN_END: Final = sql(select(func.min(tokens.c.expires_ms)).where(tokens.c.expires_ms > value("after")))

DUE_HOLDS: Final = sql(
    _attachment.where(
        attachments.c.hold_until_log_ms >= literal_column("0"), attachments.c.hold_until_log_ms <= value("now")
    )
    .order_by(attachments.c.hold_until_log_ms, attachments.c.id)
    .limit(value("limit"))
)
DUE_COOLING: Final = sql(
    cooling.select()
    .where(cooling.c.until_log_ms <= value("now"))
    .order_by(cooling.c.until_log_ms, cooling.c.space, *address_order(cooling))
    .limit(value("limit"))
)
DUE_QUARANTINES: Final = sql(
    quarantine.select()
    .where(quarantine.c.until_log_ms.is_not(None), quarantine.c.until_log_ms <= value("now"))
    .order_by(quarantine.c.until_log_ms, quarantine.c.space, *address_order(quarantine))
    .limit(value("limit"))
)
DUE_TOMBSTONES: Final = sql(
    tombstones.select()
    .where(tombstones.c.until_log_ms <= value("now"))
    .order_by(tombstones.c.until_log_ms, *tombstones.primary_key)
    .limit(value("limit"))
)
STAGED: Final = sql(
    staged_parts.select().where(staged_parts.c.import_id == value("import")).order_by(staged_parts.c.number)
)
DUE_PARTS: Final = sql(
    staged_parts.select()
    .where(staged_parts.c.until_log_ms <= value("now"))
    .order_by(staged_parts.c.until_log_ms, *staged_parts.primary_key)
    .limit(value("limit"))
)
NEXT_DUE: Final = sql(
    union_all(
        select(func.min(attachments.c.hold_until_log_ms)).where(attachments.c.hold_until_log_ms >= literal_column("0")),
        select(func.min(cooling.c.until_log_ms)),
        select(func.min(quarantine.c.until_log_ms)).where(quarantine.c.until_log_ms.is_not(None)),
        select(func.min(tombstones.c.until_log_ms)),
        select(func.min(staged_parts.c.until_log_ms)),
        select(func.min(ops.c.expires_log_ms)),
    )
)
"""When the earliest of each kind ends; null where there is none."""
