"""Large bodies: so many at once, and one caller never has all the room."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from ipamd.api import intake
from ipamd.api.bodies import SMALL_BYTES, Bodies
from ipamd.api.gate import Gate
from ipamd.core.ports import Unavailable
from tests.api.test_shapes import check_problem
from tests.support.eventually import until
from tests.support.stack import SECRET, Stack

MIB = 1 << 20


def test_room_is_counted_in_all_and_of_each_caller() -> None:
    bodies = Bodies(8 * MIB, 3 * MIB)
    with contextlib.ExitStack() as held:
        for caller in "aabb":
            held.enter_context(bodies.room(caller, MIB))
        with pytest.raises(Unavailable):
            held.enter_context(bodies.room("a", 2 * MIB))
        for caller in "ccd":
            held.enter_context(bodies.room(caller, MIB))
        with pytest.raises(Unavailable):
            held.enter_context(bodies.room("e", 2 * MIB))
        for _ in range(100):
            held.enter_context(bodies.room("a", SMALL_BYTES))
    with bodies.room("a", 3 * MIB):
        pass


async def test_who_sends_many_large_bodies_slowly_is_told_to_wait(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, begun, left = Gate.room, 0, 0

    @contextlib.contextmanager
    def counted(*given: Any) -> Any:
        nonlocal begun, left
        with room(*given):
            begun += 1
            try:
                yield
            finally:
                left += 1

    monkeypatch.setattr(Gate, "room", counted)
    monkeypatch.setattr(intake, "BODY_S", 600.0)  # they are slow to the end
    head = f"POST /v1/pools HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SECRET}\r\nContent-Length: {MIB}\r\n\r\n{{"
    slow = [await asyncio.open_connection("127.0.0.1", stack.port) for _ in range(4)]
    for _, writer in slow:
        writer.write(head.encode())
    await until(lambda: begun == len(slow))
    got = await stack.ask_tcp("POST", "/v1/pools", b" " * MIB)
    assert check_problem(got, "unavailable")["outcome"] == "none"
    assert got.headers["Retry-After"] == "1"
    assert (await stack.ask_tcp("POST", "/v1/pools", {"name": "p", "subnet": "10.0.0.0/24"})).status == 201
    assert (await stack.ask("POST", "/v1/pools", b" " * MIB)).status == 400, "the node socket has room of its own"
    for _, writer in slow:
        writer.close()
    await until(lambda: left == begun)
    assert (await stack.ask_tcp("POST", "/v1/pools", b" " * MIB)).status == 400
