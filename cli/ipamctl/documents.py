"""Owns reading a JSON or YAML document that somebody wrote: from a file or stdin, and never with a key twice."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
import yaml

from ipamctl.text import reason


def read_document(path: Path) -> Any:
    """What the file holds; `-` is stdin. Raises UsageError."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
        return _decoded(path, text)
    except (OSError, ValueError, yaml.YAMLError) as bad:
        raise click.UsageError(f"{name_of(path)} cannot be read: {reason(bad)}") from bad


def read_documents(path: Path) -> list[Any]:
    """All documents that the file holds; only YAML can have several. Raises UsageError."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
        if _is_yaml(path, text):
            found = list(yaml.load_all(text, _Loader))
            return [document for document in found if document is not None]
        return [_decoded(path, text)]
    except (OSError, ValueError, yaml.YAMLError) as bad:
        raise click.UsageError(f"{name_of(path)} cannot be read: {reason(bad)}") from bad


def name_of(path: Path) -> str:
    """What a sentence calls the file."""
    return "stdin" if str(path) == "-" else str(path)


def _decoded(path: Path, text: str) -> Any:
    if _is_yaml(path, text):
        return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    return json.loads(text, object_pairs_hook=_unique)


def _is_yaml(path: Path, text: str) -> bool:
    return path.suffix in {".yaml", ".yml"} or (str(path) == "-" and not text.lstrip().startswith(("{", "[")))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError(f"it has the key {_first_twice([key for key, _ in pairs])!r} twice")
    return value


def _first_twice(keys: list[str]) -> str:
    return next(key for number, key in enumerate(keys) if key in keys[:number])


class _Loader(yaml.SafeLoader):
    """Reads YAML as SafeLoader does, but takes no key twice: the last one would win in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping. Raises YAMLError."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) < len(keys):
            raise yaml.YAMLError(f"it has the key {_first_twice(keys)!r} twice")
        return super().construct_mapping(node, deep)
