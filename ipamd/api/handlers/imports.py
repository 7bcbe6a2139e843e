"""Owns the route of imports."""

from __future__ import annotations

import asyncio
from typing import Any

from ipamd.api.body import shaped
from ipamd.api.exchange import Exchange, Reply, checked
from ipamd.api.schema.imports import HostLocalBody, ImportQuery, show_imported, show_rehearsed
from ipamd.core.names import check_name, check_node, with_cluster
from ipamd.errors import ApiError
from ipamd.imports import host_local, whereabouts
from ipamd.imports.plan import BadSource, Fault, Plan


async def import_(exchange: Exchange[dict[str, Any], ImportQuery]) -> Reply:
    """Take over what another IPAM plugin had given away, or say what that would do."""
    plan = await _plan(exchange)
    imports, request = exchange.services.imports, exchange.request
    if exchange.query.dry_run:
        rehearsed = await imports.rehearse(plan, request)
        return Reply(rehearsed.index, show_rehearsed(rehearsed.value, plan))
    done = await imports.carry_out(plan, request)
    return Reply(done.index, show_imported(done.value, plan.warnings))


async def _plan(exchange: Exchange[dict[str, Any], ImportQuery]) -> Plan:
    """What the body means. Large ones take a while to read: not in the loop's thread."""
    query, body = exchange.query, exchange.body
    cluster = exchange.services.facts.cluster if query.cluster is None else _cluster(query.cluster)
    try:
        if query.format == "whereabouts":
            return await asyncio.to_thread(whereabouts.read, body, cluster)
        bundle = shaped(body, HostLocalBody, "body")
        pools = await exchange.services.imports.default_pools(exchange.request)
        node = None if query.node is None else _node(query.node, cluster)
        return await asyncio.to_thread(
            host_local.read, bundle.networks, bundle.confs, node=node, cluster=cluster, pools=pools
        )
    except BadSource as bad:
        raise _unreadable(bad.faults) from None


def _node(name: str, cluster: str | None) -> str:
    """The whole name of a node."""
    return checked(check_node, name if ":" in name else with_cluster(cluster, name))


def _cluster(name: str) -> str:
    return checked(lambda text: check_name(text, "cluster"), name)


def _unreadable(faults: tuple[Fault, ...]) -> ApiError:
    more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
    return ApiError(
        "invalid_request",
        f"nothing was imported: {faults[0].place} {faults[0].why}{more}",
        faults=[{"place": one.place, "why": one.why} for one in faults],
    )
