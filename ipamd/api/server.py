"""Owns serving an application on a bound socket: limits against slow and many clients, and the end of it all."""

from __future__ import annotations

import socket
from typing import NamedTuple

from aiohttp import web


class Limits(NamedTuple):
    """What a client may take. Times in seconds."""

    connections: int = 512
    header_s: float = 5.0
    body_s: float = 10.0
    idle_s: float = 60.0


class Listener:
    """Serves an application on a socket that is bound already (TCP or unix)."""

    def __init__(self, app: web.Application, sock: socket.socket, limits: Limits | None = None) -> None:
        self._app, self._sock, self._limits = app, sock, limits or Limits()

    async def start(self) -> None:
        """Listen."""

    async def stop(self, grace_s: float) -> None:
        """Stop accepting, let running requests finish for up to `grace_s` seconds, and close all."""
