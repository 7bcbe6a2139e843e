"""Owns what only the operating system knows: clocks, chance, the host, and what a network namespace's file is now.

`main` makes these and hands them down; nothing below it asks the system itself.
"""

from __future__ import annotations

import os
import resource
import socket
import stat
import time
from contextlib import suppress
from pathlib import Path

from ipamd.settings import Host

MAX_FILES = 16_384
MAX_TEXT_BYTES = 64 * 1024

_CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))
_CONTAINER_WORDS = ("docker", "containerd", "kubepods", "lxc", "libpod")
_CONTROL_GROUPS = Path("/proc/1/cgroup")


class SystemClock:
    """The real clocks."""

    def monotonic_s(self) -> float:
        """Seconds since some moment; never falls, whatever is done to the wall clock."""
        return time.monotonic()

    def wall_ms(self) -> int:
        """Unix time in milliseconds, as this host believes it to be."""
        return time.time_ns() // 1_000_000


def random_bytes(count: int) -> bytes:
    """Bytes that nobody can guess."""
    return os.urandom(count)


class Namespaces:
    """Network namespaces: the path in CNI_NETNS and the inode seen there tell one from its successor."""

    def inode(self, path: str) -> int | None:
        """The inode at a path now; None where this host sees nothing there."""
        try:
            return os.stat(path).st_ino  # noqa: PTH116 - Path.stat costs three times as much, and this is on the hot path
        except (OSError, ValueError):
            return None

    def alive(self, path: str, inode: int | None) -> bool | None:
        """Whether the namespace that was at `path` is there still; None if that cannot be told."""
        if inode is None:
            return None
        try:
            return os.stat(path).st_ino == inode  # noqa: PTH116 - as above
        except FileNotFoundError:
            return False
        except (OSError, ValueError):
            return None


def read_text(path: str) -> str:
    """The text of a small file. Raises OSError, and ValueError for what is no file, too large or not UTF-8.

    Whoever may send a CNI call names it: nothing is waited for, and no more is read than such a file can have.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - of a descriptor
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is not a regular file")
        content = file.read(MAX_TEXT_BYTES + 1)
    if len(content) > MAX_TEXT_BYTES:
        raise ValueError(f"it has over {MAX_TEXT_BYTES} bytes")
    return content.decode()


def raise_file_limit() -> None:
    """Take as many open files as this process may have: the usual 1,024 do not suffice for all connections."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if most == resource.RLIM_INFINITY else min(MAX_FILES, most)
    if resource.RLIM_INFINITY != now < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def host() -> Host:
    """The name of this host, and whether it is a container."""
    return Host(socket.gethostname(), _is_container())


def _is_container() -> bool:
    if any(mark.exists() for mark in _CONTAINER_MARKS):
        return True
    try:
        groups = _CONTROL_GROUPS.read_text(errors="replace")
    except OSError:
        return False
    return any(word in groups for word in _CONTAINER_WORDS)
