"""Owns the routes of what happened: events, and the CNI calls of this process."""

from __future__ import annotations

from ipamd.api.exchange import Exchange, Reply, listed
from ipamd.api.query import decode_cursor
from ipamd.api.schema.admin import EventsQuery, show_call, show_event
from ipamd.api.schema.common import ListQuery
from ipamd.errors import ApiError
from ipamd.service.request import At


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


async def list_calls(exchange: Exchange[None, ListQuery]) -> Reply:
    """The last CNI calls, newest first."""
    query = exchange.query
    (before,) = (None,) if query.cursor is None else decode_cursor(query.cursor, tuple[int])
    page = At(exchange.services.log.status().applied, exchange.services.calls.page(before, query.limit))
    return listed(page, lambda call: show_call(call.record), lambda call: (call.number,))
