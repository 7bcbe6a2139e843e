"""Owns the program as other versions of it: wheels built from the repository's history, and from the sources as they are.

A build is a wheel that was taken apart, so that a process runs it with two variables of the environment, on what else is
installed here. Builds of commits are kept among the temporary files: a commit never changes.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
_TIMEOUT_S = 600


class Build(NamedTuple):
    """One version of the program."""

    place: Path

    @property
    def environment(self) -> dict[str, str]:
        """What a process of this version needs."""
        return {"PYTHONPATH": str(self.place), "PYTHONSAFEPATH": "1"}

    @property
    def prefix(self) -> tuple[str, ...]:
        """The same, before a command line."""
        return ("env", *(f"{name}={value}" for name, value in self.environment.items()))

    @property
    def plugin(self) -> Path:
        """Its CNI plugin."""
        path = self.place / "ipamd_cni.py"
        path.chmod(0o755)
        return path


def of_commit(commit: str) -> Build:
    """The program as of a commit. Skips the test where there is no history; in CI that is a failure."""
    kept = Path(tempfile.gettempdir()) / f"ipamd-build-{os.getuid()}-{commit[:12]}"
    if not kept.is_dir():
        sources = Path(tempfile.mkdtemp(prefix="ipamd-sources-"))
        with tarfile.open(fileobj=io.BytesIO(_archive(commit))) as archive:
            archive.extractall(sources, filter="data")
        _build(sources, kept)
    return Build(kept)


def of_sources(place: Path) -> Build:
    """The program as it lies here."""
    _build(ROOT, place)
    return Build(place)


def _archive(commit: str) -> bytes:
    git = ["git", "-C", str(ROOT), "-c", f"safe.directory={ROOT}"]
    done = subprocess.run(
        [*git, "archive", "--format=tar", commit], capture_output=True, check=False, timeout=_TIMEOUT_S
    )
    if done.returncode != 0:
        reason = f"older versions are built from the history, and commit {commit[:12]} is not in this one"
        if os.environ.get("CI") == "true":
            pytest.fail(f"{reason}: clone with all of it")
        pytest.skip(reason)
    return done.stdout


def _build(sources: Path, place: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
        command = [*build, "--disable-pip-version-check", "-w", folder, str(sources)]
        subprocess.run(command, check=True, timeout=_TIMEOUT_S)
        (wheel,) = Path(folder).glob("*.whl")
        draft = Path(tempfile.mkdtemp(dir=place.parent))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(draft)
        try:
            draft.replace(place)
        except OSError:  # it is there: another run of the tests, which keeps builds in the same place, was quicker
            if not place.is_dir():
                raise
            shutil.rmtree(draft)
