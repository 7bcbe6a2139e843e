"""Owns the file layer: every byte that must last goes through it, so that a simulated disk can take its place."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NamedTuple, Protocol

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"""What a write fails with when the disk, or a quota on it, is full."""

_UNSUPPORTED = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})


class Room(NamedTuple):
    """What a file system has, and how much of it this process could still use."""

    free_bytes: int
    total_bytes: int


class File(Protocol):
    """An open file. Every method raises OSError."""

    def pwrite(self, data: bytes, offset: int) -> None:
        """Write all of it."""

    def pread(self, size: int, offset: int) -> bytes:
        """So many bytes; fewer where the file ends."""

    def size(self) -> int:
        """Length in bytes."""

    def truncate(self, size: int) -> None:
        """Cut or, with zeros, extend the file."""

    def preallocate(self, size: int) -> None:
        """Make the file this long with blocks of its own; where that cannot be done it stays as it is."""

    def datasync(self) -> None:
        """Put content and length on the disk."""

    def close(self) -> None:
        """Let it go."""


class Files(Protocol):
    """A file system. Every method raises OSError."""

    def make_directory(self, path: Path) -> None:
        """Make a directory (0700) and sync its parent, unless it is there."""

    def names(self, directory: Path) -> list[str]:
        """The names in a directory, sorted."""

    def create(self, path: Path) -> File:
        """A new, empty file (0600)."""

    def open(self, path: Path, *, writable: bool) -> File:
        """A file that is there."""

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name; one that has it already is replaced."""

    def unlink(self, path: Path) -> None:
        """Remove a file."""

    def sync_directory(self, path: Path) -> None:
        """Put the names of a directory on the disk."""

    def room(self, path: Path) -> Room:
        """How much room there is where `path` lies."""


class OsFile:
    """A file of the operating system."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def pwrite(self, data: bytes, offset: int) -> None:
        """Write all of it, however often the kernel stops short."""
        written = os.pwrite(self._descriptor, data, offset)
        while written < len(data):
            written += os.pwrite(self._descriptor, memoryview(data)[written:], offset + written)

    def pread(self, size: int, offset: int) -> bytes:
        """So many bytes, however often the kernel stops short."""
        data = os.pread(self._descriptor, size, offset)
        while len(data) < size:
            more = os.pread(self._descriptor, size - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def size(self) -> int:
        """Length in bytes."""
        return os.fstat(self._descriptor).st_size

    def truncate(self, size: int) -> None:
        """Cut or extend."""
        os.ftruncate(self._descriptor, size)

    def preallocate(self, size: int) -> None:
        """Allocate, where the file system can."""
        try:
            os.posix_fallocate(self._descriptor, 0, size)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise

    def datasync(self) -> None:
        """Content, and the length where it changed."""
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)


class OsFiles:
    """The operating system's file system."""

    def make_directory(self, path: Path) -> None:
        """Make and sync, unless it is there."""
        if not path.is_dir():
            path.mkdir(mode=0o700)
            self.sync_directory(path.parent)

    def names(self, directory: Path) -> list[str]:
        """Sorted names."""
        return sorted(entry.name for entry in directory.iterdir())

    def create(self, path: Path) -> File:
        """A new file that nobody else may read."""
        return OsFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    def open(self, path: Path, *, writable: bool) -> File:
        """A file that is there."""
        return OsFile(os.open(path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC))

    def rename(self, old: Path, new: Path) -> None:
        """Replaces what has the name."""
        old.replace(new)

    def unlink(self, path: Path) -> None:
        """Remove."""
        path.unlink()

    def sync_directory(self, path: Path) -> None:
        """Sync of the names."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def room(self, path: Path) -> Room:
        """For this process: what is reserved for root is not counted."""
        found = os.statvfs(path)
        return Room(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)
