"""The arrows between the layers: who may import whom, and which package is used where."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Layer(NamedTuple):
    """What a layer may import besides itself: parts of this project, other packages; and what of Python it may not."""

    project: frozenset[str]
    packages: frozenset[str] = frozenset()
    banned: frozenset[str] = frozenset()


def layer(project: str = "", packages: str = "", banned: str = "") -> Layer:
    return Layer(frozenset(project.split()), frozenset(packages.split()), frozenset(banned.split()))


CLOCKS = "time random secrets uuid"
WORLD = f"{CLOCKS} os io pathlib shutil socket select threading subprocess asyncio logging tempfile concurrent"

LAYERS = {
    "ipamd.core": layer(packages="msgspec", banned=WORLD),
    "ipamd.cni": layer("ipamd.core ipamd.errors", "msgspec", banned=WORLD),
    "ipamd.imports": layer("ipamd.core ipamd.cni", banned=WORLD),
    "ipamd.storage": layer("ipamd.core", "sqlalchemy alembic", banned=CLOCKS),
    "ipamd.consensus": layer("ipamd.core", "pysyncobj msgspec", banned=CLOCKS),
    "ipamd.service": layer("ipamd.core ipamd.errors", banned=f"{CLOCKS} os socket subprocess"),
    "ipamd.metrics": layer("ipamd.core ipamd.errors ipamd.service", "prometheus_client", banned=f"{CLOCKS} os socket"),
    "ipamd.spool": layer("ipamd.core", banned=CLOCKS),
    "ipamd.agent": layer("ipamd.core ipamd.errors ipamd.cni ipamd.service", "msgspec", banned=f"{CLOCKS} os socket"),
    "ipamd.api": layer(
        "ipamd.core ipamd.errors ipamd.cni ipamd.imports ipamd.service",
        "aiohttp msgspec multidict yarl",
        banned=CLOCKS,
    ),
    "ipamd.main": layer("ipamd", "click"),
    "ipamd.programs": layer("ipamd", "click uvloop"),
    "ipamd.serving": layer("ipamd"),
    "ipamd.agenting": layer("ipamd"),
    "ipamd.formats": layer("ipamd"),
    "ipamd.beginning": layer("ipamd"),
    "ipamd": layer("ipamd.core ipamd.errors", "click"),
    "ipamctl": layer("ipamctl.tls", packages="click rich yaml"),
    "ipamctl.tls": layer("ipamctl", packages="click cryptography"),
    "ipamd_cni": layer(),
    "migrations": layer(packages="alembic sqlalchemy"),
}
"""By the longest prefix of a module's name. `ipamd` itself: settings, logs, errors and what else lies at the top."""

DATABASE = frozenset({"sqlite3"})
PLUGIN_MAY = frozenset({"posix", "time", "_socket", "select", "json", "sys"})
"""Only the first three at its start; that is the plugin's own test."""


class Import(NamedTuple):
    module: str
    line: int
    names: str


def sources() -> Iterator[tuple[str, Path]]:
    """Every module of the program, with its import name."""
    for top, base in (("ipamd", ROOT), ("migrations", ROOT), ("ipamctl", ROOT / "cli")):
        for path in sorted((base / top).rglob("*.py")):
            parts = path.relative_to(base).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path
    yield "ipamd_cni", ROOT / "cli" / "ipamd_cni.py"


def imports_of(module: str, source: str, *, is_package: bool = False) -> list[Import]:
    """What a module imports, anywhere in it; relative imports resolved; `from a import b` counts as a.b."""
    found = []
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [Import(module, node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            head = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*head, *([node.module] if node.module else [])])
            found += [Import(module, node.lineno, f"{base}.{alias.name}") for alias in node.names]
    return found


def layer_of(module: str) -> str | None:
    prefixes = [name for name in LAYERS if module == name or module.startswith(f"{name}.")]
    return max(prefixes, key=len, default=None)


