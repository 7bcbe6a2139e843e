"""Owns who gets in: who asks, whether they may, and whether they ask too often; all before a body is read."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import Any, Final
from urllib.parse import urlsplit

from aiohttp import web

from ipamd.api.access import NOBODY, SOCKET_CALLER, Access, Caller, ForNodes, Least, caller_on, identify, why_not
from ipamd.api.bodies import Bodies, announced_bytes
from ipamd.api.body import MAX_BODY_BYTES, MAX_IMPORT_BYTES
from ipamd.api.exchange import FEW, Exchange, Route
from ipamd.api.intake import deadline_after_s, left_ms_of
from ipamd.api.lane import Lane
from ipamd.api.limits import Limiter, Rates
from ipamd.api.places import network_of
from ipamd.api.problems import Failure
from ipamd.api.refused import RefusalLog
from ipamd.api.shares import Shares
from ipamd.core.model import Role
from ipamd.errors import ApiError
from ipamd.service import Services

KNOWN: Final = web.RequestKey("known", str)
"""Where a request says who of those that may do something has sent it: its connection is no stranger's any more."""

COUNTED: Final = web.RequestKey("counted", bool)
"""Where it says that it was counted among those of strangers."""

ASKED_BY: Final = web.RequestKey("asked_by", str)
"""Where it says the same for people, as `by` of an event does; also of who may not do what it asks for."""

CALLS_OF_NODE: Final = 16
"""CNI calls with one node's token that are worked on at a time."""

_BODIES_BYTES: Final = 16 * MAX_BODY_BYTES
_BODIES_OF_CALLER_BYTES: Final = 4 * MAX_BODY_BYTES


class Gate:
    """The way in of one listener."""

    def __init__(self, services: Services, access: Access, rates: Rates | None = None) -> None:
        self._services, self._access = services, access
        self.refused = RefusalLog(services.clock)
        self._limiter = Limiter(services.clock, rates)
        of_caller = _BODIES_BYTES if access is Access.SOCKET else _BODIES_OF_CALLER_BYTES
        self._bodies = Bodies(_BODIES_BYTES, of_caller)
        self._nodes, self._lane = Shares(CALLS_OF_NODE), Lane()
        self._imports = Bodies(MAX_IMPORT_BYTES, MAX_IMPORT_BYTES)

    async def admit(
        self, request: web.Request, least: Least, nodes: ForNodes, *, gives_back: bool = False, enrols: bool = False
    ) -> Caller:
        """Who asks, if they may. What gives an address back is never too much. Raises ApiError, Failure."""
        try:
            caller = await self._identify(request, least, gives_back=gives_back)
            _check_role(caller, least, nodes, enrols=enrols)
        except (ApiError, Failure) as refused:
            error = refused.error if isinstance(refused, Failure) else refused
            self._services.refusals.note(error.row.code)
            raise
        return caller

    def room(
        self, request: web.Request, caller: Caller, most_bytes: int = MAX_BODY_BYTES
    ) -> AbstractContextManager[None]:
        """Room for the body of a request while it is worked on. Raises Unavailable."""
        bodies = self._bodies if most_bytes <= MAX_BODY_BYTES else self._imports
        return bodies.room(caller.scope, announced_bytes(request, most_bytes))

    def share(self, request: web.Request, caller: Caller) -> AbstractAsyncContextManager[None]:
        """A place among those of a node for a CNI call. Raises ApiError, Unavailable where none gets free in time."""
        if caller.role is not Role.NODE:
            return nullcontext()
        now_s = self._services.clock.monotonic_s()
        return self._nodes.one(caller.scope, deadline_after_s(now_s, left_ms_of(request.headers)) - now_s)

    def turn(self, route: Route, exchange: Exchange[Any, Any]) -> AbstractAsyncContextManager[None]:
        """The turn of what may take long. Raises Unavailable where it does not come in time."""
        if not route.lists or exchange.query.limit <= FEW:
            return nullcontext()
        patience_s = exchange.request.deadline_s - self._services.clock.monotonic_s()
        return self._lane.turn(exchange.caller.scope, patience_s)

    def knows(self, request: web.Request) -> bool:
        """Whether who sent a request long ago could send it now: a token may have ended since."""
        return identify(self._access, request.headers.get("Authorization"), self._services.tokens) is not None

    async def count(self, request: web.Request) -> None:
        """Count a request that nobody was asked to admit: also what no route takes. Raises Failure."""
        if KNOWN in request or COUNTED in request:
            return
        caller = identify(self._access, request.headers.get("Authorization"), self._services.tokens)
        if caller is None:
            await self._count_stranger(request)
        else:
            key = _address(request) if self._access is Access.OPEN else caller.scope
            await self._limiter.known(key, caller.role)

    async def _count_stranger(self, request: web.Request) -> None:
        request[COUNTED] = True
        await self._limiter.stranger(_address(request))

    async def _identify(self, request: web.Request, least: Least, *, gives_back: bool) -> Caller:
        headers = request.headers
        authorization = headers.get("Authorization")
        if self._access is not Access.SOCKET:
            _refuse_foreign_pages(headers.get("Origin"), headers.get("Host"))
        caller = identify(self._access, authorization, self._services.tokens)
        if caller is SOCKET_CALLER:
            caller = caller_on(self._services.facts.whole_node)
        if caller is None:
            await self._count_stranger(request)
            if least is Least.ANYBODY:
                return NOBODY
            raise ApiError("unauthorized", why_not(authorization, self._services.tokens))
        key = _address(request) if self._access is Access.OPEN else caller.scope
        request[KNOWN], request[ASKED_BY] = key, caller.by
        if self._access is not Access.SOCKET and not gives_back:
            await self._limiter.known(key, caller.role)
        return caller


def _check_role(caller: Caller, least: Least, nodes: ForNodes, *, enrols: bool) -> None:
    if not caller.may(least, nodes, enrols=enrols):
        enough = f"{least.name.lower()}{' or enrol' if enrols else ''}"
        hint = "; an agent takes a token of this role as enrol-file" if caller.role is Role.ENROL else ""
        raise ApiError("forbidden", f"the role {caller.role} may not do this; it takes {enough}{hint}")


def _address(request: web.Request) -> str:
    return network_of(request.remote or "")


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
