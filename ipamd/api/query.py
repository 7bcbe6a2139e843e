"""Owns query parameters and cursors: parsed once into a type, nothing unknown, nothing twice."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec

from ipamd.api.body import read_json, shaped
from ipamd.errors import ApiError

T = TypeVar("T")

_MOST = 2**63 - 1
"""The largest number in a cursor: what the state counts with."""

_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def read_query(raw: str, shape: type[T]) -> T:
    """The query parameters of a request. Raises ApiError."""
    return shaped(_flags(_pairs(raw), shape), shape, "query parameter", strict=False)


def encode_cursor(*key: str | int) -> str:
    """Where a list goes on, as a text that says nothing to its bearer."""
    return base64.urlsafe_b64encode(json.dumps(key, separators=(",", ":")).encode()).decode().rstrip("=")


def decode_cursor(text: str, shape: type[T]) -> T:
    """The sort key in a cursor, a tuple. Raises ApiError."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        key = msgspec.convert(read_json(data), shape)
    except (ValueError, msgspec.ValidationError, ApiError):
        raise _no_cursor() from None
    if not isinstance(key, tuple) or any(isinstance(part, int) and not 0 <= part <= _MOST for part in key):
        raise _no_cursor()
    return key


def _no_cursor() -> ApiError:
    return ApiError("invalid_request", "query parameter cursor: it is not the next of an earlier answer")


def _pairs(raw: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in filter(None, raw.split("&")):  # an & at the end separates nothing
        name, _, value = part.partition("=")
        name = _text(name, "the name of a query parameter")
        value = _text(value, f"query parameter {name[:64]}")
        if name in found:
            raise ApiError("invalid_request", f"query parameter {name[:64]} is given twice")
        found[name] = value
    return found


def _text(raw: str, where: str) -> str:
    try:
        text = unquote_to_bytes(raw.replace("+", " ")).decode()
    except UnicodeDecodeError:
        raise ApiError("invalid_request", f"{where} is not UTF-8: {raw[:64]}") from None
    if "\0" in text:
        raise ApiError("invalid_request", f"{where} has a NUL character")
    return text


def _flags(given: Mapping[str, str], shape: type[Any]) -> dict[str, Any]:
    """Flags may be written without a value: `?force` is `?force=true`."""
    kinds = {field.name: field.type for field in msgspec.structs.fields(shape)}
    return {
        name: _FLAGS.get(value.lower() or "true", value) if kinds.get(name) is bool else value
        for name, value in given.items()
    }
