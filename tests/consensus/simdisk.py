"""Owns a simulated disk: what processes see (pages) and what survives a power loss (the platter) are two things.

Every call counts as a step. A disk can stop at a step, in the middle of a write too, fail a call, or be full.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ipamd.consensus.files import Room

SECTOR = 64


class Crash(BaseException):
    """The process, or the power, is gone."""


@dataclass(eq=False)
class Inode:
    """A file's content, as seen and as surely stored, and the changes in between."""

    page: bytearray = field(default_factory=bytearray)
    platter: bytearray = field(default_factory=bytearray)
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list)

    def write(self, offset: int, data: bytes) -> None:
        put(self.page, offset, data)
        self.unsynced.append((offset, data))

    def resize(self, size: int) -> None:
        resize(self.page, size)
        self.unsynced.append((size, None))

    def sync(self) -> None:
        for offset, data in self.unsynced:
            change_content(self.platter, offset, data)
        self.unsynced.clear()

    def forget(self) -> None:
        """A sync failed: the kernel takes the pages for clean, and the platter never got them."""
        self.unsynced.clear()

    def after_power_loss(self, chance: random.Random) -> Inode:
        """Each sector of each change that was not synced is there or not."""
        content = bytearray(self.platter)
        for offset, data in self.unsynced:
            if data is None:
                if chance.random() < 0.5:
                    resize(content, offset)
                continue
            for at in range(0, len(data), SECTOR):
                if chance.random() < 0.5:
                    put(content, offset + at, data[at : at + SECTOR])
        return Inode(bytearray(content), content)


def resize(content: bytearray, size: int) -> None:
    del content[size:]
    content.extend(bytes(size - len(content)))


def change_content(content: bytearray, offset: int, data: bytes | None) -> None:
    """A write, or (`data` None) another length."""
    if data is None:
        resize(content, offset)
    else:
        put(content, offset, data)


def put(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset:
        resize(content, offset)
    content[offset : offset + len(data)] = data


Names = dict[Path, Inode]
Fault = Callable[[str, Path], OSError | None]


class SimFile:
    def __init__(self, disk: SimDisk, path: Path, inode: Inode) -> None:
        self.disk, self.path, self.inode = disk, path, inode

    def pwrite(self, data: bytes, offset: int) -> None:
        half = len(data) // 2
        self.disk.step("pwrite", self.path, lambda: self.inode.write(offset, data[:half]))
        if offset + len(data) > len(self.inode.page) and not self.disk.has_room(offset + len(data), self.inode):
            self.inode.write(offset, data[:half])
            raise OSError(errno.ENOSPC, "No space left on device")
        self.inode.write(offset, data)

    def pread(self, size: int, offset: int) -> bytes:
        self.disk.check("pread", self.path)
        return bytes(self.inode.page[offset : offset + size])

    def size(self) -> int:
        return len(self.inode.page)

    def truncate(self, size: int) -> None:
        self.disk.step("truncate", self.path)
        self.inode.resize(size)

    def preallocate(self, size: int) -> None:
        self.disk.step("preallocate", self.path)
        if not self.disk.has_room(size, self.inode):
            raise OSError(errno.ENOSPC, "No space left on device")
        if size > len(self.inode.page):
            self.inode.resize(size)

    def datasync(self) -> None:
        try:
            self.disk.step("datasync", self.path)
        except OSError:
            self.inode.forget()
            raise
        self.inode.sync()

    def close(self) -> None:
        """Nothing is held."""


class SimDisk:
    """Files in memory. `stop_at` is the step at which everything ends; `fault` may fail a call."""

    def __init__(self, names: Names | None = None, *, stop_at: int | None = None) -> None:
        self.seen: Names = dict(names or {})
        self.stored: Names = dict(names or {})
        self.pending: list[tuple[str, Path, Path | None, Inode]] = []
        self.stop_at = stop_at
        self.steps = 0
        self.log: list[tuple[str, str]] = []
        self.fault: Fault | None = None
        self.capacity: int | None = None

    def step(self, name: str, path: Path, partly: Callable[[], None] = lambda: None) -> None:
        """Count a call; where it is to stop or to fail, it does so half done."""
        self.steps += 1
        self.log.append((name, path.name))
        if self.steps == self.stop_at:
            partly()
            raise Crash
        try:
            self.check(name, path)
        except OSError:
            partly()
            raise

    def check(self, name: str, path: Path) -> None:
        """Fail, if this call is to fail; a read is no step, for it changes nothing."""
        error = self.fault(name, path) if self.fault else None
        if error is not None:
            raise error

    def has_room(self, size: int, inode: Inode) -> bool:
        used = sum(len(one.page) for one in self.seen.values()) - len(inode.page)
        return self.capacity is None or used + size <= self.capacity

    def killed(self) -> SimDisk:
        """The disk as the next process finds it after a kill -9: pages outlive processes."""
        disk = SimDisk(self.seen)
        disk.stored, disk.pending = self.stored, list(self.pending)
        return disk

    def unplugged(self, chance: random.Random) -> SimDisk:
        """The disk as the next process finds it after a power loss."""
        names = dict(self.stored)
        for kind, path, other, inode in self.pending:
            if chance.random() < 0.5:
                change(names, kind, path, other, inode)
        return SimDisk({path: inode.after_power_loss(chance) for path, inode in names.items()})

    def make_directory(self, path: Path) -> None:
        """Directories are there."""

    def names(self, directory: Path) -> list[str]:
        return sorted(path.name for path in self.seen if path.parent == directory)

    def create(self, path: Path) -> SimFile:
        self.step("create", path)
        if path in self.seen:
            raise FileExistsError(errno.EEXIST, "File exists")
        return SimFile(self, path, self._change("put", path, None, Inode()))

    def open(self, path: Path, *, writable: bool) -> SimFile:  # noqa: ARG002 - the layer's interface
        return SimFile(self, path, self.seen[path])

    def rename(self, old: Path, new: Path) -> None:
        self.step("rename", old)
        self._change("rename", old, new, self.seen[old])

    def unlink(self, path: Path) -> None:
        self.step("unlink", path)
        self._change("drop", path, None, self.seen[path])

    def sync_directory(self, path: Path) -> None:
        self.step("sync_directory", path)
        self.stored = dict(self.seen)
        self.pending.clear()

    def room(self, path: Path) -> Room:  # noqa: ARG002 - likewise
        used = sum(len(one.page) for one in self.seen.values())
        total = self.capacity if self.capacity is not None else 1 << 40
        return Room(max(total - used, 0), total)

    def _change(self, kind: str, path: Path, other: Path | None, inode: Inode) -> Inode:
        self.pending.append((kind, path, other, inode))
        change(self.seen, kind, path, other, inode)
        return inode


def change(names: Names, kind: str, path: Path, other: Path | None, inode: Inode) -> None:
    names.pop(path, None)
    if kind == "put":
        names[path] = inode
    elif kind == "rename" and other is not None:
        names[other] = inode
