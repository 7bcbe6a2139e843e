"""Owns putting an executable in its place: whole or not at all, and a script with an interpreter that is there."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

_FLAGS = "-IS"
"""Isolated and without site: the fastest start, and nothing of the caller's environment gets in."""

_SHEBANG_BYTES = 255
"""Linux reads no more of the first line (since 5.1; 127 before)."""


class BadInterpreter(Exception):  # noqa: N818 - named for what it is about
    """An interpreter that cannot run the script."""


def with_shebang(script: bytes, python: Path) -> bytes:
    """The script, run by `python`. Raises BadInterpreter."""
    if not python.is_absolute() or any(char.isspace() for char in str(python)):
        raise BadInterpreter(f"the interpreter {python} is not a full path without white space")
    if not python.is_file():
        raise BadInterpreter(f"there is no interpreter {python}")
    if not os.access(python, os.X_OK):
        raise BadInterpreter(f"the interpreter {python} is not executable")
    line = f"#!{python} {_FLAGS}\n".encode()
    if len(line) > _SHEBANG_BYTES:
        raise BadInterpreter(f"the path of the interpreter {python} is too long for the first line of a script")
    _old, _newline, rest = script.partition(b"\n")
    return line + rest


def place(program: bytes, target: Path) -> None:
    """Write the program as `target`, mode 0755: who runs it meanwhile gets the old or the new. Raises OSError."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(program)
            file.flush()
            os.fchmod(file.fileno(), 0o755)
            os.fsync(file.fileno())
        Path(name).rename(target)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise
    _sync_directory(target.parent)


def _sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
