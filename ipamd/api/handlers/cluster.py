"""Owns the routes of the cluster and of health."""

from __future__ import annotations

from typing import Any

from ipamd.api.exchange import Exchange, Reply
from ipamd.api.schema.admin import HealthShown, ReadyQuery
from ipamd.api.schema.cluster import LeaderBody, MemberBody, show_cluster
from ipamd.api.schema.common import ReadQuery
from ipamd.core.ports import Unavailable


async def get(exchange: Exchange[None, ReadQuery]) -> Reply:
    """The cluster as this member knows it."""
    cluster = exchange.services.cluster
    found = await cluster.get(exchange.request)
    return Reply(found.index, show_cluster(found.value, cluster.member))


async def add(exchange: Exchange[MemberBody, Any]) -> Reply:
    """Take a member in. The index of the answer is that of the entry that did it."""
    cluster = exchange.services.cluster
    done = await cluster.add(exchange.body.member(), exchange.request)
    return Reply(done.index, show_cluster(done.value, cluster.member), 201)


async def remove(exchange: Exchange[None, Any]) -> Reply:
    """Take a member out."""
    cluster = exchange.services.cluster
    done = await cluster.remove(exchange.path["name"], exchange.request)
    return Reply(done.index, show_cluster(done.value, cluster.member))


async def verify(exchange: Exchange[None, Any]) -> Reply:
    """The cluster, each member with the digest of its state at the answer's index."""
    cluster = exchange.services.cluster
    done = await cluster.verify(exchange.request)
    return Reply(done.index, show_cluster(done.value, cluster.member, done.index))


async def transfer(exchange: Exchange[LeaderBody, Any]) -> Reply:
    """Have another member lead."""
    cluster = exchange.services.cluster
    done = await cluster.transfer(exchange.body.name, exchange.request)
    return Reply(done.index, show_cluster(done.value, cluster.member))


async def live(_exchange: Exchange[None, Any]) -> Reply:
    """The process answers."""
    return Reply(None, HealthShown())


async def ready(exchange: Exchange[None, ReadyQuery]) -> Reply:
    """The process can serve."""
    why = await exchange.services.cluster.unready(exchange.query.space)
    if why is not None:
        raise Unavailable(why, "none")
    return Reply(None, HealthShown())
