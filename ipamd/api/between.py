"""Owns the form of what members say to each other over HTTP: the paths' prefix, proposals and their results as bytes.

A result is: kind u8 (answered, surely not done, unknown), index u64, length u32, then an outcome's bytes or a sentence.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from ipamd.core.codec import CodecError
from ipamd.core.entries import Item, Stamp, decode_entry, encode_entry
from ipamd.core.outcomes import decode_outcome, encode_outcome
from ipamd.core.ports import Answer, Unavailable
from ipamd.errors import ApiError

PREFIX: Final = "/internal/v1"
BYTES: Final = "application/octet-stream"

_NEVER = Stamp(0, 0)
"""Items travel as an entry; the leader stamps the real one."""

_HEAD = struct.Struct("<BQI")
_ANSWERED, _NONE, _UNKNOWN = range(3)

Result = Answer | Unavailable
"""What became of a proposal."""


def encode_items(items: Iterable[Item]) -> bytes:
    """Proposals as bytes."""
    return encode_entry(_NEVER, items)


def decode_items(data: bytes) -> tuple[Item, ...]:
    """The reverse. Raises ApiError."""
    try:
        items = decode_entry(data).items
    except CodecError as error:
        raise ApiError("invalid_request", f"the body is no proposal: {error}") from None
    if not items:
        raise ApiError("invalid_request", "the body has no proposal")
    return items


def encode_results(results: Iterable[Result]) -> bytes:
    """What became of proposals, in their order."""
    return b"".join(_encode(result) for result in results)


def decode_results(data: bytes) -> Sequence[Result]:
    """The reverse. Raises CodecError."""
    results: list[Result] = []
    at = 0
    try:
        while at < len(data):
            kind, index, length = _HEAD.unpack_from(data, at)
            end = at + _HEAD.size + length
            results.append(_decode(kind, index, data[at + _HEAD.size : end]))
            at = end
    except (struct.error, UnicodeDecodeError) as error:
        raise CodecError(f"damaged results: {error}") from error
    if at != len(data):
        raise CodecError("damaged results: they end in the middle of one")
    return results


def _encode(result: Result) -> bytes:
    if isinstance(result, Answer):
        kind, index, body = _ANSWERED, result.index, encode_outcome(result.outcome)
    else:
        kind, index, body = _NONE if result.outcome == "none" else _UNKNOWN, 0, result.detail.encode()
    return _HEAD.pack(kind, index, len(body)) + body


def _decode(kind: int, index: int, body: bytes) -> Result:
    if kind == _ANSWERED:
        return Answer(index, decode_outcome(body))
    return Unavailable(body.decode(), "none" if kind == _NONE else "unknown")
