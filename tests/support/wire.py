"""Owns a lean HTTP/1.1 client for tests and benchmarks: one keep-alive connection, one request under way.

It parses what ipamd answers with (Content-Length, no chunks) and nothing else, so that load comes from the server under
test and not from the client.
"""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any, NamedTuple, Self


class Reply(NamedTuple):
    """An answer: its status, the head as it came, and the body."""

    status: int
    head: bytes
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
"""Of this host: a server reports from it too, and a node that calls from another boot than it reports from is a clash."""

ANSWER_S = 60.0
"""No answer takes so long: a server that owes one for longer hangs, and the test should say so."""


class GoneError(Exception):
    """The connection ended before the whole answer came: what became of the request is unknown."""


class Wire:
    """One connection. `target` is `unix:PATH` or `HOST:PORT`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str | None) -> None:
        self._reader, self._writer = reader, writer
        self._common = "Host: ipamd\r\n" + (f"Authorization: Bearer {token}\r\n" if token else "")

    @classmethod
    async def connect(cls, target: str, token: str | None = None) -> Self:
        """Open a connection. Raises OSError."""
        if target.startswith("unix:"):
            return cls(*await asyncio.open_unix_connection(target.removeprefix("unix:")), token)
        host, _, port = target.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)), token)

    def head(self, method: str, path: str, headers: dict[str, str], length: int) -> bytes:
        """The head of a request."""
        extra = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{method} {path} HTTP/1.1\r\n{self._common}{extra}Content-Length: {length}\r\n\r\n".encode()

    async def ask(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Reply:
        """Send a request and wait for its answer. Raises GoneError, TimeoutError."""
        return await self.exchange(self.head(method, path, headers or {}, len(body)) + body)

    async def exchange(self, request: bytes) -> Reply:
        """Send the bytes of a request and wait for its answer. Raises GoneError, TimeoutError."""
        try:
            async with asyncio.timeout(ANSWER_S):
                self._writer.write(request)
                head = await self._reader.readuntil(b"\r\n\r\n")
                body = await self._reader.readexactly(content_length(head))
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            raise GoneError(str(error)) from error
        return Reply(int(head[9:12]), head, body)

    def close(self) -> None:
        """Close the connection without waiting."""
        self._writer.close()


def content_length(head: bytes) -> int:
    """The length of the body that follows a head."""
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def json_body(value: object) -> tuple[bytes, dict[str, str]]:
    """A value as the body of a request, with its header."""
    return json.dumps(value).encode(), {"Content-Type": "application/json"}


def cni_headers(container_id: str, pod: str, *, boot_id: str = BOOT_ID, ifname: str = "eth0") -> dict[str, str]:
    """What the plugin sends with a call that starts now; `pod` is NAMESPACE/NAME."""
    namespace, _, name = pod.partition("/")
    return {
        "CNI-ContainerID": container_id,
        "CNI-Netns": f"/var/run/netns/{container_id}",
        "CNI-IfName": ifname,
        "CNI-Args": f"IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name}",
        "CNI-Path": "/opt/cni/bin",
        "Ipamd-Boot-Id": boot_id,
        "Ipamd-Started": str(time.clock_gettime_ns(time.CLOCK_BOOTTIME)),
        "Ipamd-Deadline-Ms": "10000",
    }


def cni_conf(pool: str, network: str = "net", version: str = "1.0.0") -> bytes:
    """A network configuration as it comes on the plugin's stdin."""
    ipam = {"type": "ipamd", "pool": pool}
    return json.dumps({"cniVersion": version, "name": network, "type": "bridge", "ipam": ipam}).encode()
