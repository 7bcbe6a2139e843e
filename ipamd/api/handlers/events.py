"""Owns the route of what happened: events."""

from __future__ import annotations

from ipamd.api.exchange import Exchange, Reply, listed
from ipamd.api.query import decode_cursor
from ipamd.api.schema.admin import EventsQuery, show_event
from ipamd.errors import ApiError


async def list_events(exchange: Exchange[None, EventsQuery]) -> Reply:
    """Events after an index, oldest first."""
    query = exchange.query
    after = query.after
    if query.cursor is not None:
        if after is not None:
            raise ApiError("invalid_request", "query parameters after and cursor say the same: give one of them")
        (after,) = decode_cursor(query.cursor, tuple[int])
    page = await exchange.services.events.page(after, query.limit, exchange.request)
    return listed(page, show_event, lambda event: (event.index,))
