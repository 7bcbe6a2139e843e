"""Owns the way of an API request: who asks, may they, what do they send, and whatever happens one shape of answer."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler as WebHandler

from ipamd.api.access import NOBODY, Caller, ForNodes
from ipamd.api.body import MAX_BODY_BYTES, read_json, shaped
from ipamd.api.exchange import FEW, Exchange, Later, Route, Streamed, Text
from ipamd.api.front import Front
from ipamd.api.gate import ASKED_BY, Gate
from ipamd.api.intake import SERVER, deadline_after_s, left_ms_of, read_body, request_id_of
from ipamd.api.problems import Failure, failure_of, respond
from ipamd.api.query import read_query
from ipamd.api.redaction import redacted, redacted_error
from ipamd.api.streaming import EventStream, send_events
from ipamd.errors import ApiError
from ipamd.service import Services
from ipamd.service.request import Key, Request

JSON = "application/json; charset=utf-8"
MAX_KEY = 128


def endpoint(services: Services, gate: Gate, route: Route) -> WebHandler:
    """The aiohttp handler of a route."""

    async def serve(request: web.Request) -> web.StreamResponse:
        request_id = request_id_of(request.headers, services.random)
        caller = NOBODY
        try:
            caller = await gate.admit(
                request, route.least, route.nodes, gives_back=route.gives_back, enrols=route.enrols
            )
            if route.nodes is ForNodes.OWN and route.writes:
                caller.own(request.match_info["node"])
            with gate.room(request, caller, route.most_bytes):
                exchange = await _parse(services, route, request, caller, request_id)
                async with gate.turn(route, exchange):
                    reply = await route.handler(exchange)
                    whose = None if route.writes else request.match_info.get("node")
                    body = await _written(reply.value, caller, whose)
        except ConnectionError:
            raise  # the client is gone: nobody is there to be answered
        except Exception as error:  # noqa: BLE001 - the boundary of the process: a client gets an answer, never a traceback
            failure = failure_of(error, request_id)
            gate.refused.note(request, failure.error, request.get(ASKED_BY, caller.by), request_id)
            shown = Failure(redacted_error(failure.error, caller), failure.headers)
            return respond(shown, request_id, headers_of(services, request_id))
        headers = headers_of(services, request_id, reply.index, stale=exchange.request.stale)
        if isinstance(reply.value, EventStream):
            return await send_events(request, reply.value, headers, lambda: gate.knows(request))
        if isinstance(body, Streamed):
            return await body.send(request, headers)
        if body is not None:
            headers["Content-Type"] = body.media_type
        return web.Response(status=reply.status, body=None if body is None else body.body, headers=headers)

    return serve


async def _parse(
    services: Services, route: Route, request: web.Request, caller: Caller, request_id: str
) -> Exchange[Any, Any]:
    deadline_s = deadline_after_s(services.clock.monotonic_s(), left_ms_of(request.headers))
    query: Any = read_query(request.rel_url.raw_query_string, route.query)
    raw = await read_body(request, route.most_bytes)
    if len(raw) <= MAX_BODY_BYTES:
        body = _read_shape(raw, route.body)
    else:  # seconds of work, in which the others want to be served
        body = await asyncio.to_thread(_read_shape, raw, route.body)
    key = _key(request, caller, raw) if route.writes else None
    stale = getattr(query, "stale", None) is not None
    return Exchange(
        services,
        caller,
        Request(caller.by, request_id, deadline_s, key, stale),
        request.match_info,
        query,
        body,
        request.headers,
    )


def _read_shape(raw: bytes, shape: type | None) -> Any:
    if shape is None:
        if raw.strip() and read_json(raw) not in ({}, None):
            raise ApiError("invalid_request", "this takes no body")
        return None
    if not raw.strip():
        raise ApiError("invalid_request", "a JSON body is missing")
    return shaped(read_json(raw), shape, "body")


def _key(request: web.Request, caller: Caller, raw: bytes) -> Key | None:
    given = request.headers.get("Idempotency-Key")
    if given is None:
        return None
    if not 1 <= len(given) <= MAX_KEY or not given.isascii() or not given.isprintable():
        raise ApiError("invalid_request", f"header Idempotency-Key must be 1 to {MAX_KEY} printable ASCII characters")
    return Key.of(caller.scope, given, request.method, request.raw_path, raw)


def headers_of(front: Front, request_id: str, index: int | None = None, *, stale: bool = False) -> dict[str, str]:
    """The headers of every answer; `index` None: what this process knows to be applied."""
    headers = {
        "X-Request-Id": request_id,
        "Ipamd-Index": str(front.applied() if index is None else index),
        "Server": SERVER,
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    if stale:
        headers["Ipamd-Stale"] = "true"
    return headers


async def _written(value: Any, caller: Caller, node: str | None) -> Text | Streamed | None:
    """The body of an answer, as its caller may see it. A long list is written beside the loop, which others need."""
    if isinstance(value, Later) and value.items > FEW:
        return await asyncio.to_thread(_write, value, caller, node)
    return _write(value, caller, node)


def _write(value: Any, caller: Caller, node: str | None) -> Text | Streamed | None:
    if value is None or isinstance(value, EventStream):
        return None
    if isinstance(value, Text | Streamed):
        return value
    shown = value.make() if isinstance(value, Later) else value
    return Text(JSON, msgspec.json.encode(redacted(shown, caller, node)))
