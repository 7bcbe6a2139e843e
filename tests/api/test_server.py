"""What slow, silent, broken and too many clients get, on the raw socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ipamd.api import intake
from ipamd.api.buckets import Rate
from ipamd.api.limits import Rates
from ipamd.api.server import Limits
from tests.support.stack import SECRET, Stack, running

QUICK = Limits(connections=5, header_s=0.3, idle_s=0.8, unread_s=0.3)
GET = f"GET /v1/pools HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SECRET}\r\n\r\n".encode()


@pytest.fixture
async def quick(tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(tmp_path, QUICK) as started:
        yield started


class Raw:
    """A connection that a test writes bytes to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, stack: Stack) -> Raw:
        return cls(*await asyncio.open_connection("127.0.0.1", stack.port))

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        head = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 5)).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return int(head[0].split()[1]), headers, body

    async def ends_within_s(self, limit_s: float) -> float:
        """How long it takes until the server closes."""
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(limit_s):
            try:
                while await self.reader.read(65536):
                    pass
            except ConnectionError:
                pass
        return asyncio.get_running_loop().time() - began

    def close(self) -> None:
        self.writer.close()


async def test_a_silent_connection_is_closed(quick: Stack) -> None:
    raw = await Raw.to(quick)
    assert await raw.ends_within_s(5) < 2
    raw.close()


async def test_a_head_that_trickles_in_is_not_waited_for(quick: Stack) -> None:
    raw = await Raw.to(quick)
    raw.writer.write(GET)
    assert (await raw.answer())[0] == 200

    async def trickle() -> None:
        for byte in GET:
            raw.writer.write(bytes((byte,)))
            await asyncio.sleep(0.05)

    task = asyncio.create_task(trickle())
    assert await raw.ends_within_s(5) < 1
    task.cancel()
    raw.close()


async def test_an_idle_connection_may_stay_for_longer_and_is_used_again(quick: Stack) -> None:
    raw = await Raw.to(quick)
    for _ in range(2):
        raw.writer.write(GET)
        assert (await raw.answer())[0] == 200
        await asyncio.sleep(0.5)
    assert await raw.ends_within_s(5) < 2
    raw.close()


