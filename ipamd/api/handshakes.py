"""Owns accepting on a TLS socket: so many handshakes at a time, so that those who never finish theirs hold up nobody.

The event loop's own servers begin a handshake with whoever connects, however many there are, and count nobody before
it is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

from ipamd.api.places import address_of

_log = logging.getLogger("ipamd.api")

MOST: Final = 128
MOST_OF_ADDRESS: Final = 64
_AT_ONCE: Final = 4
_BREATH_S: Final = 0.01
"""A handshake takes a millisecond of the loop: after so many what else waits has its turn."""

_PAUSE_S: Final = 0.1
"""After an accept that failed: mostly for want of file descriptors, which others give back meanwhile."""

_BUSY_S: Final = 10.0
"""How often such failures are told."""

Making = Callable[[], asyncio.Protocol]


class Handshakes:
    """Handshakes under way. Over the limits the oldest makes room, of the address that has the most."""

    def __init__(
        self,
        sock: socket.socket,
        tls: ssl.SSLContext,
        making: Making,
        timeout_s: float,
    ) -> None:
        """`making` makes the protocol of a connection."""
        self._sock, self._tls, self._making, self._timeout_s = sock, tls, making, timeout_s
        sock.setblocking(False)
        self._by_address: dict[str, dict[asyncio.Task[None], None]] = {}
        self._told_s = 0.0
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    async def stop(self) -> None:
        """Accept no more, and end the handshakes that are under way."""
        under_way = [task for own in self._by_address.values() for task in own]
        for task in (self._accepting, *under_way):
            task.cancel()
        await asyncio.gather(self._accepting, *under_way, return_exceptions=True)
        self._sock.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        for number in itertools.count(1):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(_BREATH_S)
            try:
                connection, peer = await loop.sock_accept(self._sock)
            except OSError as error:
                self._tell(error, loop.time())
                await asyncio.sleep(_PAUSE_S)
                continue
            self._begin(connection, address_of(peer) or "")

    def _begin(self, connection: socket.socket, address: str) -> None:
        own = self._by_address.setdefault(address, {})
        if len(own) >= MOST_OF_ADDRESS:
            next(iter(own)).cancel()
        elif sum(map(len, self._by_address.values())) >= MOST:
            greediest = max(self._by_address, key=lambda one: len(self._by_address[one]))
            next(iter(self._by_address[greediest])).cancel()
        task = asyncio.get_running_loop().create_task(self._shake(connection))
        own[task] = None
        task.add_done_callback(lambda done: self._end(done, address))

    def _end(self, task: asyncio.Task[None], address: str) -> None:
        own = self._by_address.get(address, {})
        own.pop(task, None)
        if not own:
            self._by_address.pop(address, None)

    async def _shake(self, connection: socket.socket) -> None:
        """Bring a connection up to its protocol. A handshake that fails is nobody's fault here."""
        with contextlib.suppress(OSError, TimeoutError):
            await asyncio.get_running_loop().connect_accepted_socket(
                self._making,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=self._timeout_s,
                ssl_shutdown_timeout=self._timeout_s,
            )

    def _tell(self, error: OSError, now_s: float) -> None:
        if now_s - self._told_s >= _BUSY_S or not self._told_s:
            self._told_s = now_s
            _log.warning("connections cannot be accepted: %s", error.strerror or error)