def complaint(found: Import) -> str | None:
    """Why an import is not allowed; None: it is."""
    name = layer_of(found.module)
    assert name is not None, f"{found.module} belongs to no layer"
    rules, top = LAYERS[name], found.names.split(".")[0]
    where = f"{found.module}:{found.line} imports {found.names}"
    if found.names == "ipamd" and name != "ipamctl":
        return None
    if top in ("ipamd", "ipamctl", "ipamd_cni", "migrations"):
        target = layer_of(found.names)
        return (
            None if target == name or may_reach(rules, target, found.names) else f"{where}: an arrow against the layers"
        )
    if top in rules.banned:
        return f"{where}: {name} is given what it needs of the world"
    if top in DATABASE and name not in ("ipamd.storage", "migrations"):
        return f"{where}: the database belongs to storage"
    if name == "ipamd_cni" and top not in PLUGIN_MAY:
        return f"{where}: the plugin starts with posix, time and _socket only"
    return None if top in sys.stdlib_module_names or top in rules.packages else f"{where}: {top} has no place in {name}"


def may_reach(rules: Layer, target: str | None, name: str) -> bool:
    return any(allowed in (target, name) or name.startswith(f"{allowed}.") for allowed in rules.project)


def test_every_import_follows_the_arrows() -> None:
    complaints = [
        text
        for module, path in sources()
        for found in imports_of(module, path.read_text(), is_package=path.name == "__init__.py")
        if (text := complaint(found))
    ]
    assert complaints == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("ipamd.core.decide", "import time"),
        ("ipamd.core.decide", "from os import path"),
        ("ipamd.core.decide", "from ipamd.storage import database"),
        ("ipamd.core.decide", "def f():\n    import random"),
        ("ipamd.storage.view", "from ipamd.consensus.node import RaftNode"),
        ("ipamd.storage.view", "from ..consensus import node"),
        ("ipamd.consensus.node", "import sqlite3"),
        ("ipamd.service.pools", "import aiohttp"),
        ("ipamd.service.pools", "from ipamd.cni import call"),
        ("ipamd.service.pools", "from sqlalchemy import select"),
        ("ipamd.cni.call", "import socket"),
        ("ipamd.api.app", "from ipamd.storage.database import Database"),
        ("ipamd.settings", "from ipamd import main"),
        ("ipamd.spool.folder", "from ipamd.service import Services"),
        ("ipamd.agent.agent", "import aiohttp"),
        ("ipamd.agent.agent", "from ipamd.api.server import Listener"),
        ("ipamd.api.agent", "from ipamd.agent import Agent"),
        ("ipamctl.main", "import ipamd"),
        ("ipamctl.main", "import ipamd.errors"),
        ("ipamd_cni", "import os"),
    ],
)
def test_a_planted_arrow_is_found(module: str, source: str) -> None:
    assert [text for found in imports_of(module, source) if (text := complaint(found))]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("ipamd.core.decide", "from ipamd.core.model import Pool"),
        ("ipamd.api.app", "from ipamd.service.pools import Pools\nfrom aiohttp import web"),
        ("ipamd.programs.serve", "from ipamd.storage.database import Database\nimport uvloop"),
        ("ipamd_cni", "import posix, time, _socket"),
    ],
)
def test_a_proper_arrow_is_not(module: str, source: str) -> None:
    assert [text for found in imports_of(module, source) if (text := complaint(found))] == []


def graph() -> dict[str, set[str]]:
    """Module to the modules of ours that it imports."""
    paths = dict(sources())
    edges: dict[str, set[str]] = {}
    for module, path in paths.items():
        found = imports_of(module, path.read_text(), is_package=path.name == "__init__.py")
        targets = {name if name in paths else name.rpartition(".")[0] for _, _, name in found}
        edges[module] = {target for target in targets if target in paths and target != module}
    return edges


def cycle_in(edges: dict[str, set[str]]) -> list[str]:
    """A cycle of imports, or nothing."""
    done: set[str] = set()

    def walk(module: str, trail: list[str]) -> list[str]:
        if module in trail:
            return [*trail[trail.index(module) :], module]
        if module in done:
            return []
        for target in sorted(edges[module]):
            if found := walk(target, [*trail, module]):
                return found
        done.add(module)
        return []

    return next((found for module in sorted(edges) if (found := walk(module, []))), [])


def test_no_import_goes_in_a_circle() -> None:
    assert cycle_in(graph()) == []


def test_a_planted_circle_is_found() -> None:
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
