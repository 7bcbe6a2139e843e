"""Owns answers that go on: events as Server-Sent Events, until the client or this server ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from aiohttp import web

from ipamd.api.access import Caller
from ipamd.api.exchange import FEW
from ipamd.api.redaction import redacted
from ipamd.api.schema.events import EVENT_STREAM, show_event
from ipamd.core.model import Event
from ipamd.core.ports import Unavailable
from ipamd.errors import ApiError
from ipamd.service.events import Wanted
from ipamd.service.feed import Following

UNREAD_S: Final = 10.0
"""Who takes nothing for so long is cut off: it goes on from where it was once it can."""

CLUSTER: Final = "Ipamd-Cluster-Id"
"""The header that says whose events they are: their indexes mean nothing to another cluster."""

_BEGIN: Final = b"retry: 1000\nid: %d\n\n"
_BEAT: Final = b":\n\n"


@dataclass(frozen=True, slots=True)
class EventStream:
    """What is sent: the events that somebody wants, as the caller may see them."""

    following: Following
    wanted: Wanted
    caller: Caller


class _CutOff(Exception):  # noqa: N818 - what happens to the client
    """The client takes nothing any more."""


async def send_events(
    request: web.Request, stream: EventStream, headers: dict[str, str], is_known: Callable[[], bool]
) -> web.StreamResponse:
    """Send events until the end. `is_known`: whether the client may still see them, which is asked again and again."""
    own = {"Content-Type": EVENT_STREAM, "X-Accel-Buffering": "no", CLUSTER: stream.following.cluster_id}
    response = web.StreamResponse(headers={**headers, **own})
    try:
        await response.prepare(request)
        if request.method != "HEAD":
            await _write(response, _BEGIN % stream.following.index)
            await _send_all(response, stream, is_known)
        await response.write_eof()
    except _CutOff:
        if request.transport is not None:
            request.transport.abort()
    finally:
        stream.following.close()
    return response


async def _send_all(response: web.StreamResponse, stream: EventStream, is_known: Callable[[], bool]) -> None:
    while is_known():
        try:
            events = await stream.following.next()
        except (ApiError, Unavailable) as end:
            await _write(response, f": {end.detail}\n\n".encode())
            return
        many = len(events) > FEW  # they are written beside the loop, which others need
        told = await asyncio.to_thread(_told, events, stream) if many else _told(events, stream)
        await _write(response, told or _BEAT)


async def _write(response: web.StreamResponse, data: bytes) -> None:
    """Raises _CutOff for a client that does not read, ConnectionError for one that is gone."""
    try:
        async with asyncio.timeout(UNREAD_S):
            await response.write(data)
    except TimeoutError:
        raise _CutOff from None


def _told(events: Sequence[Event], stream: EventStream) -> bytes:
    """Some events as text. An id without data moves the client on past those that it does not want."""
    parts: list[bytes] = []
    for event in events:
        if stream.wanted.takes(event):
            shown = msgspec.json.encode(redacted(show_event(event), stream.caller))
            parts.append(b"id: %d\ndata: %b\n\n" % (event.index, shown))
    if events and not (parts and stream.wanted.takes(events[-1])):
        parts.append(b"id: %d\n\n" % events[-1].index)
    return b"".join(parts)
