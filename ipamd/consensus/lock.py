"""Owns the lock on a data directory: two processes on one journal would each undo what the other acknowledged."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from ipamd.consensus.failures import StartRefused

NAME = "lock"


@contextlib.contextmanager
def lock_data_dir(directory: Path) -> Iterator[None]:
    """Hold the directory; the lock ends with the process, however that comes.

    Raises StartRefused when another process holds it, or the directory cannot be written.
    """
    with contextlib.ExitStack() as stack:
        file = _open(directory / NAME, os.O_RDWR | os.O_CREAT)
        stack.callback(os.close, file)
        _lock(directory, file, file)
        itself = _open(directory, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, itself)
        _lock(directory, itself, file)  # somebody may have removed the file, taking it for left over
        with contextlib.suppress(OSError):  # a full disk: who holds it is only for the sentence
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        yield


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartRefused(f"{path} cannot be opened: {error.strerror}") from error


def _lock(directory: Path, descriptor: int, file: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if descriptor != file and not isinstance(error, BlockingIOError):
            return  # a file system that locks files only
        holder = os.pread(file, 20, 0).decode(errors="replace").strip()
        raise StartRefused(f"{directory} is in use by another ipamd (process {holder or 'unknown'})") from error
