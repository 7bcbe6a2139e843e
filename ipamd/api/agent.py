"""Owns the application on an agent's socket: CNI calls, what the agent knows itself, and the cluster behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler as WebHandler

from ipamd.api.app import framed
from ipamd.api.body import MAX_BODY_BYTES, MAX_IMPORT_BYTES
from ipamd.api.cni import PREFIX, Answer, Answered, Progress, cni_endpoint
from ipamd.api.endpoint import JSON, headers_of
from ipamd.api.front import Front
from ipamd.api.handlers.calls import calls_page
from ipamd.api.intake import deadline_after_s, left_ms_of, read_body, request_id_of
from ipamd.api.problems import failure_of, respond
from ipamd.api.query import read_query
from ipamd.api.schema.admin import HealthShown
from ipamd.api.schema.calls import CallsQuery
from ipamd.cni.answer import read_error
from ipamd.cni.call import VERBS, parse
from ipamd.cni.environment import read_caller
from ipamd.cni.errors import CniError
from ipamd.errors import ApiError
from ipamd.service.ports import EXPOSED, Exposition
from ipamd.service.wire import Asked, Said

_PASSED_ON: Final = ("Accept", "Content-Type", "Idempotency-Key")
_PASSED_BACK: Final = ("Content-Type", "Ipamd-Index", "Ipamd-Stale", "Retry-After", "Allow", "WWW-Authenticate")
_IMPORT: Final = "/v1/import"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE"})


class NodeAgent(Front, Protocol):
    """What answers the socket: `ipamd.agent.Agent` is one."""

    @property
    def spooled(self) -> int:
        """How many DELs wait for the cluster."""

    @property
    def exposition(self) -> Exposition:
        """Its metrics."""

    async def cni(
        self, verb: str, headers: Mapping[str, str], body: bytes, request_id: str, deadline_s: float
    ) -> Said | None:
        """Carry out a CNI call; None: a DEL that is put aside, which must be valid.

        Raises CniError, ApiError, Unavailable.
        """

    async def api(self, asked: Asked, deadline_s: float) -> Said:
        """Carry out another request, with the rights of this node's token. Raises Unavailable."""


def build_agent(agent: NodeAgent) -> web.Application:
    """The application. Serve it with `ipamd.api.server.Listener`."""
    app = framed(agent)
    for verb in VERBS:
        app.router.add_post(f"{PREFIX}/{verb}", cni_endpoint(agent, verb, _agent_call(agent, verb)))
    app.router.add_get("/livez", _live(agent))
    app.router.add_get("/metrics", _metrics(agent))
    app.router.add_get("/v1/calls", _calls(agent))
    app.router.add_route("*", "/{path:.*}", _behind(agent))
    return app


def _agent_call(agent: NodeAgent, verb: str) -> Answer:
    async def answer(request: web.Request, progress: Progress) -> Answered:
        headers, body = request.headers, await read_body(request)
        try:
            progress.call = parse(verb, headers, body, node=agent.facts.node, cluster=agent.facts.cluster)
        except CniError:
            if verb == "del":  # what could be put aside must be what a server will take
                raise
        caller = read_caller(headers, agent.facts.node, agent.facts.cluster)
        deadline_s = deadline_after_s(progress.began_s, caller.deadline_ms)
        said = await agent.cni(verb, headers, body, progress.request_id, deadline_s)
        if said is None:
            progress.is_spooled = True
            return Answered(agent.applied())
        if said.status == 200:
            return Answered(said.index, said.body)
        error = read_error(said.body)
        return Answered(said.index, said.body, said.status, error.code, error.msg)

    return answer


def _live(agent: NodeAgent) -> WebHandler:
    """The process answers."""

    async def live(request: web.Request) -> web.StreamResponse:
        return _shown(agent, request, HealthShown())

    return live


def _calls(agent: NodeAgent) -> WebHandler:
    """The last CNI calls of this node."""

    async def calls(request: web.Request) -> web.StreamResponse:
        try:
            query = read_query(request.rel_url.raw_query_string, CallsQuery)
            return _shown(agent, request, calls_page(agent.calls, query, agent.spooled))
        except ApiError as error:
            return _problem(agent, request, error)

    return calls


def _metrics(agent: NodeAgent) -> WebHandler:
    """The metrics of the agent."""

    async def metrics(request: web.Request) -> web.StreamResponse:
        headers = headers_of(agent, request_id_of(request.headers, agent.random))
        body = await agent.exposition.exposed()
        return web.Response(body=body, headers={**headers, "Content-Type": EXPOSED})

    return metrics


def _behind(agent: NodeAgent) -> WebHandler:
    """All the rest is the cluster's to answer: the server knows what a node may."""

    async def pass_on(request: web.Request) -> web.StreamResponse:
        if request.path.startswith("/cni/"):
            raise web.HTTPNotFound
        if request.method not in _METHODS:
            raise web.HTTPMethodNotAllowed(request.method, sorted(_METHODS))
        request_id = request_id_of(request.headers, agent.random)
        try:
            deadline_s = deadline_after_s(agent.clock.monotonic_s(), left_ms_of(request.headers))
            headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
            body = await read_body(request, MAX_IMPORT_BYTES if request.path == _IMPORT else MAX_BODY_BYTES)
            asked = Asked(request.method, request.rel_url.raw_path_qs, {**headers, "X-Request-Id": request_id}, body)
            said = await agent.api(asked, deadline_s)
        except ConnectionError:
            raise  # the client is gone: nobody is there to be answered
        except Exception as error:  # noqa: BLE001 - the boundary of the process, as for every request
            return _problem(agent, request, error)
        back = {name: said.headers[name] for name in _PASSED_BACK if name in said.headers}
        return web.Response(
            status=said.status, body=said.body, headers={**headers_of(agent, request_id, said.index), **back}
        )

    return pass_on


def _shown(agent: NodeAgent, request: web.Request, value: object) -> web.Response:
    headers = headers_of(agent, request_id_of(request.headers, agent.random))
    return web.Response(body=msgspec.json.encode(value), headers={**headers, "Content-Type": JSON})


def _problem(agent: NodeAgent, request: web.Request, error: BaseException) -> web.Response:
    request_id = request_id_of(request.headers, agent.random)
    return respond(failure_of(error, request_id), request_id, headers_of(agent, request_id))
