"""Owns the check of a network configuration: read as an ADD would read it, and rehearsed; nothing is changed."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from ipamd.api.exchange import Exchange, Reply
from ipamd.api.schema.cni_test import CniTestBody, show_test
from ipamd.cni.call import AddCall, parse
from ipamd.cni.dialects.known import reading_of
from ipamd.cni.errors import CniError
from ipamd.cni.result import render_result
from ipamd.core.commands import Add, PoolRequest
from ipamd.core.model import Owner
from ipamd.errors import ApiError

_CONTAINER = "ipamctl-cni-test"
"""A container that no runtime makes: without a pod in `args`, the rehearsal is that of a new pod."""


async def check_configuration(exchange: Exchange[CniTestBody, Any]) -> Reply:
    """What an ADD with this configuration would get."""
    try:
        call = _add_of(exchange)
        reading = reading_of(exchange.body.conf)
        found = await exchange.services.why.rehearse(_command_of(call, exchange), exchange.request)
        render_result(call.version, found.value, call.overrides)
    except CniError as error:
        raise ApiError("invalid_request", f"{error.msg} (CNI error code {error.code})") from None
    return Reply(found.index, show_test(reading, call.pod_ref, found.value))


def _add_of(exchange: Exchange[CniTestBody, Any]) -> AddCall:
    """The ADD that a runtime would make. Raises CniError."""
    headers = {
        "CNI-ContainerID": _CONTAINER,
        "CNI-Netns": "/var/run/netns/none",
        "CNI-IfName": "eth0",
        "CNI-Args": quote(exchange.body.args),
    }
    facts = exchange.services.facts
    call = parse("add", headers, json.dumps(exchange.body.conf).encode(), node=facts.node, cluster=facts.cluster)
    if not isinstance(call, AddCall):
        raise TypeError(f"an ADD was read as {type(call).__name__}")
    return call


def _command_of(call: AddCall, exchange: Exchange[CniTestBody, Any]) -> Add:
    pools = tuple(PoolRequest(pool) for pool in call.pools)
    owner = Owner(call.container_id, call.node, call.cni_network)
    return Add(exchange.request.origin, pools, call.pod_ref, call.ifname, owner, addresses=call.addresses)
