"""Owns a whole node for the end-to-end tests: a host with the real plugins, a server of ipamd, and a runtime."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from demo.cni import CNI_BIN
from demo.server import BIN, UnixConnection
from tests.support.containerd import Containerd
from tests.support.cri import Cri
from tests.support.host import Host, Started, wait_until

POOL = "e2e"
SUBNET = "10.168.0.0/24"
URL = "http://127.0.0.1:7480"
NODE = "worker-1"
READY_S = 120.0


class Node:
    """A host that runs a server. Everything on it starts with `boot`, and ends with the power."""

    cooldown_s = 0

    def __init__(self, disk: Path, *, static: bool = False) -> None:
        self.disk, self.socket = disk, disk / "cni.sock"
        self.host = Host(disk)
        self.server: Started | None = None
        (disk / "bin").mkdir()
        for plugin in CNI_BIN.iterdir():
            (disk / "bin" / plugin.name).symlink_to(plugin)
        how = ["--static"] if static else ["--python", "/usr/bin/python3"]
        subprocess.run(
            [BIN / "ipamctl", "cni", "install", "--bin-dir", disk / "bin", *how], check=True, capture_output=True
        )

    def boot(self) -> None:
        """Switch it on."""
        self.host.boot()
        self.serve()
        self.ask("POST", "/v1/pools", {"name": POOL, "subnet": SUBNET, "cooldown_s": self.cooldown_s})

    def serve(self) -> None:
        """Start the server and wait until it is ready."""
        log_file = self.disk / "server.log"
        with log_file.open("ab") as log:
            self.server = self.host.spawn(
                *(sys.executable, "-m", "ipamd.main", "serve", "--data-dir", self.disk / "data"),
                *("--socket", self.socket, "--member-name", "n1", "--node-name", NODE),
                *("--spool-dir", self.disk / "spool"),
                log=log,
            )
        wait_until(self._is_ready, READY_S, f"the server is not ready: {log_file}")

    def end_server(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End the server."""
        assert self.server is not None
        self.server.send(number)
        self.server.wait()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """One request to the API, over the node socket. Raises AssertionError when it is refused."""
        status, text = self._ask(method, path, None if body is None else json.dumps(body))
        assert status < 300, f"{method} {path}: {status} {text.decode()}"
        return json.loads(text)

    def holders(self) -> dict[str, str]:
        """Container id to address, of all that is bound, as the server says."""
        items = self.ask("GET", "/v1/reservations?limit=1000")["items"]
        attachments = [attachment for item in items for attachment in item["attachments"]]
        return {one["container_id"]: held.partition("/")[0] for one in attachments for held in one["addresses"]}

    def _is_ready(self) -> bool:
        assert self.server is not None
        assert not self.server.has_ended, (self.disk / "server.log").read_text()[-2000:]
        try:
            return self._ask("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def _ask(self, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
        connection = UnixConnection(self.socket)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.host.__exit__()


class Worker(Node):
    """A node with containerd."""

    def __init__(self, disk: Path, *, static: bool = False) -> None:
        super().__init__(disk, static=static)
        self.containerd = Containerd(self.host, POOL)

    def up(self) -> Cri:
        """Switch it on; a client of its runtime."""
        self.boot()
        return self.containerd.start(f"unix:{self.socket}")

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self.containerd.close()


@contextmanager
def running(disk: Path, *, static: bool = False) -> Iterator[tuple[Worker, Cri]]:
    """A worker that is on, and a client of its runtime."""
    with Worker(disk, static=static) as worker, worker.up() as cri:
        yield worker, cri
