"""Owns what only the operating system knows: clocks, chance, the host, and what a network namespace's file is now.

`main` makes these and hands them down; nothing below it asks the system itself.
"""

from __future__ import annotations

import os
import resource
import socket
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ipamd.core.commands import CallStart
from ipamd.core.evidence import Look, Place
from ipamd.settings import Host

MAX_FILES = 16_384
MAX_TEXT_BYTES = 64 * 1024
MAX_RECORD_BYTES = 1024 * 1024

_CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))
_CONTAINER_WORDS = ("docker", "containerd", "kubepods", "lxc", "libpod")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MOUNTS = Path("/proc/self/mountinfo")
_FORGETFUL = frozenset({"tmpfs", "ramfs"})
_CONTROL_GROUPS = Path("/proc/1/cgroup")
_READERS_OWN = ("/proc/self/", "/proc/thread-self/")


class SystemClock:
    """The real clocks."""

    def monotonic_s(self) -> float:
        """Seconds since some moment; never falls, whatever is done to the wall clock."""
        return time.monotonic()

    def wall_ms(self) -> int:
        """Unix time in milliseconds, as this host believes it to be."""
        return time.time_ns() // 1_000_000


def boot_id() -> str | None:
    """The kernel's id of this boot; None where it does not say."""
    try:
        return _BOOT_ID.read_text().strip() or None
    except OSError:
        return None


def call_start() -> CallStart | None:
    """Now, as a plugin says when it started; None where the kernel does not say which boot this is."""
    boot = boot_id()
    return None if boot is None else CallStart(boot, time.clock_gettime_ns(time.CLOCK_BOOTTIME))


def random_bytes(count: int) -> bytes:
    """Bytes that nobody can guess."""
    return os.urandom(count)


class Namespaces:
    """Network namespaces: the path in CNI_NETNS and the inode seen there tell one from its successor.

    What is another one for each process that reads it says nothing here: this one would see its own.
    """

    def inode(self, path: str) -> int | None:
        """The inode at a path now; None where this host sees nothing there."""
        if _is_readers_own(path):
            return None
        try:
            return os.stat(path).st_ino  # noqa: PTH116 - Path.stat costs three times as much, and this is on the hot path
        except (OSError, ValueError):
            return None

    def look(self, path: str) -> Look:
        """What is at a path, and which directory it was looked for in."""
        if _is_readers_own(path):
            return Look(None)
        directory = os.path.dirname(path) or "."  # noqa: PTH120 - as above
        place = _place(directory)
        try:
            found = os.stat(path)  # noqa: PTH116 - as above
        except FileNotFoundError:
            return Look(place if _place(directory) == place else None)
        except (OSError, ValueError):
            return Look(None)
        return Look(place, found.st_ino, found.st_dev == _NAMESPACES_DEVICE)

    def alive(self, path: str, inode: int | None) -> bool | None:
        """Whether the namespace that was at `path` is there still; None if that cannot be told."""
        if inode is None or _is_readers_own(path):
            return None
        try:
            return os.stat(path).st_ino == inode  # noqa: PTH116 - as above
        except FileNotFoundError:
            return False
        except (OSError, ValueError):
            return None


class CniRecords:
    """The records of libcni, one file each, made at an ADD and removed after its DEL: those of this boot."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = directories

    def names(self) -> frozenset[str]:
        """The names of the records made since this host booted."""
        booted_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        found: set[str] = set()
        for directory in self._directories:
            with suppress(OSError), os.scandir(directory) as entries:
                found.update(entry.name for entry in entries if _is_younger(entry, booted_s))
        return frozenset(found)

    def read(self, name: str) -> bytes | None:
        """One of them; None: it is gone, or too large for one."""
        for directory in self._directories:
            with suppress(OSError), (directory / name).open("rb") as file:
                content = file.read(MAX_RECORD_BYTES + 1)
                return content if len(content) <= MAX_RECORD_BYTES else None
        return None


def _is_younger(entry: os.DirEntry[str], than_s: float) -> bool:
    try:
        return entry.stat().st_mtime >= than_s
    except OSError:
        return True  # it was there a moment ago


def _is_readers_own(path: str) -> bool:
    return os.path.normpath(f"/{path.lstrip('/')}").startswith(_READERS_OWN)


def _place(directory: str) -> Place | None:
    try:
        found = os.stat(directory)  # noqa: PTH116 - on the hot path
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _device_of_namespaces() -> int | None:
    try:
        return os.stat("/proc/self/ns/net").st_dev  # noqa: PTH116 - as above
    except OSError:
        return None


_NAMESPACES_DEVICE = _device_of_namespaces()


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


def is_forgetful(path: Path) -> bool:
    """Whether a path lies on a file system in memory, which a reboot empties."""
    place, kind = "", ""
    try:
        lines = _MOUNTS.read_text().splitlines()
    except OSError:
        return False
    real = os.path.realpath(path)
    for line in lines:
        before, _, after = line.partition(" - ")
        mount = before.split()[4].encode().decode("unicode_escape")
        is_above = real == mount or real.startswith(mount.rstrip("/") + "/")
        if is_above and len(mount) >= len(place):
            place, kind = mount, after.split()[0]
    return kind in _FORGETFUL


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
