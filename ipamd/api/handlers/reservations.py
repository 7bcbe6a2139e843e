"""Owns the routes of reservations."""

from __future__ import annotations

from typing import Any

from ipamd.api.access import Caller
from ipamd.api.exchange import Exchange, Reply, listed
from ipamd.api.query import decode_cursor
from ipamd.api.redaction import MASK, redacted
from ipamd.api.schema.common import ReadQuery
from ipamd.api.schema.reservations import (
    ReleaseQuery,
    ReservationBody,
    ReservationShown,
    ReservationsQuery,
    show_grant,
    show_own,
    show_released,
    show_row,
)
from ipamd.core.model import Role
from ipamd.core.ports import ReservationRow


async def list_reservations(exchange: Exchange[None, ReservationsQuery]) -> Reply:
    """The reservations that match, by pool and pod_ref. A node token sees those of its own node."""
    query, caller = exchange.query, exchange.caller
    wanted = query.filter()
    if caller.role is Role.NODE:
        wanted = wanted._replace(node=wanted.node or caller.node)
        caller.own(wanted.node)
    after = None if query.cursor is None else decode_cursor(query.cursor, tuple[int, str, str])
    page = await exchange.services.reservations.page(wanted, after, query.limit, exchange.request)
    return listed(page, _shower(exchange), lambda row: _place(row, caller))


def _place(row: ReservationRow, caller: Caller) -> tuple[int, str, str]:
    """Where a list goes on: behind this reservation; where that is gone, behind its names, as the caller sees them."""
    return row.reservation.id, row.pool.name, redacted(row.reservation.pod_ref, caller).removesuffix(MASK)


async def create(exchange: Exchange[ReservationBody, Any]) -> Reply:
    """Give a pod's interface its address in a pool."""
    command = exchange.body.command(exchange.request.origin)
    done = await exchange.services.allocation.add(command, exchange.request)
    return Reply(done.index, show_grant(done.value.grants[0]), 201 if done.value.created else 200)


async def get(exchange: Exchange[None, ReadQuery]) -> Reply:
    """One reservation."""
    path = exchange.path
    found = await exchange.services.reservations.get(path["pool"], path["pod_ref"], exchange.request)
    return Reply(found.index, show_row(found.value))


async def release(exchange: Exchange[None, ReleaseQuery]) -> Reply:
    """Release a reservation, or one interface of it."""
    path, request = exchange.path, exchange.request
    command = exchange.query.command(path["pool"], path["pod_ref"], request.origin)
    done = await exchange.services.allocation.release(command, request)
    return Reply(done.index, show_released(done.value))


def _shower(exchange: Exchange[Any, Any]) -> Any:
    node = exchange.caller.node
    if exchange.caller.role is not Role.NODE or node is None:
        return show_row

    def show(row: ReservationRow) -> ReservationShown:
        return show_own(row, node)

    return show
