"""Owns a whole node for the end-to-end tests: a host with containerd, the real plugins, and a server of ipamd."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from demo.server import BIN, UnixConnection
from tests.support.containerd import Containerd
from tests.support.cri import Cri
from tests.support.host import Host, Started, wait_until

POOL = "e2e"
NODE = "worker-1"
READY_S = 30.0


class Node:
    """Server and runtime start with `boot`, and end with the power."""

    def __init__(self, disk: Path, subnet: str = "10.168.0.0/24", *, static: bool = False) -> None:
        self.disk, self.socket, self._subnet = disk, disk / "cni.sock", subnet
        self.host = Host(disk)
        self.containerd = Containerd(self.host, POOL)
        self.server: Started | None = None
        how = ["--static"] if static else ["--python", "/usr/bin/python3"]
        subprocess.run([BIN / "ipamctl", "cni", "install", "--bin-dir", disk / "bin", *how], check=True)

    def boot(self) -> Cri:
        """Switch it on; a client of its runtime."""
        self.host.boot()
        self.serve()
        self.ask("POST", "/v1/pools", {"name": POOL, "subnet": self._subnet, "cooldown_s": 0})
        return self.containerd.start(f"unix:{self.socket}")

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

    def plugin(
        self, verb: str, container_id: str, *, pod: str = "e2e/alone", netns: str = "", socket: Path | None = None
    ) -> dict[str, Any]:
        """A call of ipamd's plugin alone on the node, as bridge makes it; what it printed. Raises AssertionError."""
        namespace, _, name = pod.partition("/")
        environment = {
            "CNI_COMMAND": verb, "CNI_CONTAINERID": container_id, "CNI_IFNAME": "eth0", "CNI_NETNS": netns,
            "CNI_ARGS": f"IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name}", "CNI_PATH": "/",
            "IPAMD_CNI_ADDRESS": f"unix:{socket or self.socket}",
        }  # fmt: skip
        conf = {"cniVersion": "1.0.0", "name": "podman", "type": "bridge", "ipam": {"type": "ipamd", "pool": POOL}}
        done = self.host.run(self.disk / "bin" / "ipamd", stdin=json.dumps(conf).encode(), environment=environment)
        assert done.returncode == 0, done.stdout.decode()
        return dict(json.loads(done.stdout or "{}"))

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
        self.containerd.close()


@contextmanager
def running(disk: Path, **how: Any) -> Iterator[tuple[Node, Cri]]:
    """A node that is on, and a client of its runtime."""
    with Node(disk, **how) as node, node.boot() as cri:
        yield node, cri
