"""Owns the watch over secrets in a whole run of the tests: in answers, command lines, logs, and whatever lies on the disk.

Every token looks like one (`ipamd_` and 43 characters), so each of them is a canary: those that servers make by
themselves too. A secret may stand in the one answer that tells it, and in a file that holds nothing else.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ipamd.datadir import JOURNAL_DIRECTORY

SECRET = "ipamd_Canary-of-all-the-tests-that-have-a-server1"
"""The administrator's, of every server that runs in the tests' own process."""

_LOOKS_LIKE_ONE = re.compile(rb"ipamd_(?=[a-z_]*[A-Z0-9-])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])")
_KEY = b"PRIVATE KEY-----"
_KEY_FILES = (".key", ".pem")
_PROGRAMS = (".py", ".pyc", ".so", ".c", ".md")
_NOT_OURS = ("site-packages", "proc", "sys")
_MOST_BYTES = 64 << 20
_TELLS = ("POST", "/v1/tokens")


class Seen(NamedTuple):
    """What a search went through, and where it found what must not be there."""

    files: int
    secrets: int
    logs: int
    leaks: list[str]


class Watch(logging.Handler):
    """Remembers where a secret was seen during this run."""

    def __init__(self) -> None:
        super().__init__()
        self.leaks: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Look at a line that this process logs."""
        extra = {key: value for key, value in vars(record).items() if isinstance(value, str)}
        if has_secret(f"{record.getMessage()} {extra}".encode(errors="replace")):
            self.leaks.append(f"log line of {record.name}: {record.msg!r}")

    def audit(self, event: str, arguments: tuple[object, ...]) -> None:
        """Look at the command line of a program that this process starts."""
        if event == "subprocess.Popen" and has_secret(repr(arguments[1]).encode(errors="replace")):
            self.leaks.append(f"command line: {arguments[0]!r}")


WATCH = Watch()


def begin() -> None:
    """Watch what this process logs and starts, until it ends."""
    logging.getLogger().addHandler(WATCH)
    sys.addaudithook(WATCH.audit)


def has_secret(data: bytes) -> bool:
    """Whether a token stands somewhere."""
    return b"ipamd_" in data and _LOOKS_LIKE_ONE.search(data) is not None


def check_answer(method: str, target: str, raw: bytes) -> None:
    """Raises AssertionError for an answer with a secret that is not the one that tells it."""
    if b"ipamd_" not in raw or not has_secret(raw):
        return
    if (method, target.partition("?")[0].removesuffix("/enrol")) != _TELLS:
        raise AssertionError(f"the answer of {method} {target} has a secret")
    shown = {name: value for name, value in json.loads(raw).items() if name != "secret"}
    if has_secret(json.dumps(shown).encode()):
        raise AssertionError(f"the answer of {method} {target} has a secret in another place")


def check_process(pid: int) -> None:
    """Raises AssertionError where the title of a process has a secret."""
    shown = b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "comm"))
    assert not has_secret(shown), f"process {pid} shows a secret"


def search(root: Path) -> Seen:
    """Go through all files below a directory."""
    files, secrets, logs, leaks = 0, 0, 0, list[str]()
    for path in _files(root):
        data = _read(path)
        if data is None:
            continue
        files += 1
        logs += path.suffix == ".log" and path.parent.name != JOURNAL_DIRECTORY
        if _LOOKS_LIKE_ONE.fullmatch(data.strip()):
            secrets += 1
        elif has_secret(data):
            leaks.append(f"{path}: a token")
        if _KEY in data and path.suffix not in (*_KEY_FILES, *_PROGRAMS):
            leaks.append(f"{path}: a private key")
    return Seen(files, secrets, logs, leaks)


def _files(root: Path) -> Iterator[Path]:
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if name not in _NOT_OURS]
        yield from (Path(directory) / name for name in files)


def _read(path: Path) -> bytes | None:
    try:
        if not path.is_file() or path.is_symlink() or path.stat().st_size > _MOST_BYTES:
            return None
        return path.read_bytes()
    except OSError:
        return None
