"""Token buckets beside a plain model, and the memory that they take."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ipamd.api.buckets import Buckets, Rate

RATE = Rate(10, 20)


class Clock:
    """A clock that a test turns."""

    now_s = 1000.0

    def monotonic_s(self) -> float:
        return self.now_s

    def wall_ms(self) -> int:
        return 0


def test_a_burst_then_the_rate() -> None:
    clock = Clock()
    buckets = Buckets(RATE, clock)
    assert [buckets.take("a") for _ in range(20)] == [0.0] * 20
    assert 0.09 < buckets.take("a") < 0.11
    clock.now_s += 1.0
    assert [buckets.take("a") == 0 for _ in range(12)] == [True] * 10 + [False] * 2
    clock.now_s += 100.0
    assert [buckets.take("a") == 0 for _ in range(22)] == [True] * 20 + [False] * 2


def test_a_refusal_costs_nothing_and_says_when() -> None:
    clock = Clock()
    buckets = Buckets(RATE, clock)
    while not (wait_s := buckets.take("a")):
        pass
    for _ in range(100):
        assert buckets.take("a") == wait_s
    clock.now_s += wait_s + 1e-6
    assert buckets.take("a") == 0


def test_each_key_has_its_own() -> None:
    buckets = Buckets(RATE, Clock())
    while not buckets.take("a"):
        pass
    assert buckets.take("b") == 0


def test_of_too_many_keys_the_oldest_is_forgotten() -> None:
    buckets = Buckets(RATE, Clock(), most_keys=3)
    for number in range(1000):
        buckets.take(str(number))
    assert len(buckets) == 3


@given(st.lists(st.floats(0, 0.5), max_size=200))
def test_it_gives_what_a_bucket_of_tokens_gives(pauses: list[float]) -> None:
    clock, tokens = Clock(), 20.0
    buckets = Buckets(RATE, clock)
    for pause_s in pauses:
        clock.now_s += pause_s
        tokens = min(20.0, tokens + pause_s * 10)
        taken = buckets.take("a") == 0
        if abs(tokens - 1) > 1e-6:  # on the edge both are right
            assert taken is (tokens >= 1)
        tokens -= taken
