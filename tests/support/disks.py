"""Owns file systems for tests: small ext4 ones on loop devices, which can lose their power and run full."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

_SHUTDOWN = 0x8004587D
"""FS_IOC_SHUTDOWN of <linux/fs.h>."""

_WITHOUT_FLUSH = 2
"""EXT4_GOING_FLAGS_NOLOGFLUSH: not even what ext4's journal holds in memory is written."""


class Disk:
    """An ext4 file system in a file, mounted at `place`. `with` mounts and unmounts it."""

    def __init__(self, place: Path, size_mib: int) -> None:
        self.place = place
        place.mkdir(parents=True, exist_ok=True)
        self._image = place.with_suffix(".img")
        with self._image.open("wb") as file:
            file.truncate(size_mib << 20)
        _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,nodiscard", str(self._image))

    @property
    def is_mounted(self) -> bool:
        """Whether it is there."""
        return self.place.is_mount()

    def mount(self) -> None:
        """Plug it in; ext4 replays its own journal."""
        _run("mount", "-o", "loop", str(self._image), str(self.place))

    def unmount(self) -> None:
        """Unplug it, when no process uses it any more.

        It goes on as a copy: mount namespaces that others made meanwhile may still hold the old one, dead as it is.
        """
        _run("umount", str(self.place))
        copy = self._image.with_suffix(".copy")
        _run("cp", "--sparse=always", str(self._image), str(copy))
        copy.replace(self._image)

    def cut_power(self) -> None:
        """From now on nothing reaches it, and what was not synced never did. Reads and writes fail until it is mounted again."""
        directory = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(directory, _SHUTDOWN, struct.pack("I", _WITHOUT_FLUSH))
        finally:
            os.close(directory)

    def __enter__(self) -> Self:
        self.mount()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_mounted:
            _run("umount", "--lazy", str(self.place))
        self._image.unlink()


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
