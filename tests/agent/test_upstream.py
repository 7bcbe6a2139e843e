"""One request, several servers: the next one in time, the same key, a definite answer at once, the reasons at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ipamd.agent import upstream as module
from ipamd.agent.servers import Servers
from ipamd.agent.upstream import NoAnswer, Upstream
from ipamd.core.ports import Unavailable
from ipamd.service.wire import Asked, Said
from tests.support.scripted import TurnedClock, counting_bytes

A, B, C = (f"https://{name}:7480" for name in "abc")
OK = Said(200, {"Ipamd-Index": "9", "Content-Type": "x"}, b"ok")
BUSY = Said(503, {"Retry-After": "1"}, b"busy")
NO = Said(409, {}, b"no")
POST = Asked("POST", "/x", {})


class Hung:
    """No answer until the time is over."""


DOWN = Unavailable("connection refused", "none")
LOST = Unavailable("timed out", "unknown")


class ScriptedTransport:
    """Servers that answer as told: each the next of its answers, the last one again and again."""

    def __init__(self, clock: TurnedClock, **answers: object) -> None:
        self.clock = clock
        self.answers = {f"https://{name}:7480": list(given) if isinstance(given, list) else [given]
                        for name, given in answers.items()}  # fmt: skip
        self.asked: list[tuple[str, Asked, float]] = []

    async def exchange(self, url: str, asked: Asked, timeout_s: float) -> Said:
        self.asked.append((url, asked, timeout_s))
        script = self.answers[url]
        answer = script.pop(0) if len(script) > 1 else script[0]
        if isinstance(answer, Hung):
            self.clock.now_s += timeout_s
            raise LOST
        self.clock.now_s += 0.001
        if isinstance(answer, Unavailable):
            raise answer
        assert isinstance(answer, Said)
        return answer

    @property
    def order(self) -> list[str]:
        return [url[8:9] for url, _, _ in self.asked]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "_PAUSE_S", (0.0,))
    return iter(())


def build(**answers: object) -> tuple[Upstream, ScriptedTransport, TurnedClock]:
    clock = TurnedClock()
    transport = ScriptedTransport(clock, **answers)
    return Upstream(transport, Servers(list(transport.answers)), clock=clock, random=counting_bytes()), transport, clock


async def test_the_first_good_answer_is_the_answer() -> None:
    up, transport, clock = build(a=OK, b=OK)
    assert await up.ask(POST, clock.now_s + 10) is OK
    assert transport.order == ["a"]
    assert (up.index, up.heard_s) == (9, clock.now_s)


@pytest.mark.parametrize("bad", [DOWN, LOST, BUSY, Said(429, {}, b""), Said(502, {}, b"")])
async def test_the_next_server_is_tried_and_stays_the_first(bad: object) -> None:
    up, transport, clock = build(a=bad, b=OK)
    assert await up.ask(POST, clock.now_s + 10) is OK
    assert await up.ask(POST, clock.now_s + 10) is OK
    assert transport.order == ["a", "b", "b"]


@pytest.mark.parametrize(
    "definite", [NO, Said(400, {}, b""), Said(403, {}, b""), Said(500, {}, b""), Said(503, {}, b"")]
)
async def test_a_definite_answer_is_not_asked_for_twice(definite: Said) -> None:
    up, transport, clock = build(a=definite, b=OK)
    assert await up.ask(POST, clock.now_s + 10) is definite
    assert transport.order == ["a"]


async def test_one_call_has_one_key_at_all_servers_and_two_calls_have_two() -> None:
    up, transport, clock = build(a=LOST, b=BUSY, c=OK)
    await up.ask(POST, clock.now_s + 10)
    await up.ask(POST, clock.now_s + 10)
    keys = [asked.headers["Idempotency-Key"] for _, asked, _ in transport.asked]
    assert keys[0] == keys[1] == keys[2] != keys[3]


async def test_a_callers_own_key_is_passed_on_and_reads_have_none() -> None:
    up, transport, clock = build(a=OK)
    await up.ask(POST.saying(Idempotency_Key="mine"), clock.now_s + 10)
    await up.ask(Asked("GET", "/x", {}), clock.now_s + 10)
    assert [asked.headers.get("Idempotency-Key") for _, asked, _ in transport.asked] == ["mine", None]


async def test_a_dead_server_leaves_time_for_the_others() -> None:
    up, transport, clock = build(a=Hung(), b=Hung(), c=OK)
    assert await up.ask(POST, clock.now_s + 8) is OK
    assert [timeout_s for _, _, timeout_s in transport.asked] == pytest.approx([4, 2, 2])


async def test_the_time_that_is_left_is_passed_on() -> None:
    up, transport, clock = build(a=Hung(), b=OK)
    await up.ask(POST, clock.now_s + 8)
    assert [asked.headers["Ipamd-Deadline-Ms"] for _, asked, _ in transport.asked] == ["4000", "4000"]
    up, transport, clock = build(a=OK, b=OK)
    await up.ask(POST, clock.now_s + 0.5)
    assert transport.asked[0][1].headers["Ipamd-Deadline-Ms"] == "500", "a short time is not cut in two for the server"


async def test_at_the_end_every_reason_is_told() -> None:
    up, transport, clock = build(a=DOWN, b=BUSY)
    with pytest.raises(NoAnswer) as caught:
        await up.ask(POST, clock.now_s + 0.1)
    assert caught.value.detail == f"no answer from {A} (connection refused), {B} (status 503)"
    assert caught.value.outcome == "none"
    assert caught.value.said is BUSY
    assert len(transport.asked) > 4, "it is tried until the time is over"


async def test_what_may_have_been_done_is_unknown() -> None:
    up, _, clock = build(a=Hung(), b=DOWN)
    with pytest.raises(NoAnswer) as caught:
        await up.ask(POST, clock.now_s + 1)
    assert caught.value.outcome == "unknown"


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (503, b'{"outcome":"unknown"}', "unknown"),
        (503, b'{"outcome":"none"}', "none"),
        (429, b"", "none"),
        (504, b"<html>", "unknown"),
    ],
)
async def test_what_a_server_does_not_know_the_agent_does_not_either(status: int, body: bytes, outcome: str) -> None:
    said = Said(status, {"Retry-After": "1"}, body)
    up, _, clock = build(a=said, b=DOWN)
    with pytest.raises(NoAnswer) as caught:
        await up.ask(POST, clock.now_s + 0.1)
    assert caught.value.outcome == outcome


async def test_once_is_one_round_as_soon_as_somebody_answers() -> None:
    up, transport, clock = build(a=[DOWN, NO], b=[DOWN, DOWN])
    with pytest.raises(NoAnswer) as caught:
        await up.ask(POST, clock.now_s + 10, wanted=lambda said: said.status == 200, once=True)
    assert caught.value.said is NO
    assert transport.order == ["a", "b", "a", "b"]


async def test_what_is_no_answer_of_ipamd_is_none() -> None:
    up, transport, clock = build(a=Said(200, {"Content-Type": "text/html"}, b"<html>"), b=OK)
    asked = Asked("POST", "/x", {}, mark="x")
    assert await up.ask(asked, clock.now_s + 10) is OK
    assert transport.order == ["a", "b"]


async def test_the_callers_time_is_kept_when_nobody_answers() -> None:
    up, _, clock = build(a=Hung(), b=Hung(), c=Hung())
    began_s = clock.now_s
    with pytest.raises(NoAnswer):
        await up.ask(POST, began_s + 0.5)
    assert clock.now_s - began_s <= 0.5


async def test_a_greeting_finds_the_dead() -> None:
    up, transport, clock = build(a=DOWN, b=DOWN, c=OK)
    await up.greet(2.0)
    assert sorted(transport.order) == ["b", "c"], "the first one is known by its answers"
    assert up.servers.order() == (A, C, B)
    assert await up.ask(POST, clock.now_s + 10) is OK
    assert transport.order[2:] == ["a", "c"]
