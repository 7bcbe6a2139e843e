"""Owns what the tests of ipamctl share: a peer that records requests and answers as told, and a way to run a verb."""

from __future__ import annotations

import json
import os
import pty
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner, Result

from ipamctl.main import cli


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Peer:
    """A small HTTP server on TCP or on a Unix socket. `answers` are given in turn, the last one again and again."""

    address: str
    asked: list[Asked] = field(default_factory=list)
    table: dict[tuple[str, str], list[tuple[int, Any]]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def on(self, method: str, path: str, *answers: Any, status: int = 200) -> None:
        self.table[method, path] = [(status, answer) for answer in answers]

    def refuses(self, method: str, path: str, status: int, code: str, detail: str, **extra: Any) -> None:
        self.table[method, path] = [(status, {"status": status, "code": code, "detail": detail, **extra})]

    def answer(self, asked: Asked) -> tuple[int, Any]:
        self.asked.append(asked)
        answers = self.table.get((asked.method, asked.path))
        if answers is None:
            return 404, {"code": "not_found", "detail": f"nothing at {asked.method} {asked.path}"}
        return answers.pop(0) if len(answers) > 1 else answers[0]

    @property
    def last(self) -> Asked:
        return self.asked[-1]


def handler_of(peer: Peer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            url = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {key.lower(): value for key, value in self.headers.items()}
            asked = Asked(self.command, url.path, query, headers, json.loads(data) if data else None)
            status, value = peer.answer(asked)
            body = value if isinstance(value, bytes) else b"" if value is None else json.dumps(value).encode()
            self.send_response(status)
            for name, text in peer.headers.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: Any) -> None:
            pass

    for method in ("GET", "POST", "PUT", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.handle_any)
    return Handler


class UnixServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


MakePeer = Callable[[Callable[[Any, Any], Any], Any, str], Peer]


@pytest.fixture
def make_peer() -> Iterator[MakePeer]:
    """Starts peers: the class of the server, where it listens, and its address as `--server` takes it, without port."""
    with ExitStack() as stack:

        def make(kind: Callable[[Any, Any], Any], place: Any, address: str) -> Peer:
            peer = Peer(address)
            server = kind(place, handler_of(peer))
            if not isinstance(place, str):
                peer.address = f"{address}:{server.server_address[1]}"
            stack.enter_context(serving(server))
            return peer

        yield make


@pytest.fixture
def peer(make_peer: MakePeer) -> Peer:
    return make_peer(ThreadingHTTPServer, ("127.0.0.1", 0), "http://127.0.0.1")


@pytest.fixture
def other_peer(make_peer: MakePeer) -> Peer:
    return make_peer(ThreadingHTTPServer, ("127.0.0.1", 0), "http://127.0.0.1")


@pytest.fixture
def unix_peer(make_peer: MakePeer, tmp_path: Path) -> Peer:
    return make_peer(UnixServer, f"{tmp_path}/s", f"unix:{tmp_path}/s")


Ctl = Callable[..., Result]


@pytest.fixture
def ctl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ctl:
    """Runs ipamctl with arguments, in an environment that says nothing of servers."""
    for name in [name for name in os.environ if name.startswith("IPAMCTL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def run(*args: str, stdin: str | None = None, env: dict[str, str] | None = None) -> Result:
        return CliRunner().invoke(cli, args, prog_name="ipamctl", input=stdin, env=env)

    return run


@pytest.fixture
def ask(ctl: Ctl, peer: Peer) -> Ctl:
    """Runs ipamctl against the peer."""

    def run(*args: str, stdin: str | None = None) -> Result:
        return ctl("--server", peer.address, *args, stdin=stdin)

    return run


Typed = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def typed(peer: Peer) -> Typed:
    """Runs ipamctl against the peer at a terminal, where somebody types an answer."""

    def run(*args: str, answer: str) -> subprocess.CompletedProcess[str]:
        keyboard, terminal = pty.openpty()
        command = [str(Path(sys.executable).parent / "ipamctl"), "--server", peer.address, *args]
        try:
            os.write(keyboard, f"{answer}\n".encode())
            return subprocess.run(
                command, stdin=terminal, capture_output=True, text=True, errors="replace", check=False, timeout=60
            )
        finally:
            os.close(keyboard)
            os.close(terminal)

    return run
