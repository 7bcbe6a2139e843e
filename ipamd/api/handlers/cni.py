"""Owns the CNI calls: from the plugin's bytes to the bytes that it prints.

Whatever happens, the answer is a CNI result or a CNI error object; this is the path that has to be quick.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler as WebHandler

from ipamd.api.access import Access, Caller, ForNodes, Least
from ipamd.api.endpoint import admit
from ipamd.api.intake import SERVER, deadline_after_s, read_body, request_id_of
from ipamd.api.problems import failure_of
from ipamd.api.resolving import overrides_of
from ipamd.cni.call import AddCall, AnyCall, CheckCall, DelCall, GcCall, StatusCall, parse
from ipamd.cni.errors import NOT_AVAILABLE, CniError, of_api_error, render_error
from ipamd.cni.result import check_room, render_result
from ipamd.core.commands import Add, Del
from ipamd.core.model import Owner
from ipamd.service import Services
from ipamd.service.calls import CallRecord
from ipamd.service.checks import Claimed
from ipamd.service.collection import Sweep
from ipamd.service.request import At, Request

CONTENT_TYPE = "application/cni+json"

_log = logging.getLogger("ipamd.cni")


@dataclass(frozen=True, slots=True)
class _Caller:
    services: Services
    caller: Caller
    request: Request


class _Progress:
    """What is known of a call so far: for its error object and its record."""

    __slots__ = ("began_s", "call", "request_id")

    def __init__(self, request_id: str, began_s: float) -> None:
        self.request_id, self.began_s = request_id, began_s
        self.call: AnyCall | None = None


def cni_endpoint(services: Services, access: Access, verb: str) -> WebHandler:
    """The aiohttp handler of a CNI verb."""

    async def serve(request: web.Request) -> web.StreamResponse:
        progress = _begin(services, request)
        try:
            done = await _answer(services, access, verb, request, progress)
        except ConnectionError:
            raise  # the plugin is gone: nobody is there to be answered
        except Exception as error:  # noqa: BLE001 - the boundary of the process: the plugin gets an error object, always
            failure = cni_error_of(error, progress.request_id)
            _note(services, verb, progress, failure)
            return _refuse(services, failure, progress)
        _note(services, verb, progress, None)
        return web.Response(body=done.value, headers=_headers(progress.request_id, done.index))

    return serve


def cni_error_of(error: BaseException, request_id: str) -> CniError:
    """What an exception is to a CNI caller."""
    return error if isinstance(error, CniError) else of_api_error(failure_of(error, request_id).error)


def refuse_unknown(services: Services, request: web.Request, error: BaseException) -> web.Response:
    """The answer to a CNI call that has no handler."""
    progress = _begin(services, request)
    return _refuse(services, cni_error_of(error, progress.request_id), progress)


def _begin(services: Services, request: web.Request) -> _Progress:
    return _Progress(request_id_of(request.headers, services.random), services.clock.monotonic_s())


async def _answer(
    services: Services, access: Access, verb: str, request: web.Request, progress: _Progress
) -> At[bytes]:
    caller = admit(services, access, request, Least.OPERATOR, ForNodes.OWN)
    body = await read_body(request)
    facts = services.facts
    call = progress.call = parse(verb, request.headers, body, node=facts.node, cluster=facts.cluster)
    caller.own(call.node)
    deadline_s = deadline_after_s(progress.began_s, call.deadline_ms)
    asked = Request(caller.by, progress.request_id, deadline_s)
    return await _VERBS[type(call)](_Caller(services, caller, asked), call)


async def _add(who: _Caller, call: AddCall) -> At[bytes]:
    services, request = who.services, who.request
    _warn(services, call)
    overrides = await overrides_of(services, call)
    if call.one_of_family:  # two of one family have no room in the result: found out before anything is kept
        families = await services.allocation.families(call.requests, request)
        check_room(call.version, (*families, *(own.address.family for own in overrides.addresses)))
    inode = await services.sandboxes.inode(call.netns) if who.caller.local else None
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
    return At(done.index, render_result(call.version, done.value, overrides))


def _warn(services: Services, call: AddCall) -> None:
    """Say once what does not do here what it did elsewhere."""
    for warning in call.warnings:
        if services.notices.is_new(f"{call.cni_network}: {warning}"):
            _log.warning("configuration of CNI network %s: %s", call.cni_network, warning)


async def _delete(who: _Caller, call: DelCall) -> At[bytes]:
    request = who.request
    command = Del(request.origin, call.node, call.cni_network, call.container_id, call.ifname, call.start)
    done = await who.services.allocation.delete(command, request)
    return At(done.index, b"")


async def _check(who: _Caller, call: CheckCall) -> At[bytes]:
    claimed = Claimed(call.requests, call.node, call.cni_network, call.container_id, call.ifname, call.previous)
    return At(await who.services.allocation.check(claimed, who.request), b"")


async def _gc(who: _Caller, call: GcCall) -> At[bytes]:
    sweep = Sweep(call.node, call.cni_network, call.valid, call.start, who.caller.local)
    done = await who.services.collection.gc(sweep, who.request)
    return At(done.index, b"")


async def _status(who: _Caller, call: StatusCall) -> At[bytes]:
    why = await who.services.allocation.serves(call.requests, who.request)
    if why is not None:
        raise CniError(NOT_AVAILABLE, f"no ADD could be served: {why}")
    return At(who.services.log.status().applied, b"")


_VERBS: dict[type[AnyCall], Callable[[_Caller, Any], Awaitable[At[bytes]]]] = {
    AddCall: _add,
    DelCall: _delete,
    CheckCall: _check,
    GcCall: _gc,
    StatusCall: _status,
}


def _headers(request_id: str, index: int) -> dict[str, str]:
    return {"Content-Type": CONTENT_TYPE, "X-Request-Id": request_id, "Ipamd-Index": str(index), "Server": SERVER}


def _refuse(services: Services, error: CniError, progress: _Progress) -> web.Response:
    call = progress.call
    node, version = (call.node, call.version) if call else (services.facts.node, None)
    body = render_error(version, error, node, progress.request_id)
    return web.Response(
        status=error.status, body=body, headers=_headers(progress.request_id, services.log.status().applied)
    )


def _note(services: Services, verb: str, progress: _Progress, error: CniError | None) -> None:
    """Keep the call for `GET /v1/calls`; a refusal is also a line in the log."""
    call, clock = progress.call, services.clock
    code = error.code if error else 0
    record = CallRecord(
        at_ms=clock.wall_ms(),
        verb=verb,
        node=call.node if call else services.facts.node,
        pod_ref=call.pod_ref if isinstance(call, AddCall) else None,
        pools=call.pools if isinstance(call, (AddCall, CheckCall, StatusCall)) else (),
        container_id=call.container_id if isinstance(call, (AddCall, DelCall, CheckCall)) else None,
        ifname=call.ifname if isinstance(call, (AddCall, DelCall, CheckCall)) else None,
        code=code,
        took_ms=(clock.monotonic_s() - progress.began_s) * 1000,
        request_id=progress.request_id,
    )
    services.calls.note(record)
    if error is not None:
        fields = {"verb": verb, "code": code, "node": record.node, "request_id": record.request_id}
        _log.info("CNI call refused: %s", error.msg, extra=fields)
