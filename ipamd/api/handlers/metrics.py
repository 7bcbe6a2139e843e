"""Owns the route of the metrics."""

from __future__ import annotations

from ipamd.api.exchange import Exchange, Reply, Text
from ipamd.service.ports import EXPOSED


async def get(exchange: Exchange[None, object]) -> Reply:
    """All metrics of this process."""
    return Reply(None, Text(EXPOSED, await exchange.services.exposition.exposed()))
