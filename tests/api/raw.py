"""Owns raw connections to a running server, for what no proper client sends; and the server's own ends of them."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from ipamd.api.server import Limits, Listener
from tests.support.eventually import PATIENCE_S
from tests.support.stack import SECRET, Stack

SMALL = Limits(connections=5, patience_s=600.0, header_s=600.0, idle_s=600.0, unread_s=600.0)
"""Nothing ends because it takes long, on however busy a machine, unless a test says what."""

GET = f"GET /v1/pools HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SECRET}\r\n\r\n".encode()


class Raw:
    """A connection that a test writes bytes to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, stack: Stack) -> Raw:
        return cls(*await asyncio.open_connection("127.0.0.1", stack.port))

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        head = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), PATIENCE_S)).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return int(head[0].split()[1]), headers, body

    async def ends(self) -> None:
        """Wait until the server closes."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                while await self.reader.read(65536):
                    pass
            except ConnectionError:
                pass

    def close(self) -> None:
        self.writer.close()


def tcp_of(stack: Stack) -> Listener:
    """The listener of the raw connections."""
    return next(listener for listener in stack.listeners if listener._sock.family == socket.AF_INET)


def connections_of(stack: Stack) -> list[Any]:
    """The server's own ends of them."""
    server = tcp_of(stack)._runner.server
    assert server is not None
    return list(server.connections)
