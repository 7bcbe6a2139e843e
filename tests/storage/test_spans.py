"""Free spans: taking splits, giving back joins, at every edge; nothing happens twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamd.core.addresses import parse_address
from ipamd.core.changes import Occupy, Put, Vacate
from ipamd.core.intervals import Span, count
from ipamd.core.model import Pool
from ipamd.storage.spans import read_spans
from tests.core.world import definition, range_of
from tests.storage.driver import Driver

Spans = list[tuple[str, str]]


@pytest.fixture
def spans(driver: Driver) -> Callable[..., Spans]:
    """Takes and gives back (`-` before it) last bytes of 192.0.2.0/28, and says what is free then."""
    pool = Pool(1, definition("p", range_of("192.0.2.0/28", "192.0.2.2", "192.0.2.8")), 1)
    writer = driver.machine._writer
    driver.connection.execute("BEGIN")
    writer.carry_out([Put(pool)])

    def play(*numbers: int) -> Spans:
        for number in numbers:
            address = parse_address(f"192.0.2.{abs(number)}")
            writer.carry_out([Vacate("default", address) if number < 0 else Occupy("default", address)])
        return [(f"{one.first & 255}", f"{one.last & 255}") for one in read_spans(driver.connection, 1)]

    return play


@pytest.mark.parametrize(
    ("numbers", "left"),
    [
        ((), [("2", "8")]),
        ((2,), [("3", "8")]),
        ((8,), [("2", "7")]),
        ((5,), [("2", "4"), ("6", "8")]),
        ((5, 5), [("2", "4"), ("6", "8")]),
        ((9, 1, 200), [("2", "8")]),
        ((2, 3, 4, 5, 6, 7, 8), []),
        ((2, 3, 4, 5, 6, 7, 8, -5), [("5", "5")]),
        ((2, 3, 4, 5, 6, 7, 8, -5, -6), [("5", "6")]),
        ((2, 3, 4, 5, 6, 7, 8, -6, -5), [("5", "6")]),
        ((2, 3, 4, 5, 6, 7, 8, -4, -6, -5), [("4", "6")]),
        ((5, -5), [("2", "8")]),
        ((5, -5, -5), [("2", "8")]),
        ((-2, -9, -1), [("2", "8")]),
        ((4, 5, -4), [("2", "4"), ("6", "8")]),
        ((4, 5, -5), [("2", "3"), ("5", "8")]),
    ],
)
def test_taking_splits_and_giving_back_joins(
    spans: Callable[..., Spans], numbers: tuple[int, ...], left: Spans
) -> None:
    assert spans(*numbers) == left


def test_any_order_of_taking_and_giving_leaves_the_set_that_arithmetic_says(spans: Callable[..., Spans]) -> None:
    taken: set[int] = set()

    @given(st.lists(st.integers(2, 8), max_size=30))
    def play(numbers: list[int]) -> None:
        for number in numbers:
            taken.symmetric_difference_update({number})
            got = spans(number if number in taken else -number)
            free = {one for first, last in got for one in range(int(first), int(last) + 1)}
            assert free == set(range(2, 9)) - taken
            assert len(got) == len([one for one in free if one - 1 not in free])

    play()


def test_an_ipv6_64_is_one_span_and_one_look_up(driver: Driver) -> None:
    writer, view = driver.machine._writer, driver.machine.view
    pool = Pool(1, definition("six", range_of("2001:db8::/64", exclude=("2001:db8::1",))), 1)
    driver.connection.execute("BEGIN")
    writer.carry_out([Put(pool)])
    base = parse_address("2001:db8::").value
    assert list(read_spans(driver.connection, 1)) == [Span(base + 2, base + 2**64 - 1)]
    writer.carry_out([Occupy("default", parse_address("2001:db8::2"))])
    assert view.next_free(pool, 0, 0, base, base + 2**64) == base + 3
    assert count(read_spans(driver.connection, 1)) == 2**64 - 3


def test_the_lowest_and_the_highest_address_of_ipv4_have_no_neighbours(driver: Driver) -> None:
    writer = driver.machine._writer
    driver.connection.execute("BEGIN")
    writer.carry_out([Put(Pool(1, definition("low", range_of("0.0.0.0/31"), range_of("255.255.255.254/31")), 1))])
    for text in ("0.0.0.0", "255.255.255.255"):
        writer.carry_out([Occupy("default", parse_address(text))])
    assert list(read_spans(driver.connection, 1)) == [Span(1, 1)]
    for text in ("0.0.0.0", "255.255.255.255"):
        writer.carry_out([Vacate("default", parse_address(text))])
    assert list(read_spans(driver.connection, 1)) == [Span(0, 1)]
    assert list(read_spans(driver.connection, 2)) == [Span(2**32 - 2, 2**32 - 1)]


def test_pools_that_overlap_lose_and_get_an_address_together_in_their_space_alone(driver: Driver) -> None:
    writer, view = driver.machine._writer, driver.machine.view
    wide, narrow = definition("wide", range_of("192.0.2.0/24")), definition("narrow", range_of("192.0.2.0/29"))
    other = definition("other", range_of("192.0.2.0/24"), space="blue")
    driver.connection.execute("BEGIN")
    writer.carry_out([Put(Pool(number, one, 1)) for number, one in enumerate((wide, narrow, other), 1)])
    one = parse_address("192.0.2.1")

    def first_free() -> list[int]:
        pools = (view.pool("wide"), view.pool("narrow"), view.pool("other"))
        found = [view.next_free(pool, 0, 0, 0, 2**32 - 1) for pool in pools if pool]
        return [number & 255 for number in found if number is not None]

    writer.carry_out([Occupy("default", one)])
    assert first_free() == [2, 2, 1]
    writer.carry_out([Vacate("default", one), Occupy("blue", one)])
    assert first_free() == [1, 1, 2]
