"""How a read waits, looks and gives up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from ipamd.core.ports import Unavailable
from ipamd.errors import ApiError
from ipamd.service.reader import Reader
from ipamd.service.request import At, Request
from tests.support.scripted import ScriptedLog, TurnedClock


@dataclass
class Moment:
    """The little of a snapshot that a reader itself asks for."""

    applied_index: int


class Moments:
    """A state of which every snapshot is newer."""

    def __init__(self) -> None:
        self.opened = self.closed = 0

    @contextmanager
    def snapshot(self) -> Iterator[Moment]:
        self.opened += 1
        try:
            yield Moment(self.opened)
        finally:
            self.closed += 1


@pytest.fixture
def state() -> Moments:
    return Moments()


@pytest.fixture
def log() -> ScriptedLog:
    return ScriptedLog()


@pytest.fixture
def reader(log: ScriptedLog, state: Moments) -> Iterator[Reader]:
    made = Reader(log, state, TurnedClock())  # type: ignore[arg-type]
    yield made
    made.close()


def request(left_s: float = 5.0, *, stale: bool = False) -> Request:
    return Request("me", "r1", 1000.0 + left_s, stale=stale)


async def test_a_read_waits_for_the_log_and_a_stale_one_does_not(reader: Reader, log: ScriptedLog) -> None:
    assert await reader.read(lambda _: "seen", request()) == At(1, "seen")
    assert (log.barriers, log.timeouts_s) == (1, [5.0])
    assert await reader.read(lambda _: "seen", request(stale=True)) == At(2, "seen")
    assert log.barriers == 1


async def test_what_is_raised_comes_out_and_the_snapshot_ends(reader: Reader, state: Moments) -> None:
    def refuse(_: object) -> None:
        raise ApiError("pool_not_found", "there is no pool p")

    with pytest.raises(ApiError, match="no pool p"):
        await reader.read(refuse, request())
    assert (state.opened, state.closed) == (1, 1)


async def test_a_look_that_takes_too_long_is_given_up(reader: Reader) -> None:
    gate = threading.Event()
    try:
        with pytest.raises(Unavailable) as refused:
            await reader.read(lambda _: gate.wait(600), request(0.05))
    finally:
        gate.set()
    assert refused.value.outcome == "none"


async def test_nothing_is_begun_after_the_deadline(reader: Reader, log: ScriptedLog, state: Moments) -> None:
    for stale in (False, True):
        with pytest.raises(Unavailable):
            await reader.read(lambda _: "seen", request(0.0, stale=stale))
    assert (log.barriers, state.opened) == (0, 0)
