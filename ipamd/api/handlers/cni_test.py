"""Owns the check of a network configuration: read as an ADD would read it, and rehearsed; nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from ipamd.api.exchange import Exchange, Reply
from ipamd.api.resolving import overrides_of
from ipamd.api.schema.cni_test import CniTestBody, Findings, show_test
from ipamd.cni.call import AddCall, parse
from ipamd.cni.dialects.known import reading_of
from ipamd.cni.errors import CniError
from ipamd.cni.overrides import Overrides
from ipamd.cni.result import check_room, render_result
from ipamd.core.commands import Add
from ipamd.core.model import Owner
from ipamd.core.outcomes import Granted
from ipamd.errors import ApiError
from ipamd.service.rehearsal import Rehearsed

_CONTAINER = "ipamctl-cni-test"
"""A container that no runtime makes: without a pod in `args`, the rehearsal is that of a new pod."""


async def check_configuration(exchange: Exchange[CniTestBody, Any]) -> Reply:
    """What an ADD with this configuration would get."""
    try:
        call = _add_of(exchange)
        reading = reading_of(exchange.body.conf, call.dialect)
        overrides = await _overrides(call, exchange)
        found = await exchange.services.rehearsal.add(_command_of(call, exchange), exchange.request)
        result = _result(call, found.value, overrides)
    except CniError as error:
        raise ApiError("invalid_request", f"{error.msg} (CNI error code {error.code})") from None
    notes = (*reading.notes, *_notes(call, found.value, exchange))
    return Reply(found.index, show_test(reading.dialect, call, found.value, Findings(result, reading.ignored, notes)))


def _add_of(exchange: Exchange[CniTestBody, Any]) -> AddCall:
    """The ADD that a runtime would make. Raises CniError."""
    body, facts = exchange.body, exchange.services.facts
    headers = {
        "CNI-ContainerID": _CONTAINER,
        "CNI-Netns": "/var/run/netns/none",
        "CNI-IfName": quote(body.ifname),
        "CNI-Args": quote(body.args),
    }
    call = parse("add", headers, json.dumps(body.conf).encode(), node=facts.node, cluster=facts.cluster)
    if not isinstance(call, AddCall):
        raise TypeError(f"an ADD was read as {type(call).__name__}")
    return call


def _command_of(call: AddCall, exchange: Exchange[CniTestBody, Any]) -> Add:
    owner = Owner(call.container_id, call.node, call.cni_network)
    return Add(exchange.request.origin, call.requests, call.pod_ref, call.ifname, owner, addresses=call.addresses)


async def _overrides(call: AddCall, exchange: Exchange[CniTestBody, Any]) -> Overrides:
    """From afar no file is read: it is not the one that the node has, and not the caller's to see."""
    return await overrides_of(exchange.services, call) if exchange.caller.local else call.overrides


def _notes(call: AddCall, rehearsed: Rehearsed, exchange: Exchange[CniTestBody, Any]) -> Iterator[str]:
    """What a person should know beside the keys."""
    for one in rehearsed.pools:
        if not one.asked.is_made:
            yield f"pool {one.asked.pool.name} does not exist yet: the first ADD makes it"
        for host in one.asked.first_hosts:
            yield f"{host} is not handed out: the bridge takes the first host where a range has no gateway"
    if call.resolv_conf is not None and not exchange.caller.local:
        yield f"{call.resolv_conf} was not read: only a server on the node itself shows the dns of the result"


def _result(call: AddCall, rehearsed: Rehearsed, overrides: Overrides) -> Any:
    """What an ADD would print; None: it would be refused. Raises CniError where the version has no room for it."""
    if call.one_of_family:
        families = [ranges[0].family for one in rehearsed.pools for ranges in one.asked.sets]
        check_room(call.version, (*families, *(own.address.family for own in overrides.addresses)))
    if not isinstance(rehearsed.outcome, Granted):
        return None
    return json.loads(render_result(call.version, rehearsed.outcome, overrides))
