"""A peer that the plugin talks to, and a way to run the plugin as a container runtime does."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PLUGIN = Path(__file__).resolve().parents[2] / "cli" / "ipamd_cni.py"
RESULT = b'{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.1/24"}],"dns":{}}'
PATIENCE_S = 30.0
"""How long a test waits for what must come: a guard against a hang."""

CONF = b'{"cniVersion":"1.0.0","name":"net","ipam":{"type":"ipamd","pool":"p"}}'


def answer(body: bytes = RESULT, status: int = 200, content_type: str = "application/cni+json") -> bytes:
    """An HTTP answer as the server gives it."""
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Request:
    """What came over the wire, taken apart."""

    def __init__(self, raw: bytes) -> None:
        head, _, self.body = raw.partition(b"\r\n\r\n")
        self.line, *lines = head.decode("ascii").split("\r\n")
        self.headers = dict(line.split(": ", 1) for line in lines)


class Peer:
    """Answers every connection with the next of its answers (the last one again and again), and keeps what came.

    An answer of None is silence: the connection stays open without one. A hasty peer answers and closes as soon as it
    has read the headers.
    """

    hasty = False

    def __init__(self, listener: socket.socket, address: str) -> None:
        self.address = address
        self.answers: list[bytes | None] = [answer()]
        self.requests: list[Request] = []
        self.came = threading.Condition()
        self._listener, self._open = listener, list[socket.socket]()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def wait_for(self, count: int) -> list[Request]:
        """The requests, once so many are there."""
        with self.came:
            assert self.came.wait_for(lambda: len(self.requests) >= count, PATIENCE_S), (
                f"{len(self.requests)} of {count} came"
            )
        return self.requests

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE_S)
        for end in (self._listener, *self._open):
            end.close()

    def _serve(self) -> None:
        while True:
            try:
                end, _ = self._listener.accept()
            except OSError:
                return
            request = Request(self._read(end))
            with self.came:
                said = self.answers[min(len(self.requests), len(self.answers) - 1)]
                self.requests.append(request)
                self.came.notify_all()
            if said is None:
                self._open.append(end)
            else:
                with contextlib.suppress(OSError):  # the plugin may have heard enough
                    end.sendall(said)
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def _read(self, end: socket.socket) -> bytes:
        end.settimeout(PATIENCE_S)
        raw = b""
        while b"\r\n\r\n" not in raw:
            raw += end.recv(65536)
        head, _, body = raw.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        while len(body) < length and not self.hasty:
            body += end.recv(65536)
        return head + b"\r\n\r\n" + body


@dataclass
class Done:
    """How the plugin ended."""

    status: int
    stdout: bytes
    stderr: bytes
    took_s: float

    @property
    def error(self) -> dict[str, Any]:
        """The CNI error object that it printed."""
        assert self.status == 1
        shape = json.loads(self.stdout)
        assert set(shape) == {"cniVersion", "code", "msg"}
        return dict(shape)


class Runtime:
    """Runs a plugin (from the source, or as it was installed) with the variables of an ADD, and settings of its own."""

    def __init__(self, folder: Path, program: Path = PLUGIN) -> None:
        self.program = program
        self.conf = folder / "cni.conf"
        self.conf.write_text("")
        self.environ = {
            "IPAMD_CNI_CONF": str(self.conf),
            "CNI_CONTAINERID": "c1",
            "CNI_NETNS": "/var/run/netns/x",
            "CNI_IFNAME": "eth0",
            "CNI_ARGS": "IgnoreUnknown=1;K8S_POD_NAMESPACE=t;K8S_POD_NAME=a",
            "CNI_PATH": "/opt/cni/bin",
        }

    def settings(self, *lines: str) -> None:
        self.conf.write_text("".join(f"{line}\n" for line in lines))

    def start(self, command: str | None, *args: str, **changes: Any) -> subprocess.Popen[bytes]:
        """The plugin as a process; `env` changes variables (None: not set), `stdout` and `stdin` where they go."""
        env: dict[Any, Any] = {**self.environ, **changes.pop("env", {})}
        if command is not None:
            env["CNI_COMMAND"] = command
        env = {key: value for key, value in env.items() if value is not None}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **changes}
        return subprocess.Popen([self.program, *args], env=env, **pipes)

    def run(self, command: str | None, *args: str, stdin: bytes = CONF, **env: str | bytes | None) -> Done:
        """Run the plugin to its end."""
        began = time.monotonic()
        with self.start(command, *args, env=env) as process:
            stdout, stderr = process.communicate(stdin, timeout=2 * PATIENCE_S)
        return Done(process.returncode, stdout, stderr, time.monotonic() - began)
