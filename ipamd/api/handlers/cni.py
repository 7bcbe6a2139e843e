"""Owns the CNI calls of a server: from the plugin's bytes to the bytes that it prints."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web

from ipamd.api.access import SOCKET_CALLER, Caller, ForNodes, Least, caller_on
from ipamd.api.cni import Answer, Answered, Progress
from ipamd.api.gate import Gate
from ipamd.api.intake import deadline_after_s, read_body
from ipamd.api.redaction import redacted_error, redacted_sentence, sees_all
from ipamd.api.resolving import overrides_of
from ipamd.cni.call import AddCall, AnyCall, CheckCall, DelCall, GcCall, StatusCall, named_node, parse
from ipamd.cni.errors import NOT_AVAILABLE, CniError
from ipamd.cni.result import check_room, render_result
from ipamd.core.commands import Add, Del
from ipamd.core.entries import KEEP_INTERNAL_MS
from ipamd.core.model import Owner
from ipamd.core.ports import Unavailable
from ipamd.core.spooled import SpooledCall
from ipamd.errors import ApiError
from ipamd.service import Services
from ipamd.service.checks import Claimed
from ipamd.service.collection import Sweep
from ipamd.service.request import Key, Request
from ipamd.service.spooling import Faulty, Undeliverable

AGENT = "Ipamd-Agent"
"""The header by which an agent says that it keeps calls itself, and in which order it sends them."""

_log = logging.getLogger("ipamd.cni")


@dataclass(frozen=True, slots=True)
class _Caller:
    services: Services
    caller: Caller
    request: Request
    headers: Mapping[str, str]
    body: bytes
    progress: Progress

    @property
    def is_plugin(self) -> bool:
        """Whether nobody stands between: then this server keeps what it cannot do, and the order of calls."""
        return AGENT not in self.headers


def server_call(services: Services, gate: Gate, verb: str) -> Answer:
    """Answers the calls of one verb from the cluster's state."""

    async def answer(request: web.Request, progress: Progress) -> Answered:
        if verb == "del":  # what gives back neither waits for what takes nor is ever too much
            caller = await gate.admit(request, Least.OPERATOR, ForNodes.OWN, gives_back=True)
            with gate.room(request, caller):
                return await _answered(services, caller, verb, request, progress)
        caller = await gate.admit(request, Least.OPERATOR, ForNodes.OWN)
        with gate.room(request, caller):
            async with gate.share(request, caller):
                return await _answered(services, caller, verb, request, progress)

    return answer


async def _answered(
    services: Services, caller: Caller, verb: str, request: web.Request, progress: Progress
) -> Answered:
    body = await read_body(request)
    try:
        call = progress.call = _read(services, caller, verb, request.headers, body)
    except (CniError, ApiError) as error:
        if request.headers.get("Ipamd-Spooled") == "true":  # an agent's, which asks no second time
            deadline_s = deadline_after_s(progress.began_s, None)
            await _tell(services, error, request.headers, Request(caller.by, progress.request_id, deadline_s))
        raise
    if caller.local and call.node == services.facts.whole_node and call.start is not None and not call.start.spooled:
        services.sandboxes.boot_id = call.start.boot_id
    deadline_s = deadline_after_s(progress.began_s, call.deadline_ms)
    asked = Request(caller.by, progress.request_id, deadline_s, _key(caller, request, body))
    who = _Caller(services, caller, asked, request.headers, body, progress)
    try:
        return await _VERBS[type(call)](who, call)
    except (CniError, ApiError) as error:
        raise _as_seen(error, caller, call) from error


def _as_seen(error: CniError | ApiError, caller: Caller, call: AnyCall) -> CniError | ApiError:
    """A node is told of its own containers alone; which node the other one is on it may know."""
    if sees_all(caller):
        return error
    if isinstance(error, ApiError):
        return redacted_error(error, caller)
    msg, details = (
        redacted_sentence(text, caller, getattr(call, "container_id", None)) for text in (error.msg, error.details)
    )
    return CniError(error.code, msg, details, error.version)


def _key(caller: Caller, request: web.Request, body: bytes) -> Key | None:
    """The key under which an agent sends a call again, to another server, when it does not know what became of it."""
    given = request.headers.get("Idempotency-Key")
    if given is None or AGENT not in request.headers:
        return None
    return Key.of(caller.scope, given, request.method, request.raw_path, body)._replace(keep_ms=KEEP_INTERNAL_MS)


