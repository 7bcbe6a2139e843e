"""Owns the tables of hosts that run pods: what is known of them and what they report; `tables` lists them."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, PrimaryKeyConstraint, Text, UniqueConstraint, text

from ipamd.storage.columns import check as _check
from ipamd.storage.columns import identity as _id
from ipamd.storage.columns import integer as _int
from ipamd.storage.columns import is_flag as _is_flag
from ipamd.storage.columns import parent as _parent
from ipamd.storage.columns import table as _table
from ipamd.storage.columns import text as _text

sightings = _table(
    "sightings",
    Column("attachment_id", Integer, _parent("attachments.id", owned=True), primary_key=True, nullable=False),
    _int("generation"),
    _int("alive", null=True),
    _int("gone_log_ms", null=True),
    _int("gone_index"),
    _int("contested"),
    _is_flag("alive"),
    _is_flag("contested"),
    _check("gone", "gone_log_ms IS NULL OR alive IS 0"),
)

nodes = _table(
    "nodes",
    _text("name"),
    _int("since_ms"),
    _int("newest_boot"),
    _int("reported_log_ms", null=True),
    _int("reported_ms", null=True),
    _int("lost_log_ms", null=True),
    _int("silent_since_ms", null=True),
    _int("back_log_ms"),
    _int("clash"),
    _int("spooled"),
    _int("conflicts"),
    PrimaryKeyConstraint("name"),
    _is_flag("clash"),
    _check("lost", "(lost_log_ms IS NULL) = (silent_since_ms IS NULL)"),
    rowid=False,
)
Index(None, nodes.c.lost_log_ms, sqlite_where=text("lost_log_ms IS NOT NULL"))

mass_silence = _table(
    "mass_silence",
    _id(),
    _int("stands"),
    _int("since_log_ms"),
    _int("since_ms"),
    _check("single", "id = 1"),
    _is_flag("stands"),
)

boots = _table(
    "boots",
    Column("node", Text, _parent("nodes.name"), nullable=False),
    _text("boot_id"),
    _int("ord"),
    _int("since_ms"),
    PrimaryKeyConstraint("node", "boot_id"),
    UniqueConstraint("node", "ord"),
    _check("ord", "ord >= 1"),
    rowid=False,
)
