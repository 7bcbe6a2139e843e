"""Owns a real agent for tests: `ipamd agent` as a process of its own, with its socket and spool in a directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.canary import check_process
from tests.support.cluster import Away, Got, ask_socket
from tests.support.server import READY_ANSWER_S, STOP_S, ServerError
from tests.support.wire import cni_conf, cni_headers

UP_S = 60.0


class Agent:
    """One agent. It keeps its socket and its spool over restarts; `with` ends it."""

    def __init__(self, directory: Path, node: str, servers: Sequence[str], *flags: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self.node, self.servers, self.flags = directory, node, list(servers), flags
        self.socket, self.spool_dir = directory / "cni.sock", directory / "spool"
        self.log_file = directory / "agent.log"
        self.prefix: tuple[str, ...] = ()
        """What stands before the command line, such as `ip netns exec NAME`."""

        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        """The command line that starts it."""
        servers = [flag for url in self.servers for flag in ("--server", url)]
        return [
            *self.prefix,
            *(sys.executable, "-m", "ipamd.main", "agent", "--node-name", self.node, *servers),
            *("--socket", str(self.socket), "--spool-dir", str(self.spool_dir), *self.flags),
        ]

    def spawn(self, **more: Any) -> Self:
        """Start the process, without waiting for anything."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith("IPAMD_")}
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=clean,
                start_new_session=True,
                **more,
            )
        return self

    def start(self) -> Self:
        """Start it and wait until its socket answers. Raises ServerError."""
        self.spawn()
        deadline = time.monotonic() + UP_S
        while time.monotonic() < deadline:
            code = self._running().poll()
            if code is not None:
                raise ServerError(f"the agent ended with status {code}\n{self.log[-4000:]}")
            if self.is_up():
                check_process(self.pid)
                return self
            time.sleep(0.02)
        self.kill()
        raise ServerError(f"the agent was not up within {UP_S} s\n{self.log[-4000:]}")

    def is_up(self) -> bool:
        """Whether its socket answers now."""
        try:
            return self.ask("GET", "/livez", timeout_s=READY_ANSWER_S).status == 200
        except Away:
            return False

    @property
    def log(self) -> str:
        """All that it has logged."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._running().pid

    @property
    def spooled(self) -> list[str]:
        """The files of the DELs that wait."""
        return sorted(path.name for path in self.spool_dir.glob("*.del"))

    @property
    def rss_mib(self) -> float:
        """Its resident memory."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024

    def ask(self, method: str, path: str, body: Any = None, timeout_s: float = 10.0, **headers: str) -> Got:
        """A request over its socket. Raises Away."""
        return ask_socket(self.socket, method, path, body, timeout_s, **headers)

    def cni(
        self, verb: str, container: str, pod: str = "t/a", *, pool: str = "p", timeout_s: float = 10.0, **headers: str
    ) -> Got:
        """A CNI call, as the plugin makes it on this host. Raises Away."""
        own = {
            **cni_headers(container, pod),
            "Ipamd-Deadline-Ms": str(int(timeout_s * 1000)),
            **headers,
        }
        return self.ask("POST", f"/cni/v1/{verb}", cni_conf(pool, version="1.1.0"), timeout_s, **own)

    def kill(self) -> None:
        """Kill it with SIGKILL, and wait until it is gone."""
        self._running().kill()
        self._running().wait(STOP_S)

    def stop(self) -> int:
        """End it with SIGTERM; its exit status."""
        self._running().send_signal(signal.SIGTERM)
        return self._running().wait(STOP_S)

    def _running(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            raise ServerError("the agent was not started")
        return self.process

    def __enter__(self) -> Self:
        return self if self.process is not None else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
