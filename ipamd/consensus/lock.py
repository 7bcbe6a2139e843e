"""Owns the lock on a data directory: two processes on one journal would each undo what the other acknowledged."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from ipamd.consensus.failures import StartRefused

NAME = "lock"


class DirectoryLock:
    """Held from construction until `release` or the end of the process, however that comes."""

    def __init__(self, directory: Path) -> None:
        """Raises StartRefused when another process holds it, or the directory cannot be written."""
        path = directory / NAME
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StartRefused(f"{path} cannot be opened: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._descriptor, 20, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise StartRefused(f"{directory} is in use by another ipamd (process {holder or 'unknown'})") from error
        with contextlib.suppress(OSError):  # a full disk: who holds it is only for the sentence
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let another process have it."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
