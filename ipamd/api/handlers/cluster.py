"""Owns the routes of the cluster and of health."""

from __future__ import annotations

from typing import Any

from ipamd.api.exchange import Exchange, Reply
from ipamd.api.schema.admin import HealthShown, ReadyQuery, show_cluster
from ipamd.api.schema.common import ReadQuery
from ipamd.core.ports import Unavailable


async def get(exchange: Exchange[None, ReadQuery]) -> Reply:
    """The cluster as this member knows it."""
    cluster = exchange.services.cluster
    found = await cluster.get(exchange.request)
    return Reply(found.index, show_cluster(found.value, cluster.member))


async def live(_exchange: Exchange[None, Any]) -> Reply:
    """The process answers."""
    return Reply(None, HealthShown())


async def ready(exchange: Exchange[None, ReadyQuery]) -> Reply:
    """The process can serve."""
    why = await exchange.services.cluster.unready(exchange.query.space)
    if why is not None:
        raise Unavailable(why, "none")
    return Reply(None, HealthShown())
