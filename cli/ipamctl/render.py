"""Owns how a result looks: tables for people, JSON and YAML for programs."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ipamctl.text import printable

_UNBOUNDED = 100_000
"""Columns, where the reader is a program: nothing is folded."""


def as_json(value: Any) -> str:
    """The API's object exactly; ASCII, so that no name in it can steer a terminal."""
    return json.dumps(value, indent=2)


def as_yaml(value: Any) -> str:
    """The same as YAML, keys in the API's order."""
    return yaml.safe_dump(value, sort_keys=False).rstrip("\n")


def columns(titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table with a line of titles."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell(value)) for value in row))
    return _drawn(table)


def fields(pairs: Iterable[tuple[str, Any]]) -> str:
    """One object: a line a field."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(Text(name), Text(cell(value)))
    return _drawn(table)


def sections(value: Mapping[str, Any]) -> str:
    """One object: its fields, then each list of objects in it as a table of its own."""
    nested = {name: item for name, item in value.items() if _is_list_of_objects(item)}
    parts = [fields((name, item) for name, item in value.items() if name not in nested)]
    parts += [_of_objects(items) for items in nested.values()]
    return "\n\n".join(parts)


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _of_objects(items: list[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for item in items for name in item))
    return columns([printable(name.upper()) for name in names], [[item.get(name) for name in names] for item in items])


def cell(value: Any) -> str:
    """A value as a cell shows it: `-` for nothing, lists joined, everything printable."""
    if value is None or value in ("", [], {}):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(cell(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{printable(str(key))}={cell(item)}" for key, item in value.items())
    return printable(str(value))


def _drawn(table: Table) -> str:
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else _UNBOUNDED
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=terminal, highlight=False, markup=False, emoji=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip("\n").split("\n"))
