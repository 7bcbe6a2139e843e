"""Owns the making of the aiohttp application from the use cases."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler as WebHandler
from aiohttp.typedefs import Middleware

from ipamd.api.access import NOBODY, Access, Least
from ipamd.api.body import MAX_BODY_BYTES
from ipamd.api.cni import PREFIX as CNI
from ipamd.api.cni import cni_endpoint, refuse_unknown
from ipamd.api.endpoint import endpoint, headers_of
from ipamd.api.exchange import Exchange, Reply, Route
from ipamd.api.front import Front
from ipamd.api.gate import Gate
from ipamd.api.handlers.cni import server_call
from ipamd.api.hosts import only_own_hosts
from ipamd.api.intake import FRONT, request_id_of
from ipamd.api.internal import add_routes
from ipamd.api.limits import Rates
from ipamd.api.openapi import document
from ipamd.api.page import add_page
from ipamd.api.problems import Failure, failure_of, respond
from ipamd.api.refused import RefusalLog
from ipamd.api.routes import ROUTES
from ipamd.cni.call import VERBS
from ipamd.service import Services
from ipamd.service.inside import Inside

__all__ = ["Access", "build"]


def build(
    services: Services,
    access: Access,
    inside: Inside | None = None,
    rates: Rates | None = None,
    *,
    hosts: Collection[str] = (),
) -> web.Application:
    """The application for one kind of listener. Serve it with `ipamd.api.server.Listener`.

    With `inside` the other members are served too. `rates` None: those of a real server. `hosts`: its own names,
    where it asks for no tokens.
    """
    app, gate = framed(services), Gate(services, access, rates)
    if access is not Access.SOCKET:
        app.middlewares.insert(1, _paced(services, gate))
    if access is Access.OPEN:
        app.middlewares.append(only_own_hosts(services, hosts))
    for verb in VERBS:
        app.router.add_post(f"{CNI}/{verb}", cni_endpoint(services, verb, server_call(services, gate, verb)))
    for route in (*ROUTES, _openapi_route()):
        handler = endpoint(services, gate, route)
        if route.method == "GET":
            app.router.add_get(route.path, handler, allow_head=route.heads)
        else:
            app.router.add_route(route.method, route.path, handler)
    add_page(app)
    app.on_shutdown.append(_end_streams(services))
    if inside is not None:
        add_routes(app, services, inside)
    return app


def _end_streams(services: Services) -> Callable[[web.Application], Awaitable[None]]:
    async def end(_app: web.Application) -> None:
        services.feed.close()

    return end


def framed(front: Front) -> web.Application:
    """An application without routes, in which every error has the one shape."""
    app = web.Application(middlewares=[_counted(front), _guard(front)], client_max_size=MAX_BODY_BYTES)
    app[FRONT] = front
    return app


def _counted(front: Front) -> Middleware:
    """Counts the answers; those to CNI calls are counted as such."""

    @web.middleware
    async def counted(request: web.Request, handler: WebHandler) -> web.StreamResponse:
        response = await handler(request)
        if not request.path.startswith(CNI):
            resource = request.match_info.route.resource
            path = None if resource is None else resource.canonical
            front.answers.note(request.method, path, response.status)
        return response

    return counted


def _paced(services: Services, gate: Gate) -> Middleware:
    """Counts what no route of the API has admitted, so that nobody asks for it as fast as he can."""

    @web.middleware
    async def paced(request: web.Request, handler: WebHandler) -> web.StreamResponse:
        response = await handler(request)
        try:
            await gate.count(request)
        except Failure as failure:
            services.refusals.note(failure.error.row.code)
            request_id = request_id_of(request.headers, services.random)
            return respond(failure, request_id, headers_of(services, request_id))
        return response

    return paced


def _guard(front: Front) -> Middleware:
    """Gives the errors of the router, which no handler sees, the shape of all others, and a line in the log."""
    refused = RefusalLog(front.clock)

    @web.middleware
    async def guard(request: web.Request, handler: WebHandler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as error:
            request_id = request_id_of(request.headers, front.random)
            failure = failure_of(error, request_id)
            refused.note(request, failure.error, NOBODY.by, request_id)
            if request.path.startswith("/cni/"):
                return refuse_unknown(front, request, failure.error, request_id)
            return respond(failure, request_id, headers_of(front, request_id))

    return guard


def _openapi_route() -> Route:
    described = msgspec.Raw(msgspec.json.encode(document(ROUTES)))

    async def openapi(_exchange: Exchange[None, None]) -> Reply:
        return Reply(None, described)

    return Route("GET", "/openapi.json", openapi, "Describe this API", Least.READER)
