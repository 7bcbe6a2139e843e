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
    descriptor = _locked(directory)
    try:
        yield
    finally:
        os.close(descriptor)


def _locked(directory: Path) -> int:
    path = directory / NAME
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartRefused(f"{path} cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
        os.close(descriptor)
        raise StartRefused(f"{directory} is in use by another ipamd (process {holder or 'unknown'})") from error
    with contextlib.suppress(OSError):  # a full disk: who holds it is only for the sentence
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor
