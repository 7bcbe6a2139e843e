"""Owns one connection: the head of a request comes in time or nothing more does, and errors have one shape."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any, Final, NamedTuple, cast

from aiohttp import StreamReader, web
from aiohttp.web_protocol import RequestHandler

from ipamd.api.access import NOBODY
from ipamd.api.endpoint import headers_of
from ipamd.api.front import Front
from ipamd.api.gate import KNOWN
from ipamd.api.intake import request_id_of
from ipamd.api.places import TOO_MANY, TOO_MANY_STRANGERS, Limits, Places, address_of
from ipamd.api.problems import failure_of, respond
from ipamd.api.refused import RefusalLog
from ipamd.core.ports import Unavailable
from ipamd.errors import ApiError

_log = logging.getLogger("ipamd.api")

_MAX_LINE_BYTES: Final = 8190
_MAX_FIELD_BYTES: Final = 16_384
_MAX_HEADERS: Final = 64
_MAX_HEAD_BYTES: Final = 128 * 1024
_QUEUED: Final = 2
"""Requests of one connection that wait for the one before; aiohttp would keep 32, of a MiB each."""

_READ: Final = " when reading: "
"""Behind it the parser repeats what is too long, which may be a secret."""

_LINGERING_S: Final = 1.0
_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%s"
)
_FULL_BODY: Final = (
    b'{"type":"urn:ipamd:error:unavailable","title":"No answer can be had now","status":503,'
    b'"detail":"%s","code":"unavailable","outcome":"none"}'
)


class Turned:
    """Connections that were turned away and linger until their client has read why: so many at most."""

    def __init__(self, most: int) -> None:
        self._most, self._lingering = most, set[asyncio.Transport]()

    def take(self, transport: asyncio.Transport, why: str) -> bool:
        """Say why. Closed at once, with a request unread, the answer would be lost with a reset. False: no place."""
        if len(self._lingering) >= self._most:
            return False
        self._lingering.add(transport)
        body = _FULL_BODY % why.encode()
        transport.write(_FULL % (len(body), body))
        with contextlib.suppress(OSError, NotImplementedError):  # the client is gone already; TLS has no half end
            transport.write_eof()
        return True

    def forget(self, transport: asyncio.BaseTransport | None) -> None:
        """It has ended."""
        self._lingering.discard(cast("asyncio.Transport", transport))

    def close(self) -> None:
        """End them all."""
        for transport in list(self._lingering):
            transport.close()


class House(NamedTuple):
    """What the connections of one listener share."""

    front: Front
    limits: Limits
    places: Places
    turned: Turned
    refused: RefusalLog


class Connection(RequestHandler):
    """A connection that may not be slow. Between requests it may be idle for longer."""

    __slots__ = (
        "_end_timer", "_front", "_head_bytes", "_head_timer", "_limits", "_payload", "_places", "_refused", "_turned",
        "address", "came_s",
    )  # fmt: skip

    def __init__(self, house: House, manager: Any, loop: Any) -> None:
        super().__init__(
            manager,
            loop=loop,
            keepalive_timeout=house.limits.idle_s,
            max_line_size=_MAX_LINE_BYTES,
            max_field_size=_MAX_FIELD_BYTES,
            max_headers=_MAX_HEADERS,
            lingering_time=_LINGERING_S,
            auto_decompress=False,
            access_log=None,  # type: ignore[arg-type]  # None is how it is switched off
            logger=_log,
        )
        self._max_msg_queue_size, self._msg_queue_resume_size = _QUEUED, _QUEUED - 1
        self._front, self._limits, self._places, self._turned, self._refused = house
        self._head_bytes = 0
        self._payload: StreamReader | None = None
        self._head_timer: asyncio.TimerHandle | None = None
        self._end_timer: asyncio.TimerHandle | None = None
        self.address: str | None = None
        self.came_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place, if there is one."""
        self.address, self.came_s = address_of(transport.get_extra_info("peername")), self._loop.time()
        if not self._places.enter(self):
            self._linger(cast("asyncio.Transport", transport), TOO_MANY)  # uvloop's are no instances of it
            return
        super().connection_made(transport)
        self._expect_head()
        if self._places.is_crowded(self):
            self._end_timer = self._loop.call_later(self._limits.patience_s, self._overstay)

    def data_received(self, data: bytes) -> None:
        """Parse; the time for a head runs from its first byte to its last."""
        if self._force_close:
            return
        before, is_body = self._request_count, self._payload is not None and not self._payload.is_eof()
        super().data_received(data)
        if self._request_count != before:
            self._stop_head_timer()
            self._head_bytes, self._payload = 0, self._messages[-1][1]
            return
        if not is_body:
            self._count_head(len(data))
        if self._head_timer is None and not self._request_in_progress and not self._messages:
            self._expect_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Give the place back."""
        self._places.leave(self)
        self._stop_head_timer()
        self._stop_end_timer()
        self._turned.forget(self.transport)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client has fallen behind in reading: it may catch up, but not keep its place for ever."""
        super().pause_writing()
        if self.transport is not None:
            self._stop_end_timer()
            self._end_timer = self._loop.call_later(self._limits.unread_s, self.transport.abort)

    def resume_writing(self) -> None:
        """It has caught up."""
        self._stop_end_timer()
        super().resume_writing()

    @property
    def is_fresh(self) -> bool:
        """Whether it is open, and no request has come over it yet."""
        return self._request_count == 0 and not self._force_close

    @property
    def is_busy(self) -> bool:
        """Whether it has a request under way that may be, or one that nobody has looked at yet."""
        request = self._current_request
        if request is None:
            return bool(self._messages) and not self._request_in_progress
        return KNOWN in request

    def turn_away(self, why: str) -> None:
        """Tell it why it has to go, and close it."""
        transport, is_answering = self.transport, self._request_in_progress
        if transport is None:
            return
        self.transport = None  # so that ending the reader of requests does not end what says why
        self.force_close()
        self._stop_head_timer()
        self._stop_end_timer()
        if is_answering:  # in the midst of that nothing else can be said
            transport.abort()
        else:
            self._linger(transport, why)

    async def finish_response(
        self, request: Any, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Write an answer; aiohttp's own errors in the shape of all others."""
        if isinstance(resp, web.HTTPException):
            resp = self._problem(request, resp)
        if self.address is not None and KNOWN in request:
            self._places.know(self, request[KNOWN])
        return await super().finish_response(request, resp, start_time)

    def handle_error(
        self, request: Any, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """The answer to what is no HTTP request, or to a fault outside every handler."""
        if request.writer.output_size > 0:
            raise ConnectionError("part of an answer is sent already")
        if status == 400:
            what = (message or "bad request").strip().splitlines()[0].partition(_READ)[0].rstrip(":")
            error: BaseException = ApiError("invalid_request", f"this is no HTTP/1.1 request: {what}")
        elif status == 504:
            error = Unavailable("the request took too long", "unknown")
        elif isinstance(exc, ConnectionError):
            error = ApiError("invalid_request", "the connection ended before the request did")
        else:
            error = exc or RuntimeError(message)
        response = self._problem(request, error)
        response.force_close()
        return response

    def _problem(self, request: Any, error: BaseException) -> web.Response:
        request_id = request_id_of(request.headers, self._front.random)
        failure = failure_of(error, request_id)
        self._refused.note(request, failure.error, NOBODY.by, request_id)
        return respond(failure, request_id, headers_of(self._front, request_id))

    def _linger(self, transport: asyncio.Transport, why: str) -> None:
        self._force_close = True
        if not self._turned.take(transport, why):
            transport.close()
            return
        self.transport = transport
        self._end_timer = self._loop.call_later(_LINGERING_S, transport.abort)

    def _overstay(self) -> None:
        """Half a second is over: one of too many strangers that still says nothing has to go."""
        self._end_timer = None
        if self._places.is_crowded(self) and not self.is_busy:
            self._places.leave(self)
            self.turn_away(TOO_MANY_STRANGERS)

    def _stop_end_timer(self) -> None:
        if self._end_timer is not None:
            self._end_timer.cancel()
            self._end_timer = None

    def _count_head(self, size_bytes: int) -> None:
        """Some more of a head."""
        self._head_bytes += size_bytes
        if self._head_bytes > _MAX_HEAD_BYTES:
            self.force_close()

    def _expect_head(self) -> None:
        self._head_timer = self._loop.call_later(self._limits.header_s, self._too_slow)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_slow(self) -> None:
        self._head_timer = None
        self.force_close()
