"""The locked dependencies of the image: all that the package asks for, in versions that it takes, each with hashes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "contrib" / "docker"
ENTRY = re.compile(
    r"^([a-z0-9-]+)==(\S+)(?: ;[^\\\n]*(?= \\))?((?: \\\n    --hash=sha256:[0-9a-f]{64})*)", re.MULTILINE
)


def locked(name: str) -> dict[str, str]:
    """The versions of a lock, by package."""
    return {found[1]: found[2] for found in ENTRY.finditer((DOCKER / name).read_text())}


def asked() -> list[Requirement]:
    """What the package depends on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [Requirement(text) for text in project["dependencies"]]


@pytest.mark.parametrize("requirement", asked(), ids=str)
def test_what_the_package_asks_for_is_locked_in_a_version_that_it_takes(requirement: Requirement) -> None:
    version = locked("requirements.lock").get(canonicalize_name(requirement.name))
    assert version is not None, "write it anew: make lock"
    assert requirement.specifier.contains(version), "write it anew: make lock"


def test_what_builds_the_package_is_locked() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    versions = locked("build.lock")
    for requirement in map(Requirement, build):
        assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)])


@pytest.mark.parametrize("name", ["requirements.lock", "build.lock"])
def test_each_has_hashes_and_no_place_to_come_from(name: str) -> None:
    text = (DOCKER / name).read_text()
    entries = list(ENTRY.finditer(text))
    assert len(entries) == len(re.findall(r"^\S+==", text, re.MULTILINE))
    assert all(entry[3] for entry in entries)
    assert "://" not in text
    assert not re.search(r"^(-i|-f|--index|--extra|--find|--trusted)", text, re.MULTILINE)
