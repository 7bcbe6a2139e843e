"""Owns one connection between members: who is at the other end, and frames out of bytes.

Who dials says Hello first; the other answers with its own Hello, which lets it in, or with a Refusal; then who dialled
does the same, an empty frame letting the other in. Only after that are there messages.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Protocol, cast

from ipamd.consensus.frames import (
    LIVE,
    OPENING_BYTES,
    BadFrame,
    frame_of_hello,
    frame_of_refusal,
    is_refusal,
    length_of,
    read_message,
    read_opening,
)
from ipamd.consensus.limits import Limits
from ipamd.consensus.peers import Ears, Hello, Refusal
from ipamd.core.names import member_of

logger = logging.getLogger(__name__)


class Board(Protocol):
    """What a connection needs of the wire that it belongs to."""

    limits: Limits
    ears: Ears
    secure: bool

    def now_s(self) -> float:
        """Monotonic seconds."""

    def made(self, connection: Connection) -> None:
        """A connection stands."""

    def up(self, connection: Connection) -> None:
        """It is known who is at the other end, and both sides have let the other in."""

    def down(self, connection: Connection) -> None:
        """The connection is gone."""

    def failed(self, error: Exception) -> None:
        """The member could not take in what it was told, and must stop."""

    def told(self) -> None:
        """The member was told something."""


class Connection(asyncio.Protocol):
    """One end. `dialled`: the member that was looked for; None: somebody came."""

    def __init__(self, board: Board, dialled: str | None) -> None:
        self.dialled = dialled
        self.peer: Hello | None = None
        """Who is at the other end, once that was let in."""

        self.is_up = False
        self.was_refused = False
        self.ended = asyncio.get_running_loop().create_future()
        """Done once it is up, or gone."""

        self.heard_s = self.sent_s = board.now_s()
        self._board = board
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._certified: str | None = None

    @property
    def backlog_bytes(self) -> int:
        """What waits to go out."""
        return self._transport.get_write_buffer_size() if self._transport else 0

    def send(self, frame: bytes) -> None:
        """Send a frame, unless it is closing."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame)
            self.sent_s = self._board.now_s()

    def close(self) -> None:
        """Close, after what waits has gone out."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands, with TLS if it has that."""
        self._transport = cast("asyncio.Transport", transport)
        self._board.made(self)
        if self._board.secure:
            certificate: dict[str, Any] = transport.get_extra_info("peercert") or {}
            self._certified = member_of(certificate)
        if self.dialled is not None:
            self.send(frame_of_hello(self._board.ears.hello()))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's interface
        """It is gone."""
        if not self.ended.done():
            self.ended.set_result(None)
        self._guarded(lambda: self._board.down(self))

    def data_received(self, data: bytes) -> None:
        """Cut frames out of what came."""
        self.heard_s = self._board.now_s()
        self._buffer += data
        self._guarded(self._take_frames)
        self._board.told()

    def _guarded(self, act: Any) -> None:
        try:
            act()
        except BadFrame as error:
            self._reject(str(error))
        except Exception as error:  # noqa: BLE001 - the thread's boundary: the member cannot go on
            self.abort()
            self._board.failed(error)

    def _take_frames(self) -> None:
        at = 0
        while (length := length_of(self._buffer, at)) is not None:
            limit = OPENING_BYTES if self.peer is None else self._board.limits.frame_bytes
            if length > limit:
                raise BadFrame(f"a frame of {length} bytes")
            if len(self._buffer) < at + 4 + length:
                break
            body = bytes(memoryview(self._buffer)[at + 4 : at + 4 + length])
            at += 4 + length
            self._take(body)
            if self._transport is None or self._transport.is_closing():
                return
        del self._buffer[:at]

    def _take(self, body: bytes) -> None:
        if self.peer is None:
            self._open(read_opening(body))
        elif not self.is_up:
            self._be_let_in(self.peer, body)
        elif body and not self._board.ears.received(self.peer.name, read_message(body)):
            raise BadFrame("a frame that is no message")

    def _open(self, said: Hello | Refusal) -> None:
        """What the other side said first."""
        if isinstance(said, Refusal):
            self._be_refused(self.dialled or self._certified, said)
            return
        if self._certified != said.name and self._board.secure:
            raise BadFrame(f"the certificate of {self._certified or 'no member'} with a Hello of {said.name}")
        if self.dialled not in (None, said.name):
            raise BadFrame(f"a Hello of {said.name} where {self.dialled} should be")
        refusal = self._board.ears.greet(said)
        if refusal is not None:
            logger.info("refused %s: %s", said.name, refusal.sentence)
            self.send(frame_of_refusal(refusal))
            self.close()
            return
        self.peer = said
        if self.dialled is None:
            self.send(frame_of_hello(self._board.ears.hello()))
        else:
            self.send(LIVE)
            self._come_up()

    def _be_let_in(self, peer: Hello, body: bytes) -> None:
        """What follows our Hello says whether we are let in too."""
        if body and is_refusal(body):
            said = read_opening(body)
            if isinstance(said, Refusal):
                self._be_refused(peer.name, said)
            return
        self._come_up()
        if body:
            self._take(body)

    def _be_refused(self, name: str | None, refusal: Refusal) -> None:
        self.was_refused = True
        if name is not None:
            self._board.ears.refused(name, refusal)
        self.close()

    def _come_up(self) -> None:
        self.is_up = True
        self._board.up(self)
        if not self.ended.done():
            self.ended.set_result(None)

    def _reject(self, sentence: str) -> None:
        """Nobody who speaks so is a member: close, count, and go on."""
        self._board.ears.figures.bad_connections += 1
        name = self.peer.name if self.peer else self._certified or "a stranger"
        logger.warning("closed the connection of %s: %s", name, sentence)
        self.abort()
