"""Owns the routes of backups and of what waits after a restore; `routes` has them in its table."""

from __future__ import annotations

from ipamd.api.access import Least
from ipamd.api.exchange import Route, Text
from ipamd.api.handlers import backup, pools
from ipamd.api.schema.common import ReadQuery
from ipamd.api.schema.pools import PoolQuery
from ipamd.api.schema.restored import ConfirmedShown

RESTORE_ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/v1/pools/{pool}/confirm",
        pools.confirm,
        "After a restore: what is withheld in a pool may be given again",
        Least.OPERATOR,
        query=PoolQuery,
        answer=ConfirmedShown,
        codes=("pool_not_found", "in_conflict"),
    ),
    Route(
        "GET",
        "/v1/backup",
        backup.take,
        "The whole state, as a SQLite file",
        Least.ADMIN,
        query=ReadQuery,
        answer=Text,
        codes=("too_many_requests",),
        heads=False,
    ),
)
