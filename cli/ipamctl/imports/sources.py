"""Owns reading the files of an import. Whatever cannot be read is told of all of them together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from ipamctl.documents import name_of, read_document
from ipamctl.exits import note
from ipamctl.text import reason

DOCUMENTS = (".json", ".yaml", ".yml")
MOST_FILE_BYTES = 4096
"""A file of host-local has a container's id and an interface: what is larger is something else."""

_DEFINITION = "NetworkAttachmentDefinition"


def read_objects(path: Path, confs: tuple[Path, ...]) -> dict[str, Any]:
    """The objects of a file, of stdin or of all documents in a directory, with configurations, as one List."""
    files = sorted(one for one in path.iterdir() if one.suffix in DOCUMENTS) if path.is_dir() else [path]
    if not files:
        raise click.UsageError(f"{path} has no file that ends in {', '.join(DOCUMENTS)}")
    documents = _read_all((*files, *confs))
    items = [item for file in files for item in _items(file, documents[file])]
    items += [item for conf in confs for item in _definitions(conf, documents[conf])]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def read_configurations(confs: tuple[Path, ...]) -> list[Any]:
    """The configurations in some files: of plugins, of lists of plugins, or NetworkAttachmentDefinitions."""
    documents = _read_all(confs)
    return [item for conf in confs for item in _items(conf, documents[conf], kind_needed=False)]


def read_networks(path: Path, advance: Callable[[int], None]) -> dict[str, dict[str, str]]:
    """The files of host-local: network to file name to content. `path`: its data directory, or that of one network."""
    files = list(_files_of(path))
    networks: dict[str, dict[str, str]] = {}
    bad: list[str] = []
    for number, (network, file) in enumerate(files, 1):
        try:
            networks.setdefault(network, {})[file.name] = _content(file)
        except (OSError, ValueError) as error:
            bad.append(f"{file} cannot be read: {reason(error)}")
        advance(number * 100 // len(files))
    _refuse(bad)
    return networks


def _files_of(path: Path) -> Iterator[tuple[str, Path]]:
    try:
        inside = sorted(path.iterdir())
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {reason(error)}") from error
    directories = [one for one in inside if one.is_dir()]
    plain = [one for one in inside if not one.is_dir()]
    if plain and not directories:  # the directory of one network
        yield from ((path.resolve().name, one) for one in plain)
        return
    if plain:
        raise click.UsageError(f"{plain[0]} lies among the directories of networks: what is it?")
    for directory in directories:
        yield from ((directory.name, one) for one in sorted(directory.iterdir()) if not one.is_dir())


def _content(file: Path) -> str:
    with file.open("rb") as opened:
        data = opened.read(MOST_FILE_BYTES + 1)
    if len(data) > MOST_FILE_BYTES:
        raise ValueError(f"it has more than {MOST_FILE_BYTES} bytes")
    return data.decode()


def _read_all(files: tuple[Path, ...]) -> dict[Path, Any]:
    documents: dict[Path, Any] = {}
    bad: list[str] = []
    for file in files:
        try:
            documents[file] = read_document(file)
        except click.UsageError as error:
            bad.append(error.message)
    _refuse(bad)
    return documents


def _refuse(bad: list[str]) -> None:
    """One failure for all; what comes before the last sentence is said beside it."""
    for sentence in bad[:-1]:
        note(sentence)
    if bad:
        raise click.UsageError(bad[-1])


def _items(file: Path, document: Any, *, kind_needed: bool = True) -> list[Any]:
    """The objects of a document; those of a typed list need not say their kind themselves."""
    if not isinstance(document, dict) or (kind_needed and not isinstance(document.get("kind"), str)):
        raise click.UsageError(f"{name_of(file)} is no Kubernetes object or list: it has no kind")
    kind = str(document.get("kind", ""))
    if not kind.endswith("List"):
        return [document]
    items = document.get("items")
    if not isinstance(items, list):
        raise click.UsageError(f"{name_of(file)} is a {kind} without items: is it cut short?")
    known = {"kind": kind.removesuffix("List")} if kind != "List" else {}
    return [{**known, **item} if isinstance(item, dict) else item for item in items]


def _definitions(file: Path, document: Any) -> Iterator[Any]:
    """Configurations as NetworkAttachmentDefinitions, which is how Kubernetes keeps them."""
    for item in _items(file, document, kind_needed=False):
        if item.get("kind") == _DEFINITION:
            yield item
        else:
            spec = {"config": json.dumps(item)}
            yield {"kind": _DEFINITION, "metadata": {"name": file.name}, "spec": spec}
