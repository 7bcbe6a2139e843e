"""Owns the pools that files declare: every document of every file, each a pool's definition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from ipamctl.documents import name_of, read_documents

SUFFIXES = (".json", ".yaml", ".yml")


class Declared(NamedTuple):
    """A pool, and where it is declared."""

    name: str
    body: dict[str, Any]
    place: str


def read_declared(paths: Sequence[Path]) -> list[Declared]:
    """The pools of some files, and of the files in some directories, in the order of their names. Raises UsageError."""
    found = [one for path in paths for file in _files(path) for one in _pools_of(file)]
    places: dict[str, str] = {}
    for one in found:
        if one.name in places:
            raise click.UsageError(f"pool {one.name!r} is declared twice: in {places[one.name]} and in {one.place}")
        places[one.name] = one.place
    return found


def _files(path: Path) -> list[Path]:
    """A file itself; of a directory all that have the suffix of a document, deeper ones too."""
    if str(path) == "-" or not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if not files:
        raise click.UsageError(f"{path} has no file of the kinds {', '.join(SUFFIXES)}")
    return files


def _pools_of(file: Path) -> Iterator[Declared]:
    documents = read_documents(file)
    for number, document in enumerate(documents, 1):
        place = name_of(file) + (f" (document {number})" if len(documents) > 1 else "")
        for body in _bodies(document, place):
            yield Declared(_name(body, place), body, place)


def _bodies(document: Any, place: str) -> Iterator[dict[str, Any]]:
    """One pool, or `{"items": [...]}` as a list prints it."""
    if isinstance(document, dict) and isinstance(document.get("items"), list) and set(document) <= {"items", "next"}:
        for item in document["items"]:
            yield from _bodies(item, place)
    elif isinstance(document, dict):
        yield document
    else:
        raise click.UsageError(f"{place} does not hold a pool")


def _name(body: dict[str, Any], place: str) -> str:
    name = body.get("name")
    if not isinstance(name, str) or not name:
        raise click.UsageError(f"{place} holds a pool without a name")
    return name
