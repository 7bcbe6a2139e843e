"""Owns the address of a server: what `--server` means, and a connection to it."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

DEFAULT_PORT = 7480
NODE_SOCKET = "unix:/run/ipamd/cni.sock"
"""The socket of the server or agent of this host."""


class BadServer(ValueError):  # noqa: N818 - named for what it is about
    """A text that is no address of a server."""


@dataclass(frozen=True)
class Server:
    """Where one server listens: a Unix socket's `path`, or `host` and `port`, with or without TLS."""

    text: str
    path: str | None = None
    host: str = "localhost"
    port: int = DEFAULT_PORT
    tls: bool = False

    def connection(self, timeout_s: float, trust: ssl.SSLContext | None) -> http.client.HTTPConnection:
        """A connection that is not open yet. `trust` serves for TLS; None: the system's certificates."""
        if self.path is not None:
            return UnixConnection(self.path, timeout_s)
        if self.tls:
            context = trust or ssl.create_default_context()
            return http.client.HTTPSConnection(self.host, self.port, timeout=timeout_s, context=context)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)

    def keeps_secrets(self, sock: socket.socket) -> bool:
        """Whether what is sent can be read by nobody else: a Unix socket, TLS, or a peer on this host."""
        if self.path is not None or self.tls:
            return True
        return ipaddress.ip_address(sock.getpeername()[0].partition("%")[0]).is_loopback

    def refusal(self, status: int, sentence: str) -> str:
        """What it said when it refused; where a socket's rights end, with whom to ask instead."""
        if status != HTTPStatus.FORBIDDEN or self.path is None:  # at a server's own socket everybody is administrator
            return sentence
        other = "name a server (--server URL --token-file FILE before the group)"
        return f"{sentence}; an agent's socket has the rights of its node alone: {other}"


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Open the socket. Raises OSError."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(self.timeout)
            sock.connect(self._path)
        except OSError:
            sock.close()
            raise
        self.sock = sock


def parse_server(text: str) -> Server:
    """Read `http://HOST[:PORT]`, `https://HOST[:PORT]` or `unix:PATH`. Raises BadServer."""
    if text.startswith("unix:"):
        return _unix(text)
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError as bad:
        raise BadServer(f"{text!r} is no URL: {bad}") from bad
    if url.scheme not in {"http", "https"} or not url.hostname:
        raise BadServer(f"{text!r} is not of the form http://HOST:PORT, https://HOST:PORT or unix:PATH")
    if url.path not in {"", "/"} or url.query or url.fragment or url.username is not None:
        raise BadServer(f"{text!r} has more than scheme, host and port")
    return Server(text, host=url.hostname, port=port or DEFAULT_PORT, tls=url.scheme == "https")


def _unix(text: str) -> Server:
    path = text.removeprefix("unix:")
    if path.startswith("//"):
        path = path.removeprefix("//")
    if not path.startswith("/"):
        raise BadServer(f"{text!r} does not name a socket by its full path")
    return Server(text, path=path)
