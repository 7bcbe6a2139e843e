"""Owns the bytes between members: frames of a length and msgpack, and what opens a connection.

A frame is its length (u32, little-endian) and so many bytes. An empty one says only that its sender lives. The first
frame of each side is a Hello or, instead of it, a Refusal.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipamd.consensus.peers import Hello, Message, Refusal
from ipamd.core.names import InvalidName, check_name

OPENING_BYTES: Final = 16 * 1024
"""The largest frame of somebody who has not said yet who it is."""

_LENGTH_BYTES: Final = 4
_TEXT_CHARACTERS: Final = 512

LIVE: Final = bytes(_LENGTH_BYTES)
"""The empty frame."""


class BadFrame(ValueError):  # noqa: N818 - what it is
    """Bytes that no member sends."""


class _Opening(msgspec.Struct):
    hello: Hello | None = None
    refusal: Refusal | None = None


def frame_of(message: Message) -> bytes:
    """A message as a frame."""
    return _framed(msgspec.msgpack.encode(message))


def frame_of_hello(hello: Hello) -> bytes:
    """A Hello as a frame."""
    return _framed(msgspec.msgpack.encode(_Opening(hello=hello)))


def frame_of_refusal(refusal: Refusal) -> bytes:
    """A Refusal as a frame."""
    return _framed(msgspec.msgpack.encode(_Opening(refusal=refusal)))


def read_message(body: bytes) -> object:
    """What a frame holds: whether that is a message is for the guard to say. Raises BadFrame."""
    try:
        return msgspec.msgpack.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadFrame(f"a frame that cannot be read: {error}") from error


def read_opening(body: bytes) -> Hello | Refusal:
    """What somebody says first. Raises BadFrame."""
    try:
        opening = msgspec.msgpack.decode(body, type=_Opening)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadFrame(f"an opening that cannot be read: {error}") from error
    said = opening.hello or opening.refusal
    if said is None:
        raise BadFrame("an opening that says nothing")
    if isinstance(said, Hello):
        _check_hello(said)
    return said


def is_refusal(body: bytes) -> bool:
    """Whether a frame behind the opening is a late Refusal."""
    try:
        return msgspec.msgpack.decode(body, type=_Opening).refusal is not None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


def length_of(buffer: bytearray, at: int) -> int | None:
    """The length of the frame that begins at `at`; None: that is not there yet."""
    if len(buffer) - at < _LENGTH_BYTES:
        return None
    return int.from_bytes(buffer[at : at + _LENGTH_BYTES], "little")


def _framed(body: bytes) -> bytes:
    return len(body).to_bytes(_LENGTH_BYTES, "little") + body


def _check_hello(hello: Hello) -> None:
    try:
        check_name(hello.name, "member")
    except InvalidName as error:
        raise BadFrame(str(error)) from error
    texts = (hello.member_id, hello.cluster_id or "", hello.raft, hello.api, *(raft for _, raft in hello.others))
    if max(map(len, texts)) > _TEXT_CHARACTERS:
        raise BadFrame(f"a Hello of {hello.name} with a text of more than {_TEXT_CHARACTERS} characters")