async def _add(who: _Caller, call: AddCall) -> Answered:
    services, request = who.services, who.request
    _warn(services, call)
    await _wait_for_spooled(who)
    overrides = await overrides_of(services, call, is_here=who.is_plugin)
    if call.one_of_family:  # two of one family have no room in the result: found out before anything is kept
        families = await services.allocation.families(call.requests, request)
        check_room(call.version, (*families, *(own.address.family for own in overrides.addresses)))
    inode = await services.sandboxes.inode(call.netns) if who.caller.local else call.netns_inode
    command = Add(
        request.origin,
        call.requests,
        call.pod_ref,
        call.ifname,
        Owner(call.container_id, call.node, call.cni_network, call.netns, inode),
        call.start,
        call.pod_uid,
        call.addresses,
    )
    done = await services.allocation.add(command, request)
    return Answered(done.index, render_result(call.version, done.value, overrides))


def _warn(services: Services, call: AddCall) -> None:
    """Say once what does not do here what it did elsewhere."""
    for warning in call.warnings:
        if services.notices.is_new(f"{call.cni_network}: {warning}"):
            _log.warning("configuration of CNI network %s: %s", call.cni_network, warning)


async def _delete(who: _Caller, call: DelCall) -> Answered:
    services, request = who.services, who.request
    services.sandboxes.forget(call.container_id, call.ifname)

    async def attempt(deadline_s: float) -> int:
        done = await services.allocation.delete(_command(request, call), replace(request, deadline_s=deadline_s))
        return done.index

    if services.spooling is None or not who.is_plugin:
        return Answered(await attempt(request.deadline_s))
    aside = SpooledCall.of(who.headers, who.body, request.request_id, services.clock.wall_ms())
    index = await services.spooling.take(aside, attempt, request.deadline_s)
    who.progress.is_spooled = index is None
    return Answered(services.applied() if index is None else index)


def _command(request: Request, call: DelCall) -> Del:
    return Del(request.origin, call.node, call.cni_network, call.container_id, call.ifname, call.start)


async def _check(who: _Caller, call: CheckCall) -> Answered:
    claimed = Claimed(call.requests, call.node, call.cni_network, call.container_id, call.ifname, call.previous)
    return Answered(await who.services.allocation.check(claimed, who.request))


async def _gc(who: _Caller, call: GcCall) -> Answered:
    await _wait_for_spooled(who)
    sweep = Sweep(call.node, call.cni_network, call.valid, call.start, who.caller.local, call.looked)
    done = await who.services.collection.gc(sweep, who.request)
    return Answered(done.index)


async def _status(who: _Caller, call: StatusCall) -> Answered:
    why = await who.services.allocation.serves(call.requests, who.request)
    if why is not None:
        raise CniError(NOT_AVAILABLE, f"no ADD could be served: {why}")
    return Answered(who.services.applied())


_VERBS: dict[type[AnyCall], Callable[[_Caller, Any], Awaitable[Answered]]] = {
    AddCall: _add,
    DelCall: _delete,
    CheckCall: _check,
    GcCall: _gc,
    StatusCall: _status,
}


async def _wait_for_spooled(who: _Caller) -> None:
    if who.services.spooling is not None and who.is_plugin:
        await who.services.spooling.clear(who.request.deadline_s)


def _read(services: Services, caller: Caller, verb: str, headers: Mapping[str, str], body: bytes) -> AnyCall:
    """A call that its caller may make. Raises CniError, ApiError."""
    facts = services.facts
    call = parse(verb, headers, body, node=facts.node, cluster=facts.cluster)
    caller.own(call.node)
    return call


async def deliver(services: Services, spooled: SpooledCall, deadline_s: float) -> None:
    """Carry out a call that this server has put aside. Raises Unavailable, Undeliverable."""
    headers = {**spooled.headers, "Ipamd-Spooled": "true"}
    request = Request(caller_on(services.facts.whole_node).by, spooled.request_id, deadline_s)
    try:
        call = _read(services, SOCKET_CALLER, "del", headers, spooled.body)
        if isinstance(call, DelCall):
            await services.allocation.delete(_command(request, call), request)
    except Unavailable:
        raise
    except (CniError, ApiError) as error:
        if isinstance(error, ApiError) and error.row.status >= 500:
            raise Faulty(error.detail, "unknown") from error
        await _tell(services, error, headers, request)
        raise Undeliverable(str(error)) from error
    except Exception as error:
        _log.exception("a spooled DEL failed for a reason that nobody foresaw")  # the boundary of the process
        raise Faulty("this server made a mistake; its log has the reason", "unknown") from error


async def _tell(services: Services, error: CniError | ApiError, headers: Mapping[str, str], request: Request) -> None:
    """Make an event of a spooled DEL that will never be carried out. Raises Unavailable: then it is asked again."""
    facts = services.facts
    node = named_node(headers, node=facts.node, cluster=facts.cluster) or headers.get("Ipamd-Node", facts.node)
    container = headers.get("CNI-ContainerID", "")
    detail = f"DEL of container {container[:128]!r} after the cluster was away: {error}"
    await services.allocation.note_refused(node[:128], detail[:1000], request)
