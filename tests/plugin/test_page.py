"""The reference page of the plugin names every setting, every version and the annotations that are read."""

from __future__ import annotations

import ast
from pathlib import Path

from ipamd.cni import requested
from ipamd.cni.versions import SUPPORTED
from ipamd.core.strictjson import MAX_DEPTH
from tests.support.plugin import PLUGIN

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "cni.md").read_text()


def constant(name: str) -> object:
    """A constant of the plugin."""
    for node in ast.parse(PLUGIN.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
            return ast.literal_eval(node.value)
    raise AssertionError(f"the plugin has no {name}")


def test_every_setting_has_a_line() -> None:
    settings = constant("SETTINGS")
    assert isinstance(settings, tuple)
    described = [line.split()[1].strip("`") for line in PAGE.splitlines() if line.startswith("| `")]
    assert {setting.decode() for setting in settings} <= set(described)


def test_defaults_and_limits_are_those_of_the_program() -> None:
    for name in ("CONF", "ADDRESS"):
        value = constant(name)
        assert isinstance(value, bytes)
        assert f"`{value.decode()}`" in PAGE
    assert all(version in PAGE for version in SUPPORTED)
    assert f"at most {MAX_DEPTH} levels" in PAGE


def test_the_plugin_and_the_server_speak_the_same_versions() -> None:
    versions = constant("VERSIONS")
    assert isinstance(versions, bytes)
    assert tuple(versions.decode().replace('"', "").split(", ")) == SUPPORTED


def test_the_annotations_are_named() -> None:
    assert f"`{requested.POOL_ANNOTATION}`" in PAGE
    assert f"`{requested.ADDRESS_ANNOTATION.format('IFNAME')}`" in PAGE
    assert f"`{requested.ANNOTATIONS}`" in PAGE
