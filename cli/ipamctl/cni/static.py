"""Owns the static plugin, for hosts without Python: ready-made for this machine, or compiled here from its source."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

SOURCE = "ipamd_cni.c"

FLAGS = ("-std=gnu11", "-Os", "-static", "-s", "-Wall", "-Wextra")

READY = Path(sys.prefix) / "libexec" / "ipamd"
"""Where an image without a compiler keeps ready-made plugins, `cni-static-MACHINE`."""

_HERE = Path(__file__).resolve().parent
_PLACES = (_HERE / SOURCE, _HERE.parents[2] / "contrib" / "cni-static" / SOURCE)
"""In an installation the source lies beside this file, in a clone where it is at home."""

_LONGEST_S = 120
"""The first run of Zig's compiler makes a C library."""

_ANSWER_S = 10


class NoStaticPlugin(Exception):  # noqa: N818 - named for what it is about
    """There is no static plugin for this machine, and none can be made."""


def static_plugin() -> bytes:
    """The plugin as a program for this machine that needs nothing of it. Raises NoStaticPlugin."""
    ready = READY / f"cni-static-{platform.machine()}"
    if ready.is_file():
        return _that_runs(ready)
    with tempfile.TemporaryDirectory(prefix="ipamd-cni-") as folder:
        made = Path(folder) / "ipamd"
        _compile(made)
        return _that_runs(made)


def compilers() -> list[list[str]]:
    """The commands that may compile it, best first."""
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", f"{platform.machine()}-linux-musl"]
    found = [[path] for path in map(shutil.which, ("cc", "gcc", "clang")) if path is not None][:1]
    return [*found, *([zig] if find_spec("ziglang") is not None else [])]


def _compile(target: Path) -> None:
    source = next((place for place in _PLACES if place.is_file()), None)
    if source is None:
        raise NoStaticPlugin("its source is not part of this installation of ipamctl")
    said = "there is no C compiler here; install one (cc, or the package ziglang beside ipamctl)"
    for compiler in compilers():
        try:
            done = subprocess.run(  # noqa: S603 - a compiler of this host, and no word from outside
                [*compiler, *FLAGS, "-o", str(target), str(source)],
                capture_output=True, text=True, check=False, timeout=_LONGEST_S, errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            said = f"{compiler[0]} does not compile it within {_LONGEST_S} s"
            continue
        if done.returncode == 0:
            return
        said = f"{compiler[0]} does not compile it: {_last_line(done.stderr)}"
    raise NoStaticPlugin(said)


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2] or "it says nothing"


def _that_runs(program: Path) -> bytes:
    """Its bytes, once it has answered VERSION: a program for another machine must not replace one that works."""
    try:
        done = subprocess.run(  # noqa: S603 - what was just made here
            [program], env={"CNI_COMMAND": "VERSION"}, capture_output=True, check=False, timeout=_ANSWER_S
        )
    except OSError as failed:
        raise NoStaticPlugin(f"{program} does not run here: {os.strerror(failed.errno or 0)}") from failed
    except subprocess.TimeoutExpired as failed:
        raise NoStaticPlugin(f"{program} does not run here: it gave no answer within {_ANSWER_S} s") from failed
    if done.returncode != 0 or b"supportedVersions" not in done.stdout:
        raise NoStaticPlugin(f"{program} does not run here: it ended with status {done.returncode}")
    return program.read_bytes()
