"""Owns the routes of nodes."""

from __future__ import annotations

from typing import Any

from ipamd.api.exchange import Exchange, Reply, checked, listed
from ipamd.api.query import decode_cursor
from ipamd.api.schema.common import ListQuery, ReadQuery, let_go
from ipamd.api.schema.nodes import NodeReleasedShown, RenameBody, RenamedShown, show, show_detail, show_list
from ipamd.core.names import check_node
from ipamd.service.request import At


async def list_nodes(exchange: Exchange[None, ListQuery]) -> Reply:
    """All nodes, by name."""
    query = exchange.query
    (after,) = decode_cursor(query.cursor, tuple[str]) if query.cursor else ("",)
    found = await exchange.services.nodes.page(after, query.limit, exchange.request)
    reply = listed(At(found.index, found.value.page), show, lambda row: (row.node.name,))
    return Reply(found.index, show_list(reply.value, found.value.unclaimed))


async def get(exchange: Exchange[None, ReadQuery]) -> Reply:
    """One node."""
    name = exchange.path["node"]
    exchange.caller.own(name)
    found = await exchange.services.nodes.get(name, exchange.request)
    return Reply(found.index, show_detail(found.value))


async def release(exchange: Exchange[Any, Any]) -> Reply:
    """Free all that is bound on a node."""
    name = checked(check_node, exchange.path["node"])
    done = await exchange.services.nodes.release(name, exchange.request)
    return Reply(done.index, NodeReleasedShown(node=name, released=len(done.value), items=let_go(done.value)))


async def release_unclaimed(exchange: Exchange[Any, Any]) -> Reply:
    """Free what an import brought and no node has claimed."""
    done = await exchange.services.nodes.release_unclaimed(exchange.request)
    return Reply(done.index, NodeReleasedShown(node=None, released=len(done.value), items=let_go(done.value)))


async def rename(exchange: Exchange[RenameBody, Any]) -> Reply:
    """Give a node another name."""
    to = checked(check_node, exchange.body.to)
    done = await exchange.services.nodes.rename(exchange.path["node"], to, exchange.request)
    return Reply(done.index, RenamedShown(name=to))


async def forget(exchange: Exchange[None, Any]) -> Reply:
    """Forget a node that holds nothing."""
    done = await exchange.services.nodes.forget(exchange.path["node"], exchange.request)
    return Reply(done.index, None, 204)
