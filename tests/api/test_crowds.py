"""What too many clients get: who has no place is told so, and who says nothing makes room for who has something to say."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ipamd.api import connection, limits
from ipamd.api.buckets import Rate
from ipamd.api.limits import Rates
from ipamd.api.server import Limits
from tests.api.raw import GET, SMALL, Raw, connections_of
from tests.support.eventually import PATIENCE_S, until
from tests.support.stack import SECRET, Stack, running


@pytest.fixture
async def small(tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(tmp_path, SMALL) as started:
        yield started


@pytest.fixture
def lingering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who was turned away has all the time to read why."""
    monkeypatch.setattr(connection, "_LINGERING_S", 600.0)


@pytest.mark.usefixtures("lingering")
async def test_too_many_connections_are_told_so_and_places_come_back(small: Stack) -> None:
    kept = [await Raw.to(small) for _ in range(SMALL.connections)]
    for raw in kept:
        raw.writer.write(GET)
        assert (await raw.answer())[0] == 200
    over = await Raw.to(small)
    status, headers, body = await over.answer()
    assert (status, headers["retry-after"], json.loads(body)["code"]) == (503, "1", "unavailable")
    assert (await small.ask("GET", "/v1/pools")).status == 200, "the socket has places of its own"
    for raw in kept:
        raw.close()
    over.close()
    await until(lambda: not connections_of(small))
    raw = await Raw.to(small)
    raw.writer.write(GET)
    assert (await raw.answer())[0] == 200
    raw.close()


@pytest.mark.usefixtures("lingering")
@pytest.mark.parametrize("kind", ["tcp", "unix"])
async def test_who_finds_no_place_can_read_so_though_it_has_sent_already(small: Stack, kind: str) -> None:
    def connect() -> socket.socket:
        sock = socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET)
        sock.connect(str(small.path) if kind == "unix" else ("127.0.0.1", small.port))
        return sock

    def ask_and_read() -> bytes:
        with connect() as sock:
            sock.settimeout(PATIENCE_S)
            sock.sendall(GET)
            time.sleep(0.1)
            return b"".join(iter(lambda: sock.recv(65536), b""))

    kept = [connect() for _ in range(SMALL.connections)]
    try:
        answers = await asyncio.gather(*(asyncio.to_thread(ask_and_read) for _ in range(3)))
        assert [answer.startswith(b"HTTP/1.1 503 ") for answer in answers] == [True] * 3
    finally:
        for sock in kept:
            sock.close()


@pytest.mark.usefixtures("lingering")
async def test_strangers_beyond_their_number_have_a_moment_to_say_who_they_are(tmp_path: Path) -> None:
    async with running(tmp_path, SMALL._replace(connections=30, strangers=3, patience_s=2.0)) as stack:
        known = await Raw.to(stack)
        known.writer.write(GET)
        assert (await known.answer())[0] == 200
        silent = [await Raw.to(stack) for _ in range(8)]
        late = await Raw.to(stack)
        late.writer.write(GET)
        assert (await late.answer())[0] == 200, "who has a token gets in beside any number of strangers"
        told = [await raw.answer() for raw in silent[3:]]
        assert {status for status, _, _ in told} == {503}
        assert "shown no token" in json.loads(told[0][2])["detail"]
        assert not any(raw.reader.at_eof() for raw in silent[:3])
        for raw in (known, late):
            raw.writer.write(GET)
            assert (await raw.answer())[0] == 200
        for raw in (known, late, *silent):
            raw.close()


async def test_where_all_places_are_taken_silence_makes_room(tmp_path: Path) -> None:
    async with running(tmp_path, SMALL._replace(connections=10, strangers=4)) as stack:
        silent = [await Raw.to(stack) for _ in range(30)]
        raw = await Raw.to(stack)
        raw.writer.write(GET)
        assert (await raw.answer())[0] == 200
        for one in (raw, *silent):
            one.close()


async def test_asking_again_and_again_without_a_token_keeps_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their refusals come late: meanwhile they look as if they were at work."""
    monkeypatch.setattr(limits, "LATE_S", 600.0)
    rates = Rates(strangers=Rate(1, 1), refusals=Rate(1, 1))
    async with running(tmp_path, SMALL._replace(connections=10, strangers=4), rates=rates) as stack:
        asking = [await Raw.to(stack) for _ in range(10)]
        for raw in asking:
            raw.writer.write(GET.replace(SECRET.encode(), b"ipamd_guess") * 3)
        await until(lambda: [one._current_request is not None for one in connections_of(stack)] == [True] * 10)
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
