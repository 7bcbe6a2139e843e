"""What slow, silent and broken clients get, on the raw socket."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ipamd.api import intake
from tests.api.raw import GET, SMALL, Raw, connections_of, tcp_of
from tests.support.eventually import PATIENCE_S, until
from tests.support.stack import Stack, running


@pytest.fixture
async def small(tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(tmp_path, SMALL) as started:
        yield started


def hurry(stack: Stack) -> None:
    """From now on heads have little time: who has been answered once is not too slow for the first."""
    for one in connections_of(stack):
        one._limits = SMALL._replace(header_s=0.3)


async def test_a_silent_connection_is_closed(tmp_path: Path) -> None:
    async with running(tmp_path, SMALL._replace(header_s=0.3)) as stack:
        raw = await Raw.to(stack)
        await raw.ends()
        raw.close()


async def test_a_head_that_trickles_in_is_not_waited_for(small: Stack) -> None:
    raw = await Raw.to(small)
    raw.writer.write(GET)
    assert (await raw.answer())[0] == 200
    hurry(small)

    async def trickle() -> None:
        for byte in itertools.chain(GET[:-2], itertools.repeat(ord("a"))):
            raw.writer.write(bytes((byte,)))
            await asyncio.sleep(0.05)

    task = asyncio.create_task(trickle())
    await raw.ends()
    assert not task.done()
    task.cancel()
    raw.close()


async def test_an_idle_connection_may_stay_for_longer_than_a_head_takes_and_is_used_again(small: Stack) -> None:
    raw = await Raw.to(small)
    for _ in range(2):
        raw.writer.write(GET)
        assert (await raw.answer())[0] == 200
        hurry(small)
        await asyncio.sleep(0.5)
    raw.close()


async def test_an_idle_connection_is_closed_in_the_end(tmp_path: Path) -> None:
    async with running(tmp_path, SMALL._replace(idle_s=0.3)) as stack:
        raw = await Raw.to(stack)
        raw.writer.write(GET)
        assert (await raw.answer())[0] == 200
        await raw.ends()
        raw.close()


async def test_a_body_that_does_not_come_is_given_up(small: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "BODY_S", 0.3)
    raw = await Raw.to(small)
    raw.writer.write(GET.replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nContent-Length: 99\r\n\r\n{"))
    status, headers, body = await raw.answer()
    assert (status, headers["content-type"], headers["connection"]) == (400, "application/problem+json", "close")
    assert "body" in json.loads(body)["detail"]
    await raw.ends()
    raw.close()


async def test_a_body_over_the_limit_is_refused_by_its_head_alone(small: Stack) -> None:
    raw = await Raw.to(small)
    raw.writer.write(GET.replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nContent-Length: 1048577\r\n\r\n"))
    status, _, body = await raw.answer()
    assert (status, json.loads(body)["code"]) == (413, "too_large")
    await raw.ends()
    raw.close()


async def test_a_chunked_body_over_the_limit_is_refused(small: Stack) -> None:
    raw = await Raw.to(small)
    raw.writer.write(GET.replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"))
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    raw.writer.write(chunk * 17)
    status, _, body = await raw.answer()
    assert (status, json.loads(body)["code"]) == (413, "too_large")
    raw.close()


async def test_the_end_of_a_large_body_is_no_head(small: Stack) -> None:
    raw = await Raw.to(small)
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
async def test_what_is_no_http_gets_a_problem_and_the_end(small: Stack, sent: bytes) -> None:
    raw = await Raw.to(small)
    raw.writer.write(sent)
    status, headers, body = await raw.answer()
    problem = json.loads(body)
    assert (status, headers["content-type"]) == (400, "application/problem+json")
    assert (problem["code"], problem["request_id"]) == ("invalid_request", headers["x-request-id"])
    await raw.ends()
    raw.close()


async def test_an_expectation_that_nobody_knows_is_a_problem(small: Stack) -> None:
    raw = await Raw.to(small)
    raw.writer.write(GET.replace(b"\r\n\r\n", b"\r\nExpect: miracles\r\n\r\n"))
    status, headers, body = await raw.answer()
    assert (status, headers["content-type"]) == (400, "application/problem+json")
    assert json.loads(body)["code"] == "invalid_request"
    raw.close()


async def test_a_client_that_reads_no_answer_loses_its_place(tmp_path: Path) -> None:
    async with running(tmp_path, SMALL._replace(unread_s=0.3)) as stack:
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(("127.0.0.1", stack.port))
            sock.setblocking(False)
            requests, loop = GET.replace(b"/v1/pools", b"/openapi.json") * 100_000, asyncio.get_running_loop()
            with pytest.raises(ConnectionError):  # a time-out: it keeps its place for ever
                await asyncio.wait_for(loop.sock_sendall(sock, requests), PATIENCE_S)


async def test_a_client_that_goes_away_in_a_body_is_no_mistake_of_the_server(
    small: Stack, caplog: pytest.LogCaptureFixture
) -> None:
    raw = await Raw.to(small)
    raw.writer.write(GET.replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nContent-Length: 99\r\n\r\n{"))
    await until(lambda: any(one._current_request is not None for one in connections_of(small)))
    raw.close()
    await until(lambda: not connections_of(small))
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
            await listener.stop(PATIENCE_S)
        assert (await asking).status == 201


async def test_who_was_let_in_before_the_end_is_still_answered(small: Stack) -> None:
    """Its request comes a moment after the server was told to end: closed at once, it would get a reset."""
    raw = await Raw.to(small)
    await until(lambda: connections_of(small))
    tcp = tcp_of(small)
    ending = asyncio.create_task(tcp.stop(PATIENCE_S))
    await asyncio.sleep(0.1)
    raw.writer.write(GET)
    assert (await raw.answer())[0] == 200
    await ending
    with pytest.raises(OSError):
        await Raw.to(small)
    small.listeners.remove(tcp)
    raw.writer.close()


async def test_heads_that_wait_for_others_take_little_memory(small: Stack) -> None:
    """Of those behind one that takes long only few are read; a head has a size in all, not only in each field."""
    async with small.services.feed._one_catches_up:
        raw = await Raw.to(small)
        wide = b"".join(b"X-%d: %b\r\n" % (number, b"a" * 1000) for number in range(50))
        follow = GET.replace(b"/v1/pools", b"/v1/events?after=0").replace(
            b"\r\n\r\n", b"\r\nAccept: text/event-stream\r\n\r\n"
        )
        raw.writer.write(follow)
        await raw.reader.readuntil(b"\r\n\r\n")

        async def write() -> None:
            for _ in range(400):
                raw.writer.write(GET.replace(b"\r\n\r\n", b"\r\n" + wide + b"\r\n"))
                await raw.writer.drain()

        writing = asyncio.create_task(write())
        (theirs,) = connections_of(small)
        await until(lambda: not theirs.transport.is_reading())
        assert len(theirs._messages) <= 8
        assert not writing.done()
        writing.cancel()
        raw.close()


async def test_a_head_that_is_too_large_in_all_is_not_read_to_its_end(small: Stack) -> None:
    raw = await Raw.to(small)
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
