"""Owns the routes of pools."""

from __future__ import annotations

from typing import Any

from ipamd.api.exchange import Exchange, Reply, listed
from ipamd.api.query import decode_cursor
from ipamd.api.schema.common import ListQuery, ReadQuery
from ipamd.api.schema.pools import (
    PoolBody,
    PoolQuery,
    WhyQuery,
    show,
    show_dropped,
    show_stored,
    show_usage,
    show_why,
)
from ipamd.api.schema.reservations import read_address
from ipamd.api.schema.restored import show_confirmed
from ipamd.core.names import InvalidName, check_ifname, check_pod_ref
from ipamd.errors import ApiError
from ipamd.service.why import Question


async def list_pools(exchange: Exchange[None, ListQuery]) -> Reply:
    """All pools, by name."""
    query = exchange.query
    (after,) = decode_cursor(query.cursor, tuple[str]) if query.cursor else ("",)
    page = await exchange.services.pools.page(after, query.limit, exchange.request)
    return listed(page, show, lambda one: (one.pool.name,))


async def create(exchange: Exchange[PoolBody, Any]) -> Reply:
    """Make a pool."""
    done = await exchange.services.pools.create(exchange.body.definition(), exchange.request)
    status = 201 if done.value.created else 200
    return Reply(done.index, show_stored(done.value, with_stranded=False), status)


async def get(exchange: Exchange[None, ReadQuery]) -> Reply:
    """One pool."""
    found = await exchange.services.pools.get(exchange.path["pool"], exchange.request)
    return Reply(found.index, show(found.value))


async def update(exchange: Exchange[PoolBody, PoolQuery]) -> Reply:
    """Replace a pool's definition."""
    name, query = exchange.path["pool"], exchange.query
    if exchange.body.name != name:
        raise ApiError("invalid_request", f"name {exchange.body.name!r} is not the name in the path, {name!r}")
    done = await exchange.services.pools.update(
        exchange.body.definition(), exchange.request, force=query.force, dry_run=query.dry_run
    )
    return Reply(done.index, show_stored(done.value, with_stranded=True))


async def delete(exchange: Exchange[None, PoolQuery]) -> Reply:
    """Delete a pool."""
    query = exchange.query
    done = await exchange.services.pools.delete(
        exchange.path["pool"], exchange.request, force=query.force, dry_run=query.dry_run
    )
    return Reply(done.index, show_dropped(done.value))


async def confirm(exchange: Exchange[None, PoolQuery]) -> Reply:
    """After a restore: what is withheld in a pool may be given again."""
    query = exchange.query
    done = await exchange.services.pools.confirm(
        exchange.path["pool"], exchange.request, force=query.force, dry_run=query.dry_run
    )
    return Reply(done.index, show_confirmed(done.value))


async def usage(exchange: Exchange[None, ReadQuery]) -> Reply:
    """How a pool's addresses are spent."""
    found = await exchange.services.pools.usage(exchange.path["pool"], exchange.request)
    return Reply(found.index, show_usage(found.value))


async def why(exchange: Exchange[None, WhyQuery]) -> Reply:
    """What an ADD would get, and why."""
    query = exchange.query
    try:
        check_ifname(query.ifname)
        if query.pod_ref is not None:
            check_pod_ref(query.pod_ref)
    except InvalidName as error:
        raise ApiError("invalid_request", f"query parameter {error}") from None
    wanted = tuple(read_address(text, "addresses") for text in query.addresses.split(",") if text)
    question = Question(exchange.path["pool"], query.pod_ref, query.ifname, wanted, exchange.caller.node)
    found = await exchange.services.why.explain(question, exchange.request)
    return Reply(found.index, show_why(found.value))
