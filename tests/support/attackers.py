"""Owns bad company for tests: a process that keeps a server busy in one way until its stdin ends.

It takes what the others leave of the processor: in life it has one of its own.

It is given an Attack as JSON in a line of stdin; what came of it goes to stdout as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import uvloop

ROOT = Path(__file__).resolve().parents[2]
PAUSE_S = 0.2
"""A slow client sends a byte that often; one that was turned away comes again after as long."""


@dataclass(frozen=True)
class Attack:
    """What to do. `requests` are sent in turn by those who are greedy, as they stand here."""

    kind: str
    port: int
    connections: int
    ca: str | None = None
    requests: list[str] = field(default_factory=list)


@contextlib.contextmanager
def under(attack: Attack) -> Iterator[Counter[str]]:
    """An attack while the block runs; afterwards what the attackers have counted."""
    counted: Counter[str] = Counter()
    process = subprocess.Popen(
        ["nice", "-n", "10", sys.executable, "-m", "tests.support.attackers"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(asdict(attack)).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"begun\n"
        yield counted
        process.stdin.close()
        counted.update(json.loads(process.stdout.read()))
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


class _Attackers:
    """The connections of one attack."""

    def __init__(self, attack: Attack) -> None:
        self.attack, self.counted = attack, Counter[str]()
        self.tls = None if attack.ca is None else ssl.create_default_context(cafile=attack.ca)

    async def run(self) -> None:
        ways: dict[str, Callable[[int], Awaitable[None]]] = {
            "slowloris": self._trickle,
            "silent": self._wait,
            "hello": self._half_a_handshake,
            "greedy": self._ask,
        }
        await asyncio.gather(*(self._again(ways[self.attack.kind], at) for at in range(self.attack.connections)))

    async def _again(self, way: Callable[[int], Awaitable[None]], at: int) -> None:
        while True:
            try:
                await way(at)
            except (OSError, asyncio.IncompleteReadError) as error:
                self.counted[type(error).__name__] += 1
            await asyncio.sleep(PAUSE_S)

    async def _open(self, tls: ssl.SSLContext | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.counted["connections"] += 1
        return await asyncio.open_connection(
            "127.0.0.1", self.attack.port, ssl=tls, server_hostname=None if tls is None else "localhost"
        )

    async def _trickle(self, _at: int) -> None:
        reader, writer = await self._open(self.tls)
        head = b"GET /v1/pools HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 10_000
        ending = asyncio.create_task(reader.read())
        for at in range(len(head)):
            if ending.done():
                break
            writer.write(head[at : at + 1])
            await asyncio.sleep(PAUSE_S)
        writer.close()
        await asyncio.gather(ending, return_exceptions=True)

    async def _wait(self, _at: int) -> None:
        reader, writer = await self._open(None)
        await reader.read()
        writer.close()

    async def _half_a_handshake(self, _at: int) -> None:
        reader, writer = await self._open(None)
        out = ssl.MemoryBIO()
        client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
        with contextlib.suppress(ssl.SSLWantReadError):
            client.do_handshake()
        writer.write(out.read())
        await reader.read()
        writer.close()

    async def _ask(self, at: int) -> None:
        reader, writer = await self._open(self.tls)
        requests, number = self.attack.requests, at * 1_000_000
        while True:
            request = requests[number % len(requests)].replace("{}", str(number)).encode()
            number += 1
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or b"0")
            await reader.readexactly(length)
            self.counted[head[9:12].decode()] += 1


async def _main() -> None:
    attackers = _Attackers(Attack(**json.loads(await asyncio.to_thread(sys.stdin.readline))))
    running = asyncio.create_task(attackers.run())
    print("begun", flush=True)  # noqa: T201 - to who started it
    await asyncio.to_thread(sys.stdin.read)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    print(json.dumps(attackers.counted))  # noqa: T201 - likewise


if __name__ == "__main__":
    uvloop.run(_main())
