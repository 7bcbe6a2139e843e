"""Owns the load generator: a process of its own that sends ADDs over keep-alive connections, as lean as Python allows.

It is given a Job as JSON on stdin and writes a Result as JSON to a file. Each connection sends its next request as soon
as the answer to the last one is there.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, cast

import uvloop

from tests.support.wire import cni_conf, cni_headers, content_length

BACKLOG_S = 0.005
LONGEST_S = 300
"""No job takes so long; a server that answers no more ends the run."""


@dataclass(frozen=True)
class Job:
    """What to send. `via` api: POST /v1/reservations; cni: POST /cni/v1/add, as the plugin does."""

    target: str
    """`unix:PATH` or `HOST:PORT`."""

    pool: str
    prefix: str
    """Of the pods' names, so that two jobs never mean the same pods."""

    requests: int
    connections: int = 1
    via: str = "api"
    token: str | None = None
    each_s: float = 0.0
    """The least time from one request of a connection to its next; 0: the next goes out with the answer."""

    conf: str = ""
    """The network configuration of a CNI call; empty: one that names the pool."""


class Result(NamedTuple):
    """What came of it. Latencies in seconds, in the order of the answers."""

    seconds: float
    latencies_s: list[float]
    refused: int
    example: str

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.latencies_s) / self.seconds


class Requests:
    """Makes the requests of a job, one after the other."""

    def __init__(self, job: Job) -> None:
        self._job, self._made = job, 0
        token = f"Authorization: Bearer {job.token}\r\n" if job.token else ""
        path = "/v1/reservations" if job.via == "api" else "/cni/v1/add"
        self._start = f"POST {path} HTTP/1.1\r\nHost: ipamd\r\nContent-Type: application/json\r\n{token}"
        self._conf = job.conf.encode() or cni_conf(job.pool)

    def next(self) -> bytes | None:
        """The next request; None: there is no more."""
        if self._made == self._job.requests:
            return None
        self._made += 1
        return self._api() if self._job.via == "api" else self._cni()

    def _api(self) -> bytes:
        name = f"{self._job.prefix}-{self._made}"
        body = f'{{"pool":"{self._job.pool}","pod_ref":"bench/{name}","container_id":"c-{name}","node":"bench"}}'
        return f"{self._start}Content-Length: {len(body)}\r\n\r\n{body}".encode()

    def _cni(self) -> bytes:
        name = f"{self._job.prefix}-{self._made}"
        lines = "".join(f"{key}: {value}\r\n" for key, value in cni_headers(f"c-{name}", f"bench/{name}").items())
        return f"{self._start}{lines}Content-Length: {len(self._conf)}\r\n\r\n".encode() + self._conf


class Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, requests: Requests, latencies_s: list[float], refusals: list[str], each_s: float = 0.0) -> None:
        self._requests, self._latencies_s, self._refusals = requests, latencies_s, refusals
        self._each_s = each_s
        self._buffer, self._sent_s = b"", 0.0
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its ancestry
        self._send()

    def data_received(self, data: bytes) -> None:
        """Take a part of an answer, or the rest of it."""
        self._buffer += data
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end or len(rest) < content_length(head):
            return
        self._latencies_s.append(time.perf_counter() - self._sent_s)
        if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            self._refusals.append(self._buffer.decode(errors="replace"))
        self._buffer = b""
        wait_s = self._sent_s + self._each_s - time.perf_counter()
        if wait_s > 0:
            asyncio.get_running_loop().call_later(wait_s, self._send)
        else:
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        """The server has closed the connection."""
        if not self.finished.done():
            self.finished.set_exception(error or ConnectionError("the server closed the connection"))

    def _send(self) -> None:
        request = self._requests.next()
        if request is None:
            self.finished.set_result(None)
            self._transport.close()
            return
        self._sent_s = time.perf_counter()
        self._transport.write(request)


async def work(job: Job) -> Result:
    """Do a job."""
    requests, latencies_s, refusals = Requests(job), list[float](), list[str]()
    began = time.perf_counter()
    clients = [Client(requests, latencies_s, refusals, job.each_s) for _ in range(job.connections)]
    for client in clients:
        await connect(job.target, client)
    await asyncio.gather(*(client.finished for client in clients))
    return Result(time.perf_counter() - began, latencies_s, len(refusals), refusals[0] if refusals else "")


async def connect(target: str, client: Client) -> None:
    """Open a connection."""
    loop = asyncio.get_running_loop()
    if target.startswith("unix:"):
        while not await connect_unix(target.removeprefix("unix:"), client):  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(BACKLOG_S)
    else:
        host, _, port = target.rpartition(":")
        await loop.create_connection(lambda: client, host, int(port))


async def connect_unix(path: str, client: Client) -> bool:
    """Open a connection to a socket; False: too many wait there already."""
    try:
        await asyncio.get_running_loop().create_unix_connection(lambda: client, path)
    except BlockingIOError:
        return False
    return True


def send(job: Job) -> Result:
    """Do a job in a process of its own. Raises RuntimeError if anything was refused."""
    with tempfile.NamedTemporaryFile(prefix="ipamd-bench-") as file:
        command = [sys.executable, "-m", "bench.load", file.name]
        subprocess.run(command, input=json.dumps(asdict(job)), check=True, text=True, timeout=LONGEST_S)
        result = Result(*json.load(file))
    if result.refused:
        raise RuntimeError(f"{result.refused} of {job.requests} ADDs were refused, the first one:\n{result.example}")
    return result


def main() -> None:
    job = Job(**json.loads(sys.stdin.read()))
    Path(sys.argv[1]).write_text(json.dumps(uvloop.run(work(job))))


if __name__ == "__main__":
    main()
