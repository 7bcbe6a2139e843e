"""Owns the frame of every CNI call, on a server's socket or an agent's: one answer whatever happens, and its record.

The answer is a CNI result or a CNI error object, never anything else; this is the path that has to be quick.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Handler as WebHandler

from ipamd.api.buckets import Buckets, Rate
from ipamd.api.front import Front
from ipamd.api.intake import SERVER, request_id_of
from ipamd.api.problems import failure_of
from ipamd.cni.call import AddCall, AnyCall, CheckCall, DelCall, StatusCall, named_node, named_pod
from ipamd.cni.errors import CniError, of_api_error, render_error
from ipamd.errors import ApiError
from ipamd.service.calls import CallRecord

CONTENT_TYPE = "application/cni+json"
PREFIX = "/cni/v1"

_AT_THE_GATE = (401, 429)
_NOTED = Rate(1, 20)
"""Refusals at the gate that are remembered, of each kind."""

_log = logging.getLogger("ipamd.cni")


class Progress:
    """What is known of a call so far: for its error object and its record."""

    __slots__ = ("began_s", "call", "headers", "is_spooled", "request_id")

    def __init__(self, request_id: str, began_s: float, headers: Mapping[str, str]) -> None:
        self.request_id, self.began_s, self.headers = request_id, began_s, headers
        self.call: AnyCall | None = None
        self.is_spooled = False


@dataclass(frozen=True, slots=True)
class Answered:
    """What the plugin is to print. Another status than 200: `body` is an error object with this code and sentence."""

    index: int
    body: bytes = b""
    status: int = 200
    code: int = 0
    msg: str = ""


Answer = Callable[[web.Request, Progress], Awaitable[Answered]]
"""Carries a call out. May raise anything."""


def cni_endpoint(front: Front, verb: str, answer: Answer) -> WebHandler:
    """The aiohttp handler of a CNI verb."""
    noted = Buckets(_NOTED, front.clock)

    async def serve(request: web.Request) -> web.StreamResponse:
        progress = _begin(front, request)
        try:
            done = await answer(request, progress)
        except ConnectionError:
            raise  # the plugin is gone: nobody is there to be answered
        except Exception as error:  # noqa: BLE001 - the boundary of the process: the plugin gets an error object, always
            return _fail(front, verb, progress, error, noted)
        _note(front, verb, progress, done.code, done.msg)
        headers = _headers(progress.request_id, done.index)
        return web.Response(status=done.status, body=done.body, headers=headers)

    return serve


def refuse_unknown(front: Front, request: web.Request, error: ApiError, request_id: str) -> web.Response:
    """The answer to a CNI call that has no handler."""
    return _refuse(front, of_api_error(error), Progress(request_id, front.clock.monotonic_s(), request.headers))


def _fail(front: Front, verb: str, progress: Progress, error: BaseException, noted: Buckets) -> web.Response:
    """What an exception is to a CNI caller. Those who did not even get in do not fill log and memory."""
    if isinstance(error, CniError):
        _note(front, verb, progress, error.code, error.msg)
        return _refuse(front, error, progress)
    failure = failure_of(error, progress.request_id)
    refused = of_api_error(failure.error)
    if failure.error.row.status not in _AT_THE_GATE or not noted.take(failure.error.row.code):
        _note(front, verb, progress, refused.code, refused.msg)
    status = 429 if failure.error.row.status == 429 else refused.status
    return _refuse(front, refused, progress, status, failure.headers.get("Retry-After"))


def _begin(front: Front, request: web.Request) -> Progress:
    return Progress(request_id_of(request.headers, front.random), front.clock.monotonic_s(), request.headers)


def _headers(request_id: str, index: int) -> dict[str, str]:
    return {"Content-Type": CONTENT_TYPE, "X-Request-Id": request_id, "Ipamd-Index": str(index), "Server": SERVER}


def _refuse(
    front: Front, error: CniError, progress: Progress, status: int | None = None, retry_after: str | None = None
) -> web.Response:
    """`retry_after`: another server, or this one later, may have an answer (it tells an agent so)."""
    call = progress.call
    body = render_error(call.version if call else None, error, _node(front, progress), progress.request_id)
    headers = _headers(progress.request_id, front.applied())
    if retry_after is not None:
        headers["Retry-After"] = retry_after
    return web.Response(status=status or error.status, body=body, headers=headers)


def _note(front: Front, verb: str, progress: Progress, code: int, msg: str) -> None:
    """Keep the call for `GET /v1/calls`; a refusal is also a line in the log."""
    call, clock = progress.call, front.clock
    record = CallRecord(
        at_ms=clock.wall_ms(),
        verb=verb,
        node=_node(front, progress),
        pod_ref=_pod_ref(front, progress),
        pools=call.pools if isinstance(call, (AddCall, CheckCall, StatusCall)) else (),
        container_id=call.container_id if isinstance(call, (AddCall, DelCall, CheckCall)) else None,
        ifname=call.ifname if isinstance(call, (AddCall, DelCall, CheckCall)) else None,
        code=code,
        took_ms=(clock.monotonic_s() - progress.began_s) * 1000,
        request_id=progress.request_id,
        spooled=progress.is_spooled,
        msg=msg,
    )
    front.calls.note(record)
    if code:
        fields = {"verb": verb, "code": code, "node": record.node, "request_id": record.request_id}
        _log.info("CNI call refused: %s", msg, extra=fields)


def _node(front: Front, progress: Progress) -> str:
    """Whose call it is: as it says where it cannot be read, else of whoever answers."""
    if progress.call is not None:
        return progress.call.node
    facts = front.facts
    return named_node(progress.headers, node=facts.node, cluster=facts.cluster) or facts.node


def _pod_ref(front: Front, progress: Progress) -> str | None:
    """Whom a call is about: what an ADD was carried out for, else what it says, be the rest of it never so wrong."""
    if isinstance(progress.call, AddCall):
        return progress.call.pod_ref
    if progress.call is None or isinstance(progress.call, (DelCall, CheckCall)):
        return named_pod(progress.headers, node=front.facts.node, cluster=front.facts.cluster)
    return None
