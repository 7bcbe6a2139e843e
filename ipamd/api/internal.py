"""Owns the routes that members ask each other by: no token opens them, only a member's certificate does.

Bodies are the log's own bytes (core.entries, core.outcomes), so that nothing is translated on the way to the leader.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler as WebHandler

from ipamd.api.between import BYTES, PREFIX, Result, decode_items, encode_results
from ipamd.api.endpoint import headers_of
from ipamd.api.gate import KNOWN
from ipamd.api.intake import deadline_after_s, left_ms_of, read_body, request_id_of
from ipamd.api.problems import failure_of, respond
from ipamd.api.snapshots import send
from ipamd.core.entries import Item
from ipamd.core.levels import hindrance
from ipamd.core.names import member_of
from ipamd.core.ports import Unavailable
from ipamd.errors import ApiError
from ipamd.service import Services
from ipamd.service.inside import Inside

MOST_PROPOSALS: Final = 2_048
"""Of all other members together, under way here: half of what the log takes in is left for who asks this one."""

Serve = Callable[[Inside, web.Request, float], Awaitable[web.StreamResponse]]


def add_routes(app: web.Application, services: Services, inside: Inside) -> None:
    """Serve the routes between members."""
    app.router.add_post(f"{PREFIX}/propose", _endpoint(services, inside, Proposals().propose))
    app.router.add_post(f"{PREFIX}/barrier", _endpoint(services, inside, _barrier))
    app.router.add_post(f"{PREFIX}/hand-over", _endpoint(services, inside, _hand_over))
    app.router.add_post(f"{PREFIX}/heartbeat", _endpoint(services, inside, _heartbeat))
    app.router.add_get(f"{PREFIX}/member", _endpoint(services, inside, _member))
    app.router.add_get(f"{PREFIX}/snapshot", _endpoint(services, inside, _snapshot), allow_head=False)


def _endpoint(services: Services, inside: Inside, serve: Serve) -> WebHandler:
    async def answer(request: web.Request) -> web.StreamResponse:
        request_id = request_id_of(request.headers, services.random)
        deadline_s = services.clock.monotonic_s()
        try:
            request[KNOWN] = _admit(inside, request)
            deadline_s = deadline_after_s(deadline_s, left_ms_of(request.headers))
            return await serve(inside, request, deadline_s - services.clock.monotonic_s())
        except ConnectionError:
            raise  # the other member is gone: nobody is there to be answered
        except Exception as error:  # noqa: BLE001 - the boundary of the process: the other member gets an answer, always
            return respond(failure_of(error, request_id), request_id, headers_of(services, request_id))

    return answer


def _admit(inside: Inside, request: web.Request) -> str:
    """Who asks. Raises ApiError unless a member does. Without certificates whoever is on this host counts as one.

    A browser is on this host too, with pages of strangers in it: it names them, as no member does.
    """
    transport = request.transport
    name = member_of(transport.get_extra_info("peercert")) if transport is not None else None
    if "Origin" in request.headers:
        raise ApiError("forbidden", "this is for members of the cluster, and no page is one")
    if name is None and inside.insecure and _is_loopback(request.remote):
        return "member"
    if name is None:
        raise ApiError("forbidden", "this is for members of the cluster, who show their certificates")
    if request.path != f"{PREFIX}/member" and not inside.knows(name):
        raise ApiError("forbidden", f"{name} is not a member of this cluster")
    return f"member:{name}"


def _is_loopback(address: str | None) -> bool:
    try:
        return ipaddress.ip_address(address or "").is_loopback
    except ValueError:
        return False


class Proposals:
    """What other members have put into this one's log and is under way."""

    def __init__(self) -> None:
        self._under_way = 0

    async def propose(self, inside: Inside, request: web.Request, left_s: float) -> web.StreamResponse:
        """Put commands into this member's log; a result for each. Raises Unavailable where too many are under way."""
        items = decode_items(await read_body(request))
        if self._under_way + len(items) > MOST_PROPOSALS:
            raise Unavailable(f"{inside.name} has too many proposals of other members under way", "none")
        self._under_way += len(items)
        try:
            results = await asyncio.gather(*(_proposed(inside, item, left_s) for item in items))
        finally:
            self._under_way -= len(items)
        return _bytes(inside.log.status().applied, encode_results(results))


async def _proposed(inside: Inside, item: Item, left_s: float) -> Result:
    """A member that is newer than this one, or has heard less of the others, may send what must not be proposed."""
    hindered = hindrance(item.command, inside.members())
    if hindered is not None:
        return Unavailable(hindered, "none")
    try:
        return await inside.log.propose(item, left_s)
    except Unavailable as error:
        return error
    except ValueError as error:
        return Unavailable(str(error), "none")


async def _barrier(inside: Inside, _request: web.Request, left_s: float) -> web.StreamResponse:
    """Pass a barrier in this member's log."""
    return _bytes(await inside.log.barrier(left_s), b"")


async def _hand_over(inside: Inside, request: web.Request, left_s: float) -> web.StreamResponse:
    """Hand over to the member that the body names, or to the most advanced one."""
    to = (await read_body(request)).decode("utf-8", "replace")
    await inside.hand_over(to or None, left_s)
    return _bytes(inside.log.status().applied, b"")


async def _heartbeat(inside: Inside, request: web.Request, _left_s: float) -> web.StreamResponse:
    """Count a node, whose name is the body, as heard. Raises Unavailable where this member does not lead."""
    status = inside.log.status()
    if not status.is_leader:
        raise Unavailable(f"{inside.name} does not lead", "none")
    inside.heard((await read_body(request)).decode("utf-8", "replace"))
    return _bytes(status.applied, b"")


async def _member(inside: Inside, _request: web.Request, _left_s: float) -> web.StreamResponse:
    """Say who this member is, and how far it came."""
    return web.Response(body=msgspec.json.encode(inside.glimpse()._asdict()), content_type="application/json")


async def _snapshot(inside: Inside, request: web.Request, _left_s: float) -> web.StreamResponse:
    """Send a state file, a piece at a time."""
    return await send(inside, request)


def _bytes(index: int, body: bytes) -> web.Response:
    return web.Response(body=body, content_type=BYTES, headers={"Ipamd-Index": str(index)})
