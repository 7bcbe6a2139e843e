"""Owns the routes of single addresses."""

from __future__ import annotations

from typing import Any

from ipamd.api.exchange import Exchange, Reply, checked, listed
from ipamd.api.query import decode_cursor
from ipamd.api.schema.addresses import HistoryQuery, QuarantineBody, show, show_holder, show_quarantine
from ipamd.api.schema.common import Items, SpaceQuery, WriteSpaceQuery
from ipamd.api.schema.reservations import read_address
from ipamd.core.addresses import Address
from ipamd.core.commands import LiftQuarantine, SetQuarantine
from ipamd.core.definition import check_seconds
from ipamd.core.names import check_name


async def get(exchange: Exchange[None, SpaceQuery]) -> Reply:
    """What an address is doing now."""
    found = await exchange.services.addresses.get(_space(exchange), _address(exchange), exchange.request)
    return Reply(found.index, show(found.value))


async def history(exchange: Exchange[None, HistoryQuery]) -> Reply:
    """Who had an address, newest first, or the one who had it at a time."""
    query = exchange.query
    at_ms = query.at_ms()
    if at_ms is not None:
        found = await exchange.services.past.holder(_space(exchange), _address(exchange), at_ms, exchange.request)
        return Reply(found.index, Items(items=tuple(show_holder(row) for row in (found.value,) if row is not None)))
    (before,) = decode_cursor(query.cursor, tuple[int]) if query.cursor else (None,)
    page = await exchange.services.addresses.history(
        _space(exchange), _address(exchange), before, query.limit, exchange.request
    )
    return listed(page, show_holder, lambda row: (row.from_index,))


async def quarantine(exchange: Exchange[QuarantineBody, WriteSpaceQuery]) -> Reply:
    """Take an address out of use."""
    body = exchange.body
    if body.for_s is not None:
        seconds = body.for_s
        checked(lambda text: str(check_seconds(seconds, text)), "for_s")
    command = SetQuarantine(exchange.request.origin, _space(exchange), _address(exchange), body.for_s, body.note)
    done = await exchange.services.addresses.quarantine(command, exchange.request)
    return Reply(done.index, show_quarantine(done.value.quarantine, body.for_s))


async def lift(exchange: Exchange[None, WriteSpaceQuery]) -> Reply:
    """Put an address back into use."""
    command = LiftQuarantine(exchange.request.origin, _space(exchange), _address(exchange))
    done = await exchange.services.addresses.lift(command, exchange.request)
    return Reply(done.index, None, 204)


def _address(exchange: Exchange[Any, Any]) -> Address:
    return read_address(exchange.path["address"], "address")


def _space(exchange: Exchange[Any, Any]) -> str:
    space: str = exchange.query.space
    return checked(lambda text: check_name(text, "space"), space)
