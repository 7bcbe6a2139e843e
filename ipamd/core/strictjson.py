"""Owns reading JSON from strangers: strict and bounded, with one clause that says what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, NoReturn

MAX_DEPTH: Final = 16
"""How many levels a text may have; network configurations of chained plugins with a prevResult have 5."""

MAX_INTEGER: Final = 2**128
"""The largest integer: a count of IPv6 addresses."""

_MAX_DIGITS: Final = 40
_QUOTED: Final = 64


class BadJson(ValueError):  # noqa: N818 - what the text is
    """A text that is not taken. The message goes on where `the body` or the like began a sentence."""


def read(raw: bytes) -> Any:
    """The value of a JSON text. Raises BadJson.

    Refused beside what is no JSON: duplicate keys, numbers that are no finite number, integers over 128 bits, NUL and
    lone surrogates in strings, more than 16 levels.
    """
    try:
        text = raw.decode()
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except UnicodeDecodeError as error:
        raise BadJson(f"is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise BadJson(f"is not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise _too_deep() from None
    # What is refused below takes an escape or many brackets: most texts have neither, and need no walk.
    if "\\u" in text or text.count("{") + text.count("[") > MAX_DEPTH:
        _check(value, MAX_DEPTH)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadJson(f"has the key {_first_twice(name for name, _ in pairs)[:_QUOTED]!r} twice")
    return found


def _first_twice(names: Iterable[str]) -> str:
    """The first name that was there before: looked for in one pass, for there may be 100,000."""
    seen: set[str] = set()
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS or abs(int(text)) > MAX_INTEGER:
        raise BadJson(f"has an integer beyond 2^128: {text[:_MAX_DIGITS]}...")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise BadJson(f"has a number that is too large: {text[:_MAX_DIGITS]}")
    return value


def _constant(text: str) -> NoReturn:
    raise BadJson(f"has {text}, which is not JSON")


def _check(value: Any, left: int, field: str = "") -> None:
    """`field`: the key under which the value stands, as far as one is near."""
    if isinstance(value, str):
        _check_text(value, field)
    elif isinstance(value, list):
        _check_depth(left)
        for item in value:
            _check(item, left - 1, field)
    elif isinstance(value, dict):
        _check_depth(left)
        for key, item in value.items():
            _check_text(key, None)
            _check(item, left - 1, key)


def _check_depth(left: int) -> None:
    if left == 0:
        raise _too_deep()


def _check_text(text: str, field: str | None) -> None:
    """`field`: the key under which it stands, if any; None: it is a key."""
    if "\0" in text:
        raise BadJson(f"has a NUL character in {_place(field)}: {text[:_QUOTED]!r}")
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise BadJson(f"has half a surrogate pair in {_place(field)}: {text[:_QUOTED]!r}")


def _place(field: str | None) -> str:
    return "a key" if field is None else repr(field[:_QUOTED]) if field else "a string"


def _too_deep() -> BadJson:
    return BadJson(f"is nested deeper than {MAX_DEPTH} levels")
