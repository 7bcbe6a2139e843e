"""Owns the form of what members say to each other over HTTP: the paths' prefix, and proposals as bytes."""

from __future__ import annotations

from typing import Final

from ipamd.core.codec import CodecError
from ipamd.core.entries import Item, Stamp, decode_entry, encode_entry
from ipamd.errors import ApiError

PREFIX: Final = "/internal/v1"
BYTES: Final = "application/octet-stream"

_NEVER = Stamp(0, 0)
"""An item travels as an entry of its own; the leader stamps the real one."""


def encode_item(item: Item) -> bytes:
    """A proposal as bytes."""
    return encode_entry(_NEVER, (item,))


def decode_item(data: bytes) -> Item:
    """The reverse. Raises ApiError."""
    try:
        items = decode_entry(data).items
    except CodecError as error:
        raise ApiError("invalid_request", f"the body is no proposal: {error}") from None
    if len(items) != 1:
        raise ApiError("invalid_request", f"the body has {len(items)} proposals, not one")
    return items[0]
