"""Owns the routes of what happened."""

from __future__ import annotations

from typing import Any

from ipamd.api.exchange import Exchange, Later, Reply
from ipamd.api.query import decode_cursor, encode_cursor
from ipamd.api.schema.common import Items
from ipamd.api.schema.events import EVENT_STREAM, EventsQuery, NoteBody, read_index, show_event
from ipamd.api.streaming import EventStream
from ipamd.errors import ApiError
from ipamd.service.events import Place

LATEST = "latest"
"""`after=latest`: from now on."""


async def list_events(exchange: Exchange[None, EventsQuery]) -> Reply:
    """Events after an index, oldest first: a page, or all that come for who accepts `text/event-stream`."""
    accepted = exchange.headers.get("Accept", "")
    if EVENT_STREAM in accepted and "application/json" not in accepted:
        return await _stream(exchange)
    query = exchange.query
    if query.after == LATEST:
        raise ApiError("invalid_request", f"query parameter after: {LATEST} is for who accepts {EVENT_STREAM}")
    place = Place(_after(query), query.cluster)
    page = await exchange.services.events.page(place, query.limit, query.wanted(), exchange.request)
    items, more = page.value
    cursor = None if more is None else encode_cursor(more)
    return Reply(page.index, Later(lambda: Items(items=tuple(map(show_event, items)), next=cursor), len(items)))


async def note(exchange: Exchange[NoteBody, Any]) -> Reply:
    """Put a note among the events."""
    body = exchange.body
    done = await exchange.services.events.note(body.checked_text(), body.pool, body.node, exchange.request)
    return Reply(done.index, None, 204)


async def _stream(exchange: Exchange[None, EventsQuery]) -> Reply:
    """A client that was here before says in a header where it is, whatever it asked for first."""
    query, wanted = exchange.query, exchange.query.wanted()
    last = exchange.headers.get("Last-Event-ID")
    after = _after(query) if last is None else read_index(last, "header Last-Event-ID")
    from_now = last is None and query.after == LATEST
    place = Place(None if from_now else after or 0, query.cluster)
    found = await exchange.services.feed.open(place, exchange.request)
    return Reply(found.index, EventStream(found.value, wanted, exchange.caller))


def _after(query: EventsQuery) -> int | None:
    """The index to begin behind; None: none is given, or the latest."""
    if query.cursor is not None:
        if query.after is not None:
            raise ApiError("invalid_request", "query parameters after and cursor say the same: give one of them")
        return decode_cursor(query.cursor, tuple[int])[0]
    return None if query.after in (None, LATEST) else read_index(query.after, "query parameter after")
