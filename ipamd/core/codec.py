"""Owns the byte form of commands and outcomes: two header bytes (version, kind), then the fields as a JSON array.

Nothing is pickled and nothing is called by name: the kinds are listed, the fields are positional, and the types come
from the annotations of values and named tuples. JSON keeps integers of any size exact, which 128-bit addresses need.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from ipamd.core.values import Value

T = TypeVar("T")

_PLAIN = frozenset({bool, int, str, bytes})
_write = msgspec.json.Encoder().encode


class CodecError(ValueError):
    """Bytes that are not of this format: another version, an unknown kind, or damaged."""


class Codec(Generic[T]):
    """Turns values of the listed kinds into bytes and back."""

    def __init__(self, version: int, kinds: Mapping[int, type[T]]) -> None:
        """Raises TypeError for a kind with a field that has no byte form."""
        for kind in kinds.values():
            _check(kind)
        self._version = version
        self._headers = {kind: bytes((version, code)) for code, kind in kinds.items()}
        self._readers = {code: msgspec.json.Decoder(kind).decode for code, kind in kinds.items()}

    def encode(self, value: T) -> bytes:
        """Header and fields. Raises KeyError for a value of no listed kind, which is a mistake in the program."""
        return self._headers[type(value)] + _write(value)

    def decode(self, data: bytes) -> T:
        """The value. Raises CodecError."""
        if len(data) < 2 or data[0] != self._version:
            raise CodecError(f"format version {data[0] if data else 'missing'}, this program reads {self._version}")
        read = self._readers.get(data[1])
        if read is None:
            raise CodecError(f"unknown kind {data[1]}")
        try:
            return read(data[2:])
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise CodecError(f"damaged: {error}") from error


def _check(kind: Any) -> None:
    """Raise TypeError unless a type has a byte form that reads back as it was."""
    if kind in _PLAIN or (isinstance(kind, type) and issubclass(kind, StrEnum)):
        return
    for part in _parts(kind):
        _check(part)


def _parts(kind: Any) -> Iterable[Any]:
    """The types that a type is made of. Raises TypeError for one that is no value, tuple or `T | None`."""
    arguments = [argument for argument in get_args(kind) if argument not in (Ellipsis, types.NoneType)]
    if get_origin(kind) is tuple:
        return arguments
    if get_origin(kind) in (Union, types.UnionType) and len(arguments) == 1:
        return arguments
    if isinstance(kind, type) and issubclass(kind, Value):
        return _hints(kind, kind.__struct_fields__)
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _hints(kind, kind._fields)
    raise TypeError(f"{kind} has no byte form")


def _hints(kind: type, names: Iterable[str]) -> Iterable[Any]:
    hints = get_type_hints(kind)
    return [hints[name] for name in names]
