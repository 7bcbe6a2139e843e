"""Owns the byte form of commands and outcomes: two header bytes (version, kind), then the fields as a JSON array.

Nothing is pickled and nothing is called by name: the kinds are listed, the fields are positional, and the types come
from the annotations of frozen dataclasses and named tuples, compiled once into plain functions. JSON keeps integers of
any size exact, which 128-bit addresses need, and the standard library writes and reads it in C.
"""

from __future__ import annotations

import json
import types
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Convert = Callable[[Any], Any]

_write = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode


class CodecError(ValueError):
    """Bytes that are not of this format: another version, an unknown kind, or damaged."""


class Codec(Generic[T]):
    """Turns values of the listed kinds into bytes and back."""

    def __init__(self, version: int, kinds: Mapping[int, type[T]]) -> None:
        self._version = version
        self._writers = {kind: (bytes((version, code)), _writer(kind)) for code, kind in kinds.items()}
        self._readers = {code: _reader(kind) for code, kind in kinds.items()}

    def encode(self, value: T) -> bytes:
        """Header and fields. Raises KeyError for a value of no listed kind, which is a mistake in the program."""
        header, writer = self._writers[type(value)]
        return header + _write(writer(value) if writer else value).encode()

    def decode(self, data: bytes) -> T:
        """The value. Raises CodecError."""
        if len(data) < 2 or data[0] != self._version:
            raise CodecError(f"format version {data[0] if data else 'missing'}, this program reads {self._version}")
        reader = self._readers.get(data[1])
        if reader is None:
            raise CodecError(f"unknown kind {data[1]}")
        try:
            value: T = reader(json.loads(data[2:]))
        except (TypeError, ValueError, IndexError, KeyError, RecursionError) as error:
            raise CodecError(f"damaged: {error}") from error
        return value


def _writer(kind: Any) -> Convert | None:
    """A function that turns a value of a type into what JSON has; None where JSON has it already."""
    if kind is bytes:
        return lambda value: b64encode(value).decode()
    inner = _optional(kind)
    if inner is not None:
        write = _writer(inner)
        return _unless_none(write)
    if get_origin(kind) is tuple:
        writers = [_writer(argument) for argument in _elements(kind)]
        if not any(writers):
            return None
        if _is_list(kind):
            return _each(writers[0])
        return lambda value: [write(item) if write else item for write, item in zip(writers, value, strict=True)]
    if is_dataclass(kind):
        return _dataclass_writer(kind)
    if _is_named_tuple(kind):
        return _named_tuple_writer(kind)
    return None


def _dataclass_writer(kind: Any) -> Convert:
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    if not names:
        return lambda _: []
    get = attrgetter(*names)
    special = [(at, write) for at, name in enumerate(names) if (write := _writer(hints[name]))]
    if len(names) == 1:
        only = special[0][1] if special else None
        return lambda value: [only(get(value)) if only else get(value)]

    def convert(value: Any) -> list[Any]:
        row = list(get(value))
        for at, write in special:
            row[at] = write(row[at])
        return row

    return convert


def _named_tuple_writer(kind: Any) -> Convert | None:
    hints = get_type_hints(kind)
    writers = [_writer(hints[name]) for name in kind._fields]
    if not any(writers):
        return None
    return lambda value: [write(item) if write else item for write, item in zip(writers, value, strict=True)]


def _reader(kind: Any) -> Convert | None:
    """The reverse of `_writer`; None where what JSON gives is the value."""
    if kind is bytes:
        return lambda value: b64decode(value, validate=True)
    inner = _optional(kind)
    if inner is not None:
        read = _reader(inner)
        return _unless_none(read)
    if get_origin(kind) is tuple:
        readers = [_reader(argument) for argument in _elements(kind)]
        if _is_list(kind):
            read = readers[0]
            return (lambda value: tuple([read(item) for item in value])) if read else tuple
        return lambda value: tuple(read(item) if read else item for read, item in zip(readers, value, strict=True))
    if is_dataclass(kind):
        return _row_reader(kind, [field.name for field in fields(kind)])
    if _is_named_tuple(kind):
        return _row_reader(kind, list(kind._fields))
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind
    return None


def _row_reader(kind: Any, names: list[str]) -> Convert:
    hints = get_type_hints(kind)
    special = [(at, read) for at, name in enumerate(names) if (read := _reader(hints[name]))]

    def convert(row: Any) -> Any:
        for at, read in special:
            if at < len(row):  # a field added later is missing in older bytes and takes its default
                row[at] = read(row[at])
        return kind(*row)

    return convert


def _each(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda value: [convert(item) for item in value]


def _unless_none(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


def _optional(kind: Any) -> Any:
    """The T of `T | None`, else None."""
    if get_origin(kind) in (Union, types.UnionType):
        inner = [argument for argument in get_args(kind) if argument is not type(None)]
        if len(inner) != 1 or len(get_args(kind)) != 2:
            raise TypeError(f"{kind} has no byte form")
        return inner[0]
    return None


def _is_list(kind: Any) -> bool:
    """Whether a tuple type is of any length: tuple[X, ...]."""
    arguments = get_args(kind)
    return len(arguments) == 2 and arguments[1] is Ellipsis


def _elements(kind: Any) -> tuple[Any, ...]:
    return get_args(kind)[:1] if _is_list(kind) else get_args(kind)


def _is_named_tuple(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")