async def test_a_body_that_does_not_come_is_given_up(quick: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "BODY_S", 0.3)
    raw = await Raw.to(quick)
    raw.writer.write(GET.replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nContent-Length: 99\r\n\r\n{"))
    status, headers, body = await raw.answer()
    assert (status, headers["content-type"], headers["connection"]) == (400, "application/problem+json", "close")
    assert "body" in json.loads(body)["detail"]
    await raw.ends_within_s(5)
    raw.close()


async def test_a_body_over_the_limit_is_refused_by_its_head_alone(quick: Stack) -> None:
    raw = await Raw.to(quick)
    raw.writer.write(GET.replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nContent-Length: 1048577\r\n\r\n"))
    status, _, body = await raw.answer()
    assert (status, json.loads(body)["code"]) == (413, "too_large")
    await raw.ends_within_s(5)
    raw.close()


async def test_a_chunked_body_over_the_limit_is_refused(quick: Stack) -> None:
    raw = await Raw.to(quick)
    raw.writer.write(GET.replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"))
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    raw.writer.write(chunk * 17)
    status, _, body = await raw.answer()
    assert (status, json.loads(body)["code"]) == (413, "too_large")
    raw.close()


async def test_the_end_of_a_large_body_is_no_head(quick: Stack) -> None:
    raw = await Raw.to(quick)
    for size in (200_000, 900_000, 1_048_576):
        raw.writer.write(GET.replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nContent-Length: %d\r\n\r\n" % size))
        await asyncio.sleep(0.05)
        raw.writer.write(b" " * size)
        status, _, body = await raw.answer()
        assert (status, json.loads(body)["detail"]) == (400, "a JSON body is missing")
    raw.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64,
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /v1/pools HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET /v1/pools HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 40_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: 1\r\n" % n for n in range(200)) + b"\r\n",
    ],
)
async def test_what_is_no_http_gets_a_problem_and_the_end(quick: Stack, sent: bytes) -> None:
    raw = await Raw.to(quick)
    raw.writer.write(sent)
    status, headers, body = await raw.answer()
    problem = json.loads(body)
    assert (status, headers["content-type"]) == (400, "application/problem+json")
    assert (problem["code"], problem["request_id"]) == ("invalid_request", headers["x-request-id"])
    assert await raw.ends_within_s(5) < 2
    raw.close()


async def test_an_expectation_that_nobody_knows_is_a_problem(quick: Stack) -> None:
    raw = await Raw.to(quick)
    raw.writer.write(GET.replace(b"\r\n\r\n", b"\r\nExpect: miracles\r\n\r\n"))
    status, headers, body = await raw.answer()
    assert (status, headers["content-type"]) == (400, "application/problem+json")
    assert json.loads(body)["code"] == "invalid_request"
    raw.close()


async def test_too_many_connections_are_told_so_and_places_come_back(quick: Stack) -> None:
    kept = [await Raw.to(quick) for _ in range(QUICK.connections)]
    for raw in kept:
        raw.writer.write(GET)
        assert (await raw.answer())[0] == 200
    over = await Raw.to(quick)
    status, headers, body = await over.answer()
    assert (status, headers["retry-after"], json.loads(body)["code"]) == (503, "1", "unavailable")
    assert (await quick.ask("GET", "/v1/pools")).status == 200, "the socket has places of its own"
    for raw in kept:
        raw.close()
    over.close()
    for _ in range(50):
        await asyncio.sleep(0.02)
        raw = await Raw.to(quick)
        raw.writer.write(GET)
        status = (await raw.answer())[0]
        raw.close()
        if status == 200:
            break
    assert status == 200


@pytest.mark.parametrize("kind", ["tcp", "unix"])
async def test_who_finds_no_place_can_read_so_though_it_has_sent_already(quick: Stack, kind: str) -> None:
    def connect() -> socket.socket:
        sock = socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET)
        sock.connect(str(quick.path) if kind == "unix" else ("127.0.0.1", quick.port))
        return sock

    def ask_and_read() -> bytes:
        with connect() as sock:
            sock.settimeout(5)
            sock.sendall(GET)
            time.sleep(0.1)
            return b"".join(iter(lambda: sock.recv(65536), b""))

    kept = [connect() for _ in range(QUICK.connections)]
    try:
        answers = await asyncio.gather(*(asyncio.to_thread(ask_and_read) for _ in range(3)))
        assert [answer.startswith(b"HTTP/1.1 503 ") for answer in answers] == [True] * 3
    finally:
        for sock in kept:
            sock.close()


async def test_a_client_that_reads_no_answer_loses_its_place(quick: Stack) -> None:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(("127.0.0.1", quick.port))
        sock.setblocking(False)
        requests, loop = GET.replace(b"/v1/pools", b"/openapi.json") * 100_000, asyncio.get_running_loop()
        with pytest.raises(ConnectionError):  # a time-out: it keeps its place for ever
            await asyncio.wait_for(loop.sock_sendall(sock, requests), 5)


async def test_a_client_that_goes_away_in_a_body_is_no_mistake_of_the_server(
    quick: Stack, caplog: pytest.LogCaptureFixture
) -> None:
    raw = await Raw.to(quick)
    raw.writer.write(GET.replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nContent-Length: 99\r\n\r\n{"))
    await asyncio.sleep(0.1)
    raw.close()
    await asyncio.sleep(0.1)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def test_stopping_lets_a_running_request_finish(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        propose = stack.services.log.propose
        started = asyncio.Event()

        async def slowly(*given: object) -> object:
            started.set()
            await asyncio.sleep(0.3)
            return await propose(*given)  # type: ignore[arg-type]

        stack.services.log.propose = slowly  # type: ignore[method-assign, assignment]
        asking = asyncio.create_task(stack.ask("POST", "/v1/pools", {"name": "p", "subnet": "10.0.0.0/24"}))
        await started.wait()
        for listener in stack.listeners:
            await listener.stop(5)
        assert (await asking).status == 201


async def test_who_was_let_in_before_the_end_is_still_answered(quick: Stack) -> None:
    """Its request comes a moment after the server was told to end: closed at once, it would get a reset."""
    raw = await Raw.to(quick)
    await asyncio.sleep(0.05)
    (tcp,) = (listener for listener in quick.listeners if listener._sock.family == socket.AF_INET)
    ending = asyncio.create_task(tcp.stop(2))
    await asyncio.sleep(0.1)
    raw.writer.write(GET)
    assert (await raw.answer())[0] == 200
    await ending
    with pytest.raises(OSError):
        await Raw.to(quick)
    quick.listeners.remove(tcp)
    raw.writer.close()


async def test_strangers_beyond_their_number_have_a_moment_to_say_who_they_are(tmp_path: Path) -> None:
    async with running(tmp_path, Limits(connections=30, strangers=3, patience_s=0.3, header_s=4.0)) as stack:
        known = await Raw.to(stack)
        known.writer.write(GET)
        assert (await known.answer())[0] == 200
        silent = [await Raw.to(stack) for _ in range(8)]
        late = await Raw.to(stack)
        late.writer.write(GET)
        assert (await late.answer())[0] == 200, "who has a token gets in beside any number of strangers"
        told = [await asyncio.wait_for(raw.answer(), 2) for raw in silent[3:]]
        assert {status for status, _, _ in told} == {503}
        assert "shown no token" in json.loads(told[0][2])["detail"]
        assert not any(raw.reader.at_eof() for raw in silent[:3])
        for raw in (known, late):
            raw.writer.write(GET)
            assert (await raw.answer())[0] == 200
        for raw in (known, late, *silent):
            raw.close()


async def test_where_all_places_are_taken_silence_makes_room(tmp_path: Path) -> None:
    async with running(tmp_path, Limits(connections=10, strangers=4, patience_s=5.0)) as stack:
        silent = [await Raw.to(stack) for _ in range(30)]
        raw = await Raw.to(stack)
        raw.writer.write(GET)
        assert (await raw.answer())[0] == 200
        for one in (raw, *silent):
            one.close()


async def test_asking_again_and_again_without_a_token_keeps_no_place(tmp_path: Path) -> None:
    """Their refusals come late: meanwhile they look as if they were at work."""
    limits, rates = (
        Limits(connections=10, strangers=4, patience_s=0.2),
        Rates(strangers=Rate(1, 1), refusals=Rate(1, 1)),
    )
    async with running(tmp_path, limits, rates=rates) as stack:
        asking = [await Raw.to(stack) for _ in range(10)]
        for raw in asking:
            raw.writer.write(GET.replace(SECRET.encode(), b"ipamd_guess") * 3)
        await asyncio.sleep(0.1)
        raw = await Raw.to(stack)
        raw.writer.write(GET)
        assert (await raw.answer())[0] == 200
        for one in (raw, *asking):
            one.close()


async def test_who_has_a_token_keeps_no_more_than_its_share_of_the_places(tmp_path: Path) -> None:
    async with running(tmp_path, Limits(connections=6, share=3)) as stack:
        minted = await stack.ask("POST", "/v1/tokens", {"name": "r", "role": "reader"})
        idle = [await Raw.to(stack) for _ in range(6)]
        for raw in idle:
            raw.writer.write(GET.replace(SECRET.encode(), minted.json["secret"].encode()))
            assert (await raw.answer())[0] == 200
        raw = await Raw.to(stack)
        raw.writer.write(GET)
        assert (await raw.answer())[0] == 200
        status, _, body = await idle[0].answer()
        assert (status, json.loads(body)["code"]) == (503, "unavailable")
        assert "of this caller" in json.loads(body)["detail"]
        for one in (raw, *idle):
            one.close()


async def test_heads_that_wait_for_others_take_little_memory(quick: Stack) -> None:
    """Of those behind one that takes long only few are read; a head has a size in all, not only in each field."""
    async with quick.services.feed._one_catches_up:
        raw = await Raw.to(quick)
        wide = b"".join(b"X-%d: %b\r\n" % (number, b"a" * 1000) for number in range(50))
        follow = GET.replace(b"/v1/pools", b"/v1/events?after=0").replace(
            b"\r\n\r\n", b"\r\nAccept: text/event-stream\r\n\r\n"
        )
        raw.writer.write(follow)
        await raw.reader.readuntil(b"\r\n\r\n")
        with contextlib.suppress(TimeoutError):
            for _ in range(400):
                raw.writer.write(GET.replace(b"\r\n\r\n", b"\r\n" + wide + b"\r\n"))
                await asyncio.wait_for(raw.writer.drain(), 0.2)
        (tcp,) = (listener for listener in quick.listeners if listener._sock.family == socket.AF_INET)
        assert tcp._runner.server is not None
        (connection,) = tcp._runner.server.connections
        assert len(connection._messages) <= 8
        raw.close()


async def test_a_head_that_is_too_large_in_all_is_not_read_to_its_end(quick: Stack) -> None:
    raw = await Raw.to(quick)
    raw.writer.write(GET[:-2])
    with contextlib.suppress(ConnectionError):
        for number in range(40):
            raw.writer.write(b"X-%d: %b\r\n" % (number, b"a" * 10_000))
            await raw.writer.drain()
            await asyncio.sleep(0.001)
        raw.writer.write(b"\r\n")
        await raw.writer.drain()
    with contextlib.suppress(ConnectionError):
        assert await raw.reader.read() == b""
    raw.close()
