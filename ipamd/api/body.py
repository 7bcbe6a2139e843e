"""Owns reading JSON from strangers: strict, bounded, and with an error that names the field."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn, TypeVar

import msgspec

from ipamd.errors import ApiError

T = TypeVar("T")

MAX_BODY_BYTES = 1024 * 1024
MAX_IMPORT_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 16
MAX_INTEGER = 2**128
_MAX_DIGITS = 40

_placed = re.compile(r"(?P<what>.*) - at `(?:key in )?\$(?P<path>.*)`", re.DOTALL).fullmatch


def read_json(raw: bytes) -> Any:
    """The value of a JSON text. Raises ApiError.

    Refused beside what is no JSON: duplicate keys, numbers that are no finite number, integers over 128 bits, NUL and
    lone surrogates in strings, more than 16 levels.
    """
    try:
        value = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError as error:
        raise _invalid(f"the body is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise _invalid(f"the body is not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise _invalid(f"the body is nested deeper than {MAX_DEPTH} levels") from None
    _check(value, 1)
    return value


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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _invalid(f"the body has the key {twice[:64]!r} twice")
    return found


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS or abs(int(text)) > MAX_INTEGER:
        raise _invalid(f"the body has an integer beyond 2^128: {text[:_MAX_DIGITS]}...")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _invalid(f"the body has a number that is too large: {text[:_MAX_DIGITS]}")
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise _invalid(f"the body has {text}, which is not JSON")


def _check(value: Any, depth: int) -> None:
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, (dict, list)):
        if depth > MAX_DEPTH:
            raise _invalid(f"the body is nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, dict):
            for key in value:
                _check_text(key)
        for item in value.values() if isinstance(value, dict) else value:
            _check(item, depth + 1)


def _check_text(text: str) -> None:
    if "\0" in text:
        raise _invalid(f"the body has a NUL character in {text[:64]!r}")
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise _invalid(f"the body has half a surrogate pair in {text[:64]!r}")


def _invalid(detail: str) -> ApiError:
    return ApiError("invalid_request", detail)
