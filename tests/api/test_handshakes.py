"""Handshakes that never end: they hold up nobody, on both event loops that a server may run on."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
import uvloop

from ipamd.api import handshakes
from ipamd.api.handshakes import Handshakes
from tests.support.certificates import Shop
from tests.support.eventually import until

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


class Echo(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


async def echo(port: int, trust: ssl.SSLContext) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname="localhost")
    writer.write(b"hello")
    answer = await reader.readexactly(5)
    writer.close()
    return answer


async def silent(port: int, count: int) -> list[socket.socket]:
    found = []
    for _ in range(count):
        sock = socket.socket()
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        found.append(sock)
    return found


def is_open(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


@contextlib.asynccontextmanager
async def accepting(shop: Shop, timeout_s: float) -> Any:
    sock = socket.create_server(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    running = Handshakes(sock, shop.member("n1").open_server, Echo, timeout_s)
    try:
        yield running, port
    finally:
        await running.stop()
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", port)


@pytest.mark.parametrize("loop", LOOPS)
def test_silence_makes_room_for_who_speaks(loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "MOST_OF_ADDRESS", 3)

    async def scene() -> None:
        shop = Shop(tmp_path)
        async with accepting(shop, 600.0) as (_, port):
            waiting = await silent(port, 8)
            for _ in range(4):
                assert await asyncio.wait_for(echo(port, shop.visitor()), 60) == b"hello"
            await until(lambda: [is_open(sock) for sock in waiting].count(True) <= 3)
            for sock in waiting:
                sock.close()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(scene())


@pytest.mark.parametrize("loop", LOOPS)
def test_what_does_not_end_in_time_is_ended_and_noise_is_no_fault(
    loop: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        shop = Shop(tmp_path)
        async with accepting(shop, 0.3) as (running, port):
            (quiet, noisy, plain) = await silent(port, 3)
            noisy.send(b"\x16\x03\x01\xff\xff" + b"x" * 300)
            plain.send(b"GET / HTTP/1.1\r\n\r\n")
            await until(lambda: not is_open(quiet))
            running._timeout_s = 60.0  # who does speak may be slow
            assert await echo(port, shop.visitor()) == b"hello"
            for sock in (quiet, noisy, plain):
                sock.close()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(scene())
    assert [record.getMessage() for record in caplog.records if record.levelname in {"WARNING", "ERROR"}] == []
