"""Owns reading JSON from strangers: strict, bounded, and with an error that names the field."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from ipamd.core import strictjson
from ipamd.errors import ApiError

T = TypeVar("T")

MAX_BODY_BYTES = 1024 * 1024
MAX_IMPORT_BYTES = 64 * 1024 * 1024

_placed = re.compile(r"(?P<what>.*) - at `(?:key in )?\$(?P<path>.*)`", re.DOTALL).fullmatch


def read_json(raw: bytes, what: str = "the body") -> Any:
    """The value of a JSON text (core.strictjson). Raises ApiError."""
    try:
        return strictjson.read(raw)
    except strictjson.BadJson as error:
        raise _invalid(f"{what} {error}") from None


def shaped(value: Any, shape: type[T], what: str, *, strict: bool = True) -> T:
    """A value in the shape of a type; `strict` off reads numbers and booleans from text. Raises ApiError."""
    try:
        return msgspec.convert(value, shape, strict=strict)
    except msgspec.ValidationError as error:
        raise _invalid(_sentence(str(error), what)) from None


def _sentence(message: str, what: str) -> str:
    match = _placed(message)
    text, path = (match["what"], match["path"].lstrip(".")) if match else (message, "")
    place = f"{what}, {path}" if path else what
    return f"{place}: {text[:1].lower()}{text[1:]}".replace("`", "")


def _invalid(detail: str) -> ApiError:
    return ApiError("invalid_request", detail)
