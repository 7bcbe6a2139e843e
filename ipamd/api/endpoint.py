"""Owns the way of an API request: who asks, may they, what do they send, and whatever happens one shape of answer."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler as WebHandler

from ipamd.api.access import NOBODY, Access, Caller, ForNodes, Least, identify
from ipamd.api.body import MAX_BODY_BYTES, read_json, shaped
from ipamd.api.exchange import Exchange, Reply, Route
from ipamd.api.front import Front
from ipamd.api.intake import SERVER, deadline_after_s, left_ms_of, read_body, request_id_of
from ipamd.api.problems import failure_of, respond
from ipamd.api.query import read_query
from ipamd.errors import ApiError
from ipamd.service import Services
from ipamd.service.request import Key, Request

JSON = "application/json; charset=utf-8"
MAX_KEY = 128

_MISSING = "this needs a token, and none was sent (Authorization: Bearer TOKEN; ipamctl and the plugin: token-file)"
_UNKNOWN = "the token that was sent is unknown, revoked or expired"


def endpoint(services: Services, access: Access, route: Route) -> WebHandler:
    """The aiohttp handler of a route."""

    async def serve(request: web.Request) -> web.StreamResponse:
        request_id = request_id_of(request.headers, services.random)
        try:
            caller = admit(services, access, request, route.least, route.nodes)
            exchange = await _parse(services, route, request, caller, request_id)
            reply = await route.handler(exchange)
        except ConnectionError:
            raise  # the client is gone: nobody is there to be answered
        except Exception as error:  # noqa: BLE001 - the boundary of the process: a client gets an answer, never a traceback
            return respond(failure_of(error, request_id), request_id, headers_of(services, request_id))
        return _render(reply, headers_of(services, request_id, reply.index, stale=exchange.request.stale))

    return serve


def admit(services: Services, access: Access, request: web.Request, least: Least, nodes: ForNodes) -> Caller:
    """Who asks, if they may. Raises ApiError."""
    headers = request.headers
    if access is not Access.SOCKET:
        _refuse_foreign_pages(headers.get("Origin"), headers.get("Host"))
    caller = identify(access, headers.get("Authorization"), services.tokens)
    if caller is None:
        if least is Least.ANYBODY:
            return NOBODY
        raise ApiError("unauthorized", _MISSING if headers.get("Authorization") is None else _UNKNOWN)
    if not caller.may(least, nodes):
        raise ApiError("forbidden", f"the role {caller.role} may not do this; it takes {least.name.lower()}")
    return caller


def _refuse_foreign_pages(origin: str | None, host: str | None) -> None:
    """A browser names the page that sends a request: one of another site has no business here."""
    if origin is None:
        return
    try:
        is_own = urlsplit(origin).netloc == (host or "")
    except ValueError:  # brackets without an IPv6 address between them
        is_own = False
    if not is_own:
        raise ApiError("forbidden", "a page of another origin may not use this API")


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
        services, caller, Request(caller.by, request_id, deadline_s, key, stale), request.match_info, query, body
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


def _render(reply: Reply, headers: dict[str, str]) -> web.Response:
    if reply.value is None:
        return web.Response(status=reply.status, headers=headers)
    headers["Content-Type"] = JSON
    return web.Response(status=reply.status, body=msgspec.json.encode(reply.value), headers=headers)
