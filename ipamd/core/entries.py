"""Owns the byte form of a log entry: the leader's stamp and a batch of commands, each under its op id.

Layout, integers little-endian: version u8, log_ms u64, wall_ms u64, then for each item: op 16 bytes, keep_ms u32,
length of the fingerprint u8 and of the command u32, fingerprint, command.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from ipamd.core.codec import CodecError
from ipamd.core.values import Value

VERSION = 1
OP_BYTES = 16
MAX_ENTRY_BYTES = 512 * 1024
"""An entry is never larger: what is larger is staged by several."""

MOST_APART_MS = 60_000
"""A wall clock that differs by more from those of the majority is wrong, and does not count."""

KEEP_INTERNAL_MS = 600_000
"""How long an outcome stays under an internal op id: 10 minutes of log time."""

KEEP_KEYED_MS = 24 * 3_600_000
"""How long an outcome stays under a caller's idempotency key: 24 hours of log time."""

_HEADER = struct.Struct("<BQQ")
_ITEM = struct.Struct("<16sIBI")

MAX_ITEM_BYTES = MAX_ENTRY_BYTES - _HEADER.size
"""An item is never larger: it has to fit into an entry of its own."""


class Stamp(NamedTuple):
    """When the leader made the entry: on the log's own clock, and by the wall, both in ms.

    `log_index` is its place in the log, which is not in its bytes: 0 until whoever applies it says it.
    """

    log_ms: int
    wall_ms: int
    log_index: int = 0


class Item(NamedTuple):
    """One command of an entry.

    `op` (16 bytes) names it for exactly-once; `fingerprint` (0 to 32 bytes) tells one request from another under the
    same idempotency key; its outcome is kept for `keep_ms` of log time.
    """

    op: bytes
    command: bytes
    fingerprint: bytes = b""
    keep_ms: int = KEEP_INTERNAL_MS

    @property
    def size_bytes(self) -> int:
        """What the item takes in an entry."""
        return _ITEM.size + len(self.fingerprint) + len(self.command)


class Entry(Value):
    """A decoded entry."""

    stamp: Stamp
    items: tuple[Item, ...]


def encode_entry(stamp: Stamp, items: Iterable[Item]) -> bytes:
    """The bytes of an entry."""
    parts = [_HEADER.pack(VERSION, stamp.log_ms, stamp.wall_ms)]
    for item in items:
        parts += (
            _ITEM.pack(item.op, item.keep_ms, len(item.fingerprint), len(item.command)),
            item.fingerprint,
            item.command,
        )
    return b"".join(parts)


def decode_stamp(data: bytes) -> Stamp:
    """The stamp alone. Raises CodecError."""
    if len(data) < _HEADER.size or data[0] != VERSION:
        raise CodecError(f"log entry of format {data[0] if data else 'none'}, this program reads {VERSION}")
    _, log_ms, wall_ms = _HEADER.unpack_from(data)
    return Stamp(log_ms, wall_ms)


def decode_entry(data: bytes) -> Entry:
    """The reverse of `encode_entry`. Raises CodecError."""
    stamp, at, items = decode_stamp(data), _HEADER.size, []
    try:
        while at < len(data):
            op, keep_ms, fingerprint_bytes, command_bytes = _ITEM.unpack_from(data, at)
            middle = at + _ITEM.size + fingerprint_bytes
            at = middle + command_bytes
            items.append(Item(op, data[middle:at], data[middle - fingerprint_bytes : middle], keep_ms))
    except struct.error as error:
        raise CodecError(f"damaged log entry: {error}") from error
    if at != len(data):
        raise CodecError("damaged log entry: it ends in the middle of a command")
    return Entry(stamp, tuple(items))
