"""Owns reading an error that a server wrote, for those who pass it on."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class ErrorSaid(NamedTuple):
    """What a CNI error object says."""

    code: int
    msg: str


class _Shape(msgspec.Struct):
    code: int = 0
    msg: str = ""


class _Problem(msgspec.Struct):
    detail: str = ""
    outcome: str = ""


def read_error(body: bytes) -> ErrorSaid:
    """Code and sentence of an error object; code 11 where it is none."""
    try:
        found = msgspec.json.decode(body, type=_Shape)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ErrorSaid(11, "")
    return ErrorSaid(found.code or 11, found.msg)


def read_problem(body: bytes) -> str:
    """The sentence of a problem document; empty where it is none."""
    return _problem(body).detail


def is_unknown(body: bytes) -> bool:
    """Whether a problem document says that what was asked for may have been done."""
    return _problem(body).outcome == "unknown"


def _problem(body: bytes) -> _Problem:
    try:
        return msgspec.json.decode(body, type=_Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Problem()
