"""Owns the byte form of the journal: the head of a segment, and a record for each entry, each with a CRC.

Record, integers little-endian: mark, CRC-32 of all that follows, length of the data u32, index, term and `synced` u64,
data. `synced` is the last index that was surely on the disk when the record was written: what later tells a record
that was torn by a power loss (nobody was told of it) from one that was whole once and is damaged now.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from zlib import crc32

FORMAT = 1
MARK = b"\xf5jr\x01"
HEAD_MARK = b"IPAMDLOG"

_HEAD = struct.Struct("<8sIQ")
_CRC = struct.Struct("<I")
HEAD_BYTES = _HEAD.size + _CRC.size

_RECORD = struct.Struct("<4sI")
_FIELDS = struct.Struct("<IQQQ")
RECORD_BYTES = _RECORD.size + _FIELDS.size

Entry = tuple[bytes, int, int]
"""Data, index and term: the shape that pysyncobj keeps entries in."""


@dataclass(slots=True)
class Record:
    """A record that was read and is whole."""

    data: bytes
    index: int
    term: int
    synced: int

    @property
    def size_bytes(self) -> int:
        """What it takes in the file."""
        return RECORD_BYTES + len(self.data)


def encode_head(first: int) -> bytes:
    """The head of a segment whose first entry has index `first`."""
    head = _HEAD.pack(HEAD_MARK, FORMAT, first)
    return head + _CRC.pack(crc32(head))


def decode_head(data: bytes) -> tuple[int, int] | None:
    """Format and first index; None: not a whole head."""
    if len(data) < HEAD_BYTES or _CRC.unpack_from(data, _HEAD.size)[0] != crc32(data[: _HEAD.size]):
        return None
    mark, version, first = _HEAD.unpack_from(data)
    return (version, first) if mark == HEAD_MARK else None


def encode_record(entry: Entry, synced: int) -> bytes:
    """The bytes of an entry."""
    data, index, term = entry
    fields = _FIELDS.pack(len(data), index, term, synced)
    return b"".join((_RECORD.pack(MARK, crc32(data, crc32(fields))), fields, data))


def decode_record(data: bytes, at: int = 0) -> Record | None:
    """The record at `at`; None: there is no whole one."""
    if len(data) < at + RECORD_BYTES:
        return None
    mark, crc = _RECORD.unpack_from(data, at)
    length, index, term, synced = _FIELDS.unpack_from(data, at + _RECORD.size)
    if mark != MARK or at + RECORD_BYTES + length > len(data):
        return None
    content = data[at + RECORD_BYTES : at + RECORD_BYTES + length]
    if crc32(content, crc32(data[at + _RECORD.size : at + RECORD_BYTES])) != crc:
        return None
    return Record(content, index, term, synced)
