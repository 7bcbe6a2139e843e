"""Owns one real ipamd server in a folder of its own: started, killed without warning, started again."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

BIN = Path(sys.executable).parent
READY_S = 60.0


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("ipamd", timeout=30)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(30)
        self.sock.connect(str(self._path))


class Server:
    """`ipamd serve` on a data directory, a node socket and a free loopback port."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.socket = folder / "cni.sock"
        self.log = folder / "server.log"
        self._listen = f"127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def command(self) -> list[str]:
        """The command that starts it."""
        return [
            "ipamd", "serve", "--data-dir", str(self.data), "--socket", str(self.socket),
            "--listen", self._listen, "--node-name", "demo-node", "--heartbeat-every-s", "1",
        ]  # fmt: skip

    @property
    def url(self) -> str:
        """Where agents reach it."""
        return f"http://{self._listen}"

    def start(self) -> float:
        """Start it and wait until it is ready; how long that took, in seconds. Raises RuntimeError."""
        began = time.monotonic()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen([BIN / self.command[0], *self.command[1:]], stdout=log, stderr=log)
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() - began > READY_S:
                raise RuntimeError(f"the server did not get ready; its log ends with:\n{self.log_tail()}")
            time.sleep(0.02)
        return time.monotonic() - began

    def kill(self) -> int:
        """Kill it as a power cut would: SIGKILL, no chance to write anything. Returns its process id."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        return self._process.pid

    def stop(self) -> None:
        """Stop it politely, if it runs."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()

    def log_tail(self) -> str:
        """The last lines of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-10:])

    def _ready(self) -> bool:
        connection = UnixConnection(self.socket)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def free_port() -> int:
    """A TCP port of the loopback interface that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
