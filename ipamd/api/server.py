"""Owns serving an application on a bound socket: who gets a connection, and the end of it all."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from ipamd.api.connection import Connection, House, Turned
from ipamd.api.handshakes import Handshakes
from ipamd.api.intake import FRONT
from ipamd.api.places import Limits, Places
from ipamd.api.refused import RefusalLog

__all__ = ["Limits", "Listener"]

_BACKLOG: Final = 1024
_BEGIN_S, _LOOK_S = 0.5, 0.01


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
        front, limits = app[FRONT], limits or Limits()
        self._sock = sock
        self._house = House(front, limits, Places(limits), Turned(limits.connections), RefusalLog(front.clock))
        self._server: asyncio.Server | None = None
        self._handshakes: Handshakes | None = None

    async def start(self) -> None:
        """Listen."""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        if self._tls is not None:
            self._handshakes = Handshakes(self._sock, self._tls, self._connection, self._house.limits.header_s)
        elif self._sock.family == socket.AF_UNIX:
            self._server = await loop.create_unix_server(self._connection, sock=self._sock, backlog=_BACKLOG)
        else:
            self._server = await loop.create_server(self._connection, sock=self._sock, backlog=_BACKLOG)

    async def stop(self, grace_s: float) -> None:
        """Stop accepting, let running requests finish for up to `grace_s` seconds, and close all."""
        if self._server is not None:
            self._server.close()
        if self._handshakes is not None:
            await self._handshakes.stop()
        manager = self._runner.server
        if manager is not None:
            await _let_begin(manager.connections)
            manager.pre_shutdown()
            await self._runner.shutdown()
            await manager.shutdown(grace_s)
        await self._runner.cleanup()
        self._house.turned.close()

    def _connection(self) -> Connection:
        manager = self._runner.server
        if manager is None:
            raise RuntimeError("a connection came before the application was set up")
        return Connection(self._house, manager, asyncio.get_running_loop())


async def _let_begin(connections: Sequence[RequestHandler]) -> None:
    """Whoever was let in and has said nothing yet is about to: closed now, its call would be lost with a reset."""
    for _ in range(int(_BEGIN_S / _LOOK_S)):
        if not any(isinstance(one, Connection) and one.is_fresh for one in connections):
            return
        await asyncio.sleep(_LOOK_S)
