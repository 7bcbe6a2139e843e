"""Owns a real server for tests: `ipamd serve` as a process of its own, on free ports, in a directory of its own."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.canary import check_process

READY_S = 60.0
"""Only guards against a hang: where twenty others want the processor, three servers take half a minute to start."""

STOP_S = 60.0
READY_ANSWER_S = 10.0

_chance = random.SystemRandom()


class ServerError(Exception):
    """The server did not do what a test needs; with the end of its log."""


def free_port() -> int:
    """A TCP port on loopback that nobody uses now, and that stays free for a server that is yet to start or is away.

    It is none of those that the kernel gives to whoever connects to somewhere: one of them may be taken at any time.
    """
    low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    ports = [one for one in range(10_000, 65_536) if not low <= one <= high] or [*range(10_000, 65_536)]
    for port in _chance.sample(ports, min(len(ports), 1000)):
        with socket.socket() as sock, suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port
    raise ServerError("there is no free port")


class Server:
    """One server. It keeps its ports, its socket and its data over restarts; `with` ends it."""

    def __init__(self, directory: Path, *flags: str, name: str = "n1", host: str = "127.0.0.1") -> None:
        self.directory, self.name, self.flags, self.host = directory, name, flags, host
        self.environment: dict[str, str] = {}
        self.data_dir, self.socket = directory / "data", directory / "cni.sock"
        self.port, self.raft_port = free_port(), free_port()
        self.log_file = directory / "server.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Base URL of its HTTP API."""
        return f"http://{self.host}:{self.port}"

    @property
    def token_file(self) -> Path:
        """Where its first admin token lies."""
        return self.data_dir / "admin.token"

    @property
    def token(self) -> str:
        """Its first admin token."""
        return self.token_file.read_text().strip()

    @property
    def log(self) -> str:
        """All that it has logged, over all its starts."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._running().pid

    def command(self) -> list[str]:
        """The command line that starts it."""
        return [
            *(sys.executable, "-m", "ipamd.main", "serve", "--data-dir", str(self.data_dir)),
            *("--listen", f"{self.host}:{self.port}", "--raft-listen", f"{self.host}:{self.raft_port}"),
            *("--socket", str(self.socket), "--member-name", self.name, "--node-name", self.name),
            *self.flags,
        ]

    def spawn(self) -> Self:
        """Start the process, without waiting for anything."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith("IPAMD_")} | self.environment
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean, start_new_session=True
            )
        return self

    def start(self, timeout_s: float = READY_S) -> Self:
        """Start it and wait until it is ready. Raises ServerError."""
        self.spawn()
        try:
            self.wait_ready(timeout_s)
        except ServerError:
            self.kill()
            raise
        return self

    def wait_ready(self, timeout_s: float = READY_S) -> None:
        """Wait until `/readyz` says yes. Raises ServerError."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            code = self._running().poll()
            if code is not None:
                raise ServerError(f"the server ended with status {code}\n{self.log[-4000:]}")
            if self.is_ready():
                check_process(self.pid)
                return
            time.sleep(0.02)
        raise ServerError(f"the server was not ready within {timeout_s} s\n{self.log[-4000:]}")

    def is_ready(self) -> bool:
        """Whether `/readyz` answers 200 now."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=READY_ANSWER_S) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def kill(self) -> None:
        """Kill it with SIGKILL, and wait until it is gone."""
        self._running().kill()
        self._running().wait(STOP_S)

    def stop(self) -> int:
        """End it with SIGTERM; its exit status."""
        self._running().send_signal(signal.SIGTERM)
        return self._running().wait(STOP_S)

    def restart(self) -> Self:
        """kill -9, and start again."""
        self.kill()
        return self.start()

    def _running(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            raise ServerError("the server was not started")
        return self.process

    def __enter__(self) -> Self:
        return self if self.process is not None else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
