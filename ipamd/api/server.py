"""Owns serving an application on a bound socket: limits against slow and many clients, and the end of it all."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from ipamd.api.endpoint import headers_of
from ipamd.api.front import Front
from ipamd.api.intake import FRONT, request_id_of
from ipamd.api.problems import failure_of, respond
from ipamd.core.ports import Unavailable
from ipamd.errors import ApiError

_log = logging.getLogger("ipamd.api")

_BACKLOG = 1024
_MAX_LINE_BYTES = 8190
_MAX_FIELD_BYTES = 16_384
_MAX_HEADERS = 64
_LINGERING_S = 1.0
_BEGIN_S, _LOOK_S = 0.5, 0.01
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%s"
)
_FULL_BODY = (
    b'{"type":"urn:ipamd:error:unavailable","title":"No answer can be had now","status":503,'
    b'"detail":"there are too many connections","code":"unavailable","outcome":"none"}'
)


class Limits(NamedTuple):
    """What clients may take. Times in seconds."""

    connections: int = 512
    header_s: float = 5.0
    idle_s: float = 60.0
    unread_s: float = 60.0
    """How long an answer waits for a client that does not read it."""


class Listener:
    """Serves an application on a socket that is bound already (TCP or unix)."""

    def __init__(
        self,
        app: web.Application,
        sock: socket.socket,
        limits: Limits | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """With `tls` it speaks HTTPS only."""
        self._tls = tls
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        self._front = app[FRONT]
        self._sock, self._limits = sock, limits or Limits()
        self._server: asyncio.Server | None = None
        self._refused: set[asyncio.BaseTransport] = set()

    async def start(self) -> None:
        """Listen."""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        if self._sock.family == socket.AF_UNIX:
            self._server = await loop.create_unix_server(self._connection, sock=self._sock, backlog=_BACKLOG)
        else:
            handshake_s = None if self._tls is None else self._limits.header_s
            self._server = await loop.create_server(
                self._connection,
                sock=self._sock,
                backlog=_BACKLOG,
                ssl=self._tls,
                ssl_handshake_timeout=handshake_s,
                ssl_shutdown_timeout=handshake_s,
            )

    async def stop(self, grace_s: float) -> None:
        """Stop accepting, let running requests finish for up to `grace_s` seconds, and close all."""
        if self._server is not None:
            self._server.close()
        manager = self._runner.server
        if manager is not None:
            await _let_begin(manager.connections)
            manager.pre_shutdown()
            await manager.shutdown(grace_s)
        await self._runner.cleanup()
        for transport in list(self._refused):
            transport.close()

    def _connection(self) -> RequestHandler:
        manager = self._runner.server
        if manager is None:
            raise RuntimeError("a connection came before the application was set up")
        return _Connection(self._limits, self._front, manager, asyncio.get_running_loop(), self._refused)


async def _let_begin(connections: Sequence[RequestHandler]) -> None:
    """Whoever was let in and has said nothing yet is about to: closed now, its call would be lost with a reset."""
    for _ in range(int(_BEGIN_S / _LOOK_S)):
        if not any(isinstance(one, _Connection) and one.is_fresh for one in connections):
            return
        await asyncio.sleep(_LOOK_S)


class _Connection(RequestHandler):
    """A connection that may not be slow: the head of a request comes in time, or nothing more does.

    Between requests it may be idle for longer. Errors of the HTTP parser get the shape of all others. `refused` are
    the transports of connections that found no place and linger until their client has read why.
    """

    __slots__ = ("_end_timer", "_front", "_head_timer", "_limits", "_refused")

    def __init__(
        self,
        limits: Limits,
        front: Front,
        manager: Any,
        loop: asyncio.AbstractEventLoop,
        refused: set[asyncio.BaseTransport],
    ) -> None:
        super().__init__(
            manager,
            loop=loop,
            keepalive_timeout=limits.idle_s,
            max_line_size=_MAX_LINE_BYTES,
            max_field_size=_MAX_FIELD_BYTES,
            max_headers=_MAX_HEADERS,
            lingering_time=_LINGERING_S,
            auto_decompress=False,
            access_log=None,  # type: ignore[arg-type]  # None is how it is switched off
            logger=_log,
        )
        self._limits, self._front, self._refused = limits, front, refused
        self._head_timer: asyncio.TimerHandle | None = None
        self._end_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place, if there is one."""
        manager = self._manager
        if manager is not None and len(manager.connections) >= self._limits.connections:
            self._refuse(cast("asyncio.Transport", transport))  # uvloop's are no instances of it
            return
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        """Parse; the time for a head runs from its first byte to its last."""
        if self._force_close:
            return
        before = self._request_count
        super().data_received(data)
        if self._request_count != before:
            self._stop_head_timer()
        elif self._head_timer is None and not self._request_in_progress and not self._messages:
            self._expect_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Give the place back."""
        self._stop_head_timer()
        self._stop_end_timer()
        if self.transport is not None:
            self._refused.discard(self.transport)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client has fallen behind in reading: it may catch up, but not keep its place for ever."""
        super().pause_writing()
        if self.transport is not None:
            self._end_timer = self._loop.call_later(self._limits.unread_s, self.transport.abort)

    def resume_writing(self) -> None:
        """It has caught up."""
        self._stop_end_timer()
        super().resume_writing()

    @property
    def is_fresh(self) -> bool:
        """Whether it is open, and no request has come over it yet."""
        return self._request_count == 0 and not self._force_close

    async def finish_response(
        self, request: Any, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Write an answer; aiohttp's own errors in the shape of all others."""
        if isinstance(resp, web.HTTPException):
            resp = self._problem(request, resp)
        return await super().finish_response(request, resp, start_time)

    def handle_error(
        self, request: Any, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """The answer to what is no HTTP request, or to a fault outside every handler."""
        if request.writer.output_size > 0:
            raise ConnectionError("part of an answer is sent already")
        if status == 400:
            what = (message or "bad request").strip().splitlines()[0].rstrip(":")
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
        return respond(failure_of(error, request_id), request_id, headers_of(self._front, request_id))

    def _refuse(self, transport: asyncio.Transport) -> None:
        """Say that there is no place. Closed at once, with a request unread, the answer would be lost with a reset."""
        self._force_close = True
        if len(self._refused) >= self._limits.connections:
            transport.close()
            return
        self.transport = transport
        self._refused.add(transport)
        transport.write(_FULL % (len(_FULL_BODY), _FULL_BODY))
        with contextlib.suppress(OSError):  # the client is gone already
            transport.write_eof()
        self._end_timer = self._loop.call_later(_LINGERING_S, transport.abort)

    def _stop_end_timer(self) -> None:
        if self._end_timer is not None:
            self._end_timer.cancel()
            self._end_timer = None

    def _expect_head(self) -> None:
        self._head_timer = self._loop.call_later(self._limits.header_s, self._too_slow)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_slow(self) -> None:
        self._head_timer = None
        self.force_close()
