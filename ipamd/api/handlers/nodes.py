"""Owns the routes of nodes."""

from __future__ import annotations

from functools import partial
from typing import Any

from ipamd.api.exchange import Exchange, Later, Reply, checked, listed
from ipamd.api.query import decode_cursor
from ipamd.api.schema.common import ListQuery, ReadQuery, let_go
from ipamd.api.schema.nodes import (
    InventoryBody,
    NodeReleasedShown,
    NodesShown,
    ReleaseNodeQuery,
    RenameBody,
    RenamedShown,
    ReportedShown,
    read_inventory,
    show,
    show_conflict,
    show_detail,
    show_list,
)
from ipamd.core.names import check_name, check_node
from ipamd.service.request import At


async def list_nodes(exchange: Exchange[None, ListQuery]) -> Reply:
    """All nodes, by name."""
    query = exchange.query
    (after,) = decode_cursor(query.cursor, tuple[str]) if query.cursor else ("",)
    found = await exchange.services.nodes.page(after, query.limit, exchange.request)
    now_ms = exchange.services.clock.wall_ms()
    reply = listed(At(found.index, found.value.page), lambda row: show(row, now_ms), lambda row: (row.node.name,))

    def whole() -> NodesShown:
        return show_list(reply.value.make(), found.value.silence, found.value.unclaimed)

    return Reply(reply.index, Later(whole, reply.value.items))


async def get(exchange: Exchange[None, ReadQuery]) -> Reply:
    """One node. That there is none of a name is no secret: an agent whose node was renamed asks for both names."""
    name = exchange.path["node"]
    found = await exchange.services.nodes.get(name, exchange.request)
    exchange.caller.own(name)
    return Reply(found.index, show_detail(found.value, exchange.services.clock.wall_ms()))


async def release(exchange: Exchange[Any, ReleaseNodeQuery]) -> Reply:
    """Free all that is bound on a node, or what of it is suspect."""
    name, suspect = checked(check_node, exchange.path["node"]), exchange.query.only == "suspect"
    done = await exchange.services.nodes.release(name, exchange.request, suspect=suspect)
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


async def report(exchange: Exchange[InventoryBody, Any]) -> Reply:
    """Take in what was found on a node."""
    name = checked(check_node, exchange.path["node"])
    exchange.caller.own(name)
    if exchange.body.boot_id is not None:
        checked(partial(check_name, what="boot_id"), exchange.body.boot_id)
    inventory = read_inventory(name, exchange.body)
    done = await exchange.services.nodes.report(inventory, exchange.body.cluster_id, exchange.request)
    return Reply(done.index, ReportedShown(conflicts=tuple(show_conflict(one) for one in done.value)))


async def heartbeat(exchange: Exchange[Any, Any]) -> Reply:
    """A node is there."""
    name = checked(check_node, exchange.path["node"])
    exchange.caller.own(name)
    index = await exchange.services.nodes.heartbeat(name, exchange.request)
    return Reply(index, None, 204)


async def confirm(exchange: Exchange[Any, Any]) -> Reply:
    """Confirm a mass silence."""
    done = await exchange.services.nodes.confirm(exchange.request)
    return Reply(done.index, None, 204)
