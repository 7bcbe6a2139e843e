"""Owns the tables, as the newest migration leaves them. The order of columns is the order of values in a row.

Addresses are big-endian BLOBs of 4 or 16 bytes: they sort as numbers within a family and IPv6 is exact. Foreign keys
are checked at COMMIT, since a decision lists its changes in no particular order. `free_spans` alone is no state but
an index: what is free, as closed intervals, so that a full /16 and an empty /64 cost the same.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    text,
)

from ipamd.storage.columns import blob as _blob
from ipamd.storage.columns import check as _check
from ipamd.storage.columns import identity as _id
from ipamd.storage.columns import integer as _int
from ipamd.storage.columns import is_address as _is_address
from ipamd.storage.columns import is_flag as _is_flag
from ipamd.storage.columns import metadata as metadata  # noqa: PLC0414 - of all tables
from ipamd.storage.columns import parent as _parent
from ipamd.storage.columns import table as _table
from ipamd.storage.columns import text as _text
from ipamd.storage.hosttables import boots as boots  # noqa: PLC0414 - tables too, and so are these
from ipamd.storage.hosttables import mass_silence as mass_silence  # noqa: PLC0414
from ipamd.storage.hosttables import nodes as nodes  # noqa: PLC0414
from ipamd.storage.hosttables import sightings as sightings  # noqa: PLC0414
from ipamd.storage.restoredtables import disputes as disputes  # noqa: PLC0414
from ipamd.storage.restoredtables import restored as restored  # noqa: PLC0414
from ipamd.storage.restoredtables import unconfirmed as unconfirmed  # noqa: PLC0414

meta = _table(
    "meta",
    _id(),
    _int("applied_index"),
    _int("applied_term"),
    _int("log_ms"),
    _int("wall_ms"),
    _int("last_id"),
    _int("last_event"),
    _check("single", "id = 1"),
)

cluster = _table(
    "cluster",
    _id(),
    _text("cluster_id"),
    _int("founded_ms"),
    _int("level"),
    _int("epoch"),
    _check("single", "id = 1"),
    _check("level", "level >= 1"),
)

members = _table(
    "members",
    _text("name"),
    _text("member_id"),
    _text("raft"),
    _text("api"),
    _int("voter"),
    _int("level"),
    PrimaryKeyConstraint("name"),
    _is_flag("voter"),
    _check("level", "level >= 1"),
)

settings = _table(
    "settings",
    _id(),
    _int("inline_pools"),
    _int("cooldown_s"),
    _text("reclaim"),
    _int("node_lost_s"),
    _int("evidence_grace_s"),
    _int("tombstone_s"),
    _int("events_days"),
    _int("events_max"),
    _check("single", "id = 1"),
    _is_flag("inline_pools"),
)

pools = _table(
    "pools",
    _id(),
    _int("revision"),
    _text("name"),
    _text("space"),
    _text("routes"),
    _text("dns"),
    _text("strategy"),
    _int("cooldown_s", null=True),
    _int("cooldown_min_s"),
    _int("hold_s"),
    _text("reclaim", null=True),
    _int("allow_overlap"),
    _text("labels"),
    _int("inline"),
    _int("created_ms"),
    UniqueConstraint("name"),
    _check("routes", "json_valid(routes)"),
    _check("dns", "json_valid(dns)"),
    _check("labels", "json_valid(labels)"),
    _check("strategy", "strategy IN ('lowest', 'round-robin', 'random')"),
    _check("cooldown_s", "cooldown_s >= 0"),
    _check("cooldown_min_s", "cooldown_min_s >= 0"),
    _check("hold_s", "hold_s >= -1"),
    _is_flag("allow_overlap"),
    _is_flag("inline"),
)
Index(None, pools.c.space, pools.c.name)

ranges = _table(
    "ranges",
    _id(),
    Column("pool_id", Integer, _parent("pools.id", owned=True), nullable=False),
    _int("position"),
    _int("ord"),
    _blob("subnet"),
    _int("prefix"),
    _blob("first"),
    _blob("last"),
    _blob("range_start", null=True),
    _blob("range_end", null=True),
    _blob("gateway", null=True),
    UniqueConstraint("pool_id", "position", "ord"),
    _is_address("subnet"),
    _check("prefix", "prefix BETWEEN 0 AND 8 * length(subnet)"),
    _check("bounds", "length(first) = length(subnet) AND length(last) = length(subnet) AND first <= last"),
)
Index(None, ranges.c.subnet, ranges.c.prefix)

excludes = _table(
    "excludes",
    Column("range_id", Integer, _parent("ranges.id", owned=True), nullable=False),
    _int("ord"),
    _blob("first"),
    _blob("last"),
    PrimaryKeyConstraint("range_id", "ord"),
    _check("bounds", "length(first) = length(last)"),
    rowid=False,
)

free_spans = _table(
    "free_spans",
    Column("range_id", Integer, _parent("ranges.id", owned=True), nullable=False),
    # By its end, since the span around an address is the first one that ends at or after it: one look-up.
    _blob("last"),
    _blob("first"),
    PrimaryKeyConstraint("range_id", "last"),
    _check("bounds", "length(first) = length(last) AND first <= last"),
    rowid=False,
)

reservations = _table(
    "reservations",
    _id(),
    Column("pool_id", Integer, _parent("pools.id"), nullable=False),
    _text("pod_ref"),
    _text("pod_uids"),
    _int("created_ms"),
    _int("pinned"),
    _text("note"),
    UniqueConstraint("pool_id", "pod_ref"),
    _is_flag("pinned"),
)

attachments = _table(
    "attachments",
    _id(),
    Column("reservation_id", Integer, _parent("reservations.id"), nullable=False),
    _int("pool_id"),
    _text("ifname"),
    _int("bound"),
    _text("container_id", null=True),
    _text("node", null=True),
    _text("cni_network", null=True),
    _text("netns", null=True),
    _int("netns_inode", null=True),
    _int("start_boot"),
    _int("start_ns"),
    _int("generation"),
    _int("since_ms"),
    _int("hold_until_log_ms", null=True),
    _int("suspect"),
    _int("bound_index"),
    UniqueConstraint("reservation_id", "ifname"),
    _is_flag("bound"),
    _check("suspect", "suspect IN (0, bound)"),
    _check("hold", "bound = (hold_until_log_ms IS NULL)"),
    _check("owner", "bound OR coalesce(container_id, node, cni_network, netns, netns_inode) IS NULL"),
)
Index(None, attachments.c.container_id, sqlite_where=text("container_id IS NOT NULL"))
Index(None, attachments.c.node, sqlite_where=text("node IS NOT NULL"))
Index(None, attachments.c.hold_until_log_ms, sqlite_where=text("hold_until_log_ms >= 0"))
Index("ix_attachments_held", attachments.c.pool_id, attachments.c.reservation_id, sqlite_where=text("bound = 0"))
Index("ix_attachments_unclaimed", attachments.c.id, sqlite_where=text("bound = 1 AND node IS NULL"))
Index("ix_attachments_suspect", attachments.c.pool_id, attachments.c.reservation_id, sqlite_where=text("suspect = 1"))

addresses = _table(
    "addresses",
    _text("space"),
    _blob("address"),
    Column("attachment_id", Integer, _parent("attachments.id"), nullable=False),
    _int("pool_id"),
    _int("position"),
    _int("prefix"),
    PrimaryKeyConstraint("space", "address"),
    _is_address("address"),
    _check("position", "position >= 0"),
    _check("prefix", "prefix BETWEEN 0 AND 8 * length(address)"),
    rowid=False,
)
Index(None, addresses.c.attachment_id, addresses.c.position)

cooling = _table(
    "cooling",
    _text("space"),
    _blob("address"),
    _int("pool_id"),
    _text("pod_ref"),
    _text("ifname"),
    _int("freed_log_ms"),
    _int("hard_until_log_ms"),
    _int("until_log_ms"),
    PrimaryKeyConstraint("space", "address"),
    _is_address("address"),
    rowid=False,
)
Index(None, cooling.c.pool_id, cooling.c.pod_ref, cooling.c.ifname)
Index(None, cooling.c.until_log_ms)
Index(None, cooling.c.space, cooling.c.freed_log_ms)

quarantine = _table(
    "quarantine",
    _text("space"),
    _blob("address"),
    _int("until_log_ms", null=True),
    _text("note"),
    _int("since_ms"),
    _text("by"),
    PrimaryKeyConstraint("space", "address"),
    _is_address("address"),
    rowid=False,
)
Index(None, quarantine.c.until_log_ms, sqlite_where=text("until_log_ms IS NOT NULL"))

cursors = _table(
    "cursors",
    Column("pool_id", Integer, _parent("pools.id", owned=True), nullable=False),
    _int("position"),
    _int("ord"),
    _blob("address"),
    PrimaryKeyConstraint("pool_id", "position"),
    _is_address("address"),
    rowid=False,
)

generation_floors = _table(
    "generation_floors",
    Column("pool_id", Integer, _parent("pools.id", owned=True), primary_key=True, nullable=False),
    _int("generation"),
)

tombstones = _table(
    "tombstones",
    _text("node"),
    _text("cni_network"),
    _text("container_id"),
    _text("ifname"),
    _int("start_boot"),
    _int("start_ns"),
    _int("until_log_ms"),
    PrimaryKeyConstraint("node", "cni_network", "container_id", "ifname"),
    rowid=False,
)
Index(None, tombstones.c.until_log_ms)

staged_parts = _table(
    "staged_parts",
    _text("import_id"),
    _int("number"),
    _int("until_log_ms"),
    _blob("findings"),
    PrimaryKeyConstraint("import_id", "number"),
)
Index(None, staged_parts.c.until_log_ms)

events = _table(
    "events",
    _id(),
    _int("at_ms"),
    _text("kind"),
    _text("by"),
    _text("request_id"),
    _text("space", null=True),
    _text("pool", null=True),
    _text("pod_ref", null=True),
    _text("ifname", null=True),
    _blob("address", null=True),
    _text("node", null=True),
    _text("detail"),
    _int("begins"),
    _is_address("address"),
    _is_flag("begins"),
)
Index(None, events.c.space, events.c.address, sqlite_where=text("address IS NOT NULL"))

tokens = _table(
    "tokens",
    _text("id"),
    _text("name"),
    _text("role"),
    _blob("digest"),
    _int("created_ms"),
    _int("expires_ms", null=True),
    _text("node", null=True),
    _int("used_ms", null=True),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("digest"),
    _check("digest", "length(digest) = 32"),
    rowid=False,
)
Index(None, tokens.c.node, sqlite_where=text("node IS NOT NULL"))
Index(None, tokens.c.expires_ms, sqlite_where=text("expires_ms IS NOT NULL"))

ops = _table(
    "ops",
    _id(),
    _blob("op"),
    _blob("fingerprint"),
    _int("log_index"),
    _int("expires_log_ms"),
    _int("keyed"),
    _blob("outcome"),
    UniqueConstraint("op"),
    _check("op", "length(op) = 16"),
    _is_flag("keyed"),
)
Index(None, ops.c.expires_log_ms)
Index("ix_ops_keyed", ops.c.id, sqlite_where=text("keyed = 1"))

ALL: tuple[Table, ...] = tuple(metadata.sorted_tables)
"""Every table, parents before children."""

Row = tuple[Any, ...]
"""A row as the driver has it: values in the order of the table's columns."""
