"""Owns the route of the CNI calls that a process remembers."""

from __future__ import annotations

from ipamd.api.exchange import Exchange, Reply
from ipamd.api.query import decode_cursor, encode_cursor
from ipamd.api.schema.calls import CallsQuery, CallsShown, show_call
from ipamd.service.calls import Calls


async def list_calls(exchange: Exchange[None, CallsQuery]) -> Reply:
    """The last CNI calls, newest first."""
    services = exchange.services
    spooled = services.spooling.length if services.spooling is not None else 0
    return Reply(services.applied(), calls_page(services.calls, exchange.query, spooled))


def calls_page(calls: Calls, query: CallsQuery, spooled: int) -> CallsShown:
    """The calls that a process remembers."""
    (before,) = (None,) if query.cursor is None else decode_cursor(query.cursor, tuple[int])
    items, more = calls.page(before, query.limit, query.pod_ref)
    cursor = encode_cursor(items[-1].number) if more and items else None
    return CallsShown(items=tuple(show_call(one.record) for one in items), next=cursor, spooled=spooled)
