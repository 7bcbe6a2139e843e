"""Owns a host for a test that can lose its power: processes, mounts and network of its own, and a boot id.

Its disk is a directory of the test. `/run` and `/proc` are its own, so that a power cut leaves of it what it leaves of
a machine: all processes are gone at once, with their mounts, namespaces and devices, and only the disk is there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Self

UP_S = 60.0

_BOOT = """
set -eu
mount -t tmpfs tmpfs /run
mkdir /run/netns /run/lock
mount --bind "$1/boot_id" /proc/sys/kernel/random/boot_id
mount --bind "$1/cni" /var/lib/cni
ip link set lo up
touch "$1/up"
exec sleep infinity
"""


class Started:
    """A program that runs on a host."""

    def __init__(self, entering: subprocess.Popen[bytes]) -> None:
        self._entering = entering

    def send(self, number: signal.Signals) -> None:
        """Send it a signal. Raises AssertionError if it has ended."""
        assert self._entering.poll() is None, "it has ended"
        os.kill(only_child(self._entering.pid), number)

    def wait(self, timeout_s: float = 120.0) -> int:
        """Its exit status."""
        return self._entering.wait(timeout_s)

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self._entering.poll() is not None


def only_child(pid: int) -> int:
    """The process id of the only child of a process."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


class Host:
    """A host with its disk at `disk`; `with` switches it on, and off at the end."""

    def __init__(self, disk: Path) -> None:
        self.disk = disk
        self.boot_id = ""
        self._anchor: subprocess.Popen[bytes] | None = None
        self._init = 0
        self._started: list[Started] = []

    def boot(self) -> Self:
        """Switch it on, with a new boot id. Raises RuntimeError."""
        self.boot_id = str(uuid.uuid4())
        up = self.disk / "up"
        up.unlink(missing_ok=True)
        (self.disk / "cni").mkdir(exist_ok=True)
        Path("/var/lib/cni").mkdir(parents=True, exist_ok=True)
        (self.disk / "boot_id").write_text(f"{self.boot_id}\n")
        own = ["--mount", "--propagation", "slave", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
        with (self.disk / "host.log").open("ab") as log:
            self._anchor = subprocess.Popen(["unshare", *own, "sh", "-c", _BOOT, "sh", self.disk], stderr=log)
        wait_until(lambda: up.exists() or self._anchor_ended(), UP_S, "the host is not up")
        self._init = only_child(self._anchor.pid)
        return self

    def spawn(self, *command: str | Path, log: IO[bytes], environment: Mapping[str, str] | None = None) -> Started:
        """Start a program on the host."""
        entering = subprocess.Popen(
            [*self._enter(), *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env={**os.environ, **(environment or {})}, start_new_session=True,
        )  # fmt: skip
        self._started.append(Started(entering))
        return self._started[-1]

    def run(
        self,
        *command: str | Path,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        timeout_s: int = 120,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program on the host to its end."""
        return subprocess.run(
            [*self._enter(), *command], input=stdin, capture_output=True, check=False, timeout=timeout_s,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip

    def power_cut(self) -> None:
        """Everything stops at once."""
        assert self._anchor is not None
        os.kill(self._init, signal.SIGKILL)
        self._anchor.wait(60)
        while self._started:
            self._started.pop().wait()

    def __enter__(self) -> Self:
        return self.boot()

    def __exit__(self, *_: object) -> None:
        if self._anchor is not None and self._anchor.poll() is None:
            self.power_cut()

    def _enter(self) -> list[str]:
        return ["nsenter", "--target", str(self._init), "--mount", "--net", "--pid", "--"]

    def _anchor_ended(self) -> bool:
        assert self._anchor is not None
        if self._anchor.poll() is not None:
            raise RuntimeError(f"the host did not come up: {(self.disk / 'host.log').read_text()[-500:]}")
        return False


def wait_until(holds: Callable[[], object], timeout_s: float, otherwise: str) -> None:
    """Wait until a condition holds. Raises AssertionError."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.02)
