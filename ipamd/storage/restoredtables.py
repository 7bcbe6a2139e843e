"""Owns the tables of what waits after a restore; `tables` has them in its list."""

from __future__ import annotations

from sqlalchemy import Column, Integer, PrimaryKeyConstraint

from ipamd.storage.columns import blob as _blob
from ipamd.storage.columns import check as _check
from ipamd.storage.columns import identity as _id
from ipamd.storage.columns import integer as _int
from ipamd.storage.columns import is_address as _is_address
from ipamd.storage.columns import parent as _parent
from ipamd.storage.columns import table as _table
from ipamd.storage.columns import text as _text

restored = _table(
    "restored",
    _id(),
    _int("log_index"),
    _int("log_ms"),
    _int("at_ms"),
    _int("backup_ms"),
    _text("cluster_id"),
    _check("single", "id = 1"),
)

unconfirmed = _table(
    "unconfirmed",
    Column("pool_id", Integer, _parent("pools.id", owned=True), primary_key=True, nullable=False),
)

disputes = _table(
    "disputes",
    _text("space"),
    _blob("address"),
    _text("node"),
    _text("container_id"),
    _text("ifname"),
    _text("pod_ref"),
    _int("since_ms"),
    PrimaryKeyConstraint("space", "address"),
    _is_address("address"),
    rowid=False,
)
