"""Owns the routes of what happened: events, and the CNI calls of this process."""

from __future__ import annotations

from ipamd.api.exchange import Exchange, Reply, listed
from ipamd.api.query import decode_cursor, encode_cursor
from ipamd.api.schema.admin import CallsShown, EventsQuery, show_call, show_event
from ipamd.api.schema.common import ListQuery
from ipamd.errors import ApiError
from ipamd.service.calls import Calls


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
    services = exchange.services
    spooled = services.spooling.length if services.spooling is not None else 0
    return Reply(services.applied(), calls_page(services.calls, query, spooled))


def calls_page(calls: Calls, query: ListQuery, spooled: int) -> CallsShown:
    """The calls that a process remembers."""
    (before,) = (None,) if query.cursor is None else decode_cursor(query.cursor, tuple[int])
    items, more = calls.page(before, query.limit)
    cursor = encode_cursor(items[-1].number) if more and items else None
    return CallsShown(items=tuple(show_call(one.record) for one in items), next=cursor, spooled=spooled)
