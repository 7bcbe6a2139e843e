"""Proposals to another member share requests under load, and each gets its own end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from ipamd.api import forwarding
from ipamd.api.between import Result, decode_results, encode_results
from ipamd.api.forwarding import BATCH_BYTES, UNDER_WAY, Forwarder
from ipamd.core.codec import CodecError
from ipamd.core.entries import Item
from ipamd.core.outcomes import Code, Done, Refused
from ipamd.core.ports import Answer, Unavailable
from tests.support.eventually import until


def item(number: int, size: int = 10) -> Item:
    return Item(number.to_bytes(16, "big"), b"c" * size)


class Leader:
    """Answers a batch once it is let; an item's index is its number."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.timeouts_s: list[float] = []
        self.let = asyncio.Event()
        self.cancelled = 0

    async def send(self, items: Sequence[Item], timeout_s: float) -> Sequence[Result]:
        numbers = [int.from_bytes(one.op, "big") for one in items]
        self.batches.append(numbers)
        self.timeouts_s.append(timeout_s)
        try:
            await self.let.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return [Unavailable("odd", "none") if number == 13 else Answer(number, Done()) for number in numbers]


async def test_what_comes_while_requests_are_under_way_shares_the_next() -> None:
    leader = Leader()
    forwarder = Forwarder(leader.send)
    asked = [asyncio.create_task(forwarder.propose(item(number), 60)) for number in range(20)]
    await until(lambda: len(leader.batches) == UNDER_WAY)
    assert leader.batches == [[number] for number in range(UNDER_WAY)]
    leader.let.set()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert leader.batches[UNDER_WAY:] == [list(range(UNDER_WAY, 20))]
    assert all(0 < timeout_s <= 60 for timeout_s in leader.timeouts_s)
    for number, answer in enumerate(answers):
        if number == 13:
            assert isinstance(answer, Unavailable)
            assert (answer.detail, answer.outcome) == ("odd", "none")
        else:
            assert answer == Answer(number, Done())


async def test_a_batch_is_bounded_in_bytes() -> None:
    leader = Leader()
    forwarder = Forwarder(leader.send)
    asked = [asyncio.create_task(forwarder.propose(item(n, BATCH_BYTES // 3), 60)) for n in range(UNDER_WAY + 5)]
    await until(lambda: len(leader.batches) == UNDER_WAY)
    leader.let.set()
    await asyncio.gather(*asked)
    assert [len(batch) for batch in leader.batches[UNDER_WAY:]] == [2, 2, 1]


async def test_who_never_was_sent_is_surely_not_done_and_who_was_is_unknown() -> None:
    leader = Leader()
    forwarder = Forwarder(leader.send)
    sent = [asyncio.create_task(forwarder.propose(item(number), 60)) for number in range(UNDER_WAY)]
    await until(lambda: len(leader.batches) == UNDER_WAY)
    with pytest.raises(Unavailable) as late:
        await forwarder.propose(item(99), 0.1)
    assert late.value.outcome == "none"
    leader.let.set()
    await asyncio.gather(*sent)
    assert await forwarder.propose(item(5), 60) == Answer(5, Done())
    assert all(99 not in batch for batch in leader.batches)

    silent = Leader()
    forwarder = Forwarder(silent.send)
    ends = await asyncio.gather(
        *(forwarder.propose(item(number), 0.2) for number in range(UNDER_WAY)), return_exceptions=True
    )
    assert silent.batches == [[number] for number in range(UNDER_WAY)]
    assert [end.outcome for end in ends if isinstance(end, Unavailable)] == ["unknown"] * UNDER_WAY


async def test_of_too_many_that_wait_the_next_is_surely_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "MOST_WAITING", 5)
    leader = Leader()
    forwarder = Forwarder(leader.send)
    asked = [asyncio.create_task(forwarder.propose(item(number), 60)) for number in range(UNDER_WAY + 6)]
    await until(lambda: len(leader.batches) == UNDER_WAY)
    leader.let.set()
    *answers, last = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(one, Answer) for one in answers)
    assert isinstance(last, Unavailable)
    assert last.outcome == "none"


async def test_requests_that_nobody_waits_for_make_room() -> None:
    leader = Leader()
    forwarder = Forwarder(leader.send)
    hanging = [asyncio.create_task(forwarder.propose(item(number), 60)) for number in range(UNDER_WAY)]
    await until(lambda: len(leader.batches) == UNDER_WAY)
    for task in hanging:
        task.cancel()
    await asyncio.gather(*hanging, return_exceptions=True)
    await until(lambda: leader.cancelled == UNDER_WAY)
    leader.let.set()
    assert await forwarder.propose(item(5), 60) == Answer(5, Done())


async def test_a_failed_request_is_the_end_of_all_in_it() -> None:
    async def send(items: Sequence[Item], timeout_s: float) -> Sequence[Result]:
        raise Unavailable(f"no connection for {len(items)} within {timeout_s > 0}", "unknown")

    with pytest.raises(Unavailable, match="no connection for 1 within True") as caught:
        await Forwarder(send).propose(item(1), 1)
    assert caught.value.outcome == "unknown"


async def test_closing_ends_what_is_under_way() -> None:
    leader = Leader()
    forwarder = Forwarder(leader.send)
    asked = asyncio.create_task(forwarder.propose(item(1), 60))
    await until(lambda: leader.batches)
    await forwarder.close()
    with pytest.raises(Unavailable) as caught:
        await asked
    assert caught.value.outcome == "unknown"


def test_results_survive_the_way() -> None:
    results: list[Result] = [
        Answer(7, Done()),
        Answer(2**40, Refused(Code.BOUND, "it is bound", "p")),
        Unavailable("gr\u00fcn", "none"),
        Unavailable("", "unknown"),
    ]
    data = encode_results(results)
    found = decode_results(data)
    assert found[:2] == results[:2]
    ends = [(one.detail, one.outcome) for one in found if isinstance(one, Unavailable)]
    assert ends == [("gr\u00fcn", "none"), ("", "unknown")]
    assert decode_results(b"") == []
    for cut in range(1, len(data)):
        if cut not in {len(encode_results(results[:count])) for count in range(4)}:
            with pytest.raises(CodecError):
                decode_results(data[:cut])
