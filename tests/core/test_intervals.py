"""The algebra of intervals, against Python's sets of small integers."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamd.core.intervals import Span, Spans, at_or_after, contains, count, intersect, normalise, nth, subtract

spans = st.lists(st.builds(Span, st.integers(0, 40), st.integers(0, 40)), max_size=8)
sets = spans.map(normalise)


def numbers(some: list[Span] | Spans) -> set[int]:
    return {number for span in some for number in range(span.first, span.last + 1)}


def is_normal(some: Spans) -> bool:
    whole = all(span.first <= span.last for span in some)
    return whole and all(left.last + 1 < right.first for left, right in pairwise(some))


@given(spans)
def test_normalise_keeps_the_numbers_and_orders_them(some: list[Span]) -> None:
    made = normalise(some)
    assert numbers(made) == numbers(some)
    assert is_normal(made)
    assert normalise(made) == made


@given(sets, sets)
def test_subtract_is_difference(left: Spans, right: Spans) -> None:
    made = subtract(left, right)
    assert numbers(made) == numbers(left) - numbers(right)
    assert is_normal(made)


@given(sets, sets)
def test_intersect_is_intersection(left: Spans, right: Spans) -> None:
    made = intersect(left, right)
    assert numbers(made) == numbers(left) & numbers(right)
    assert is_normal(made)


@given(sets, st.integers(-1, 42))
def test_contains_is_membership(some: Spans, number: int) -> None:
    assert contains(some, number) is (number in numbers(some))


@given(sets)
def test_count_and_nth_enumerate_the_numbers(some: Spans) -> None:
    assert [nth(some, n) for n in range(count(some))] == sorted(numbers(some))
    with pytest.raises(IndexError, match="beyond the last"):
        nth(some, count(some))


def test_the_size_of_a_span_costs_nothing() -> None:
    whole = (Span(0, 2**128 - 1),)
    left = subtract(whole, (Span(5, 5), Span(2**127, 2**127)))
    assert count(left) == 2**128 - 2
    assert nth(left, 5) == 6
    assert intersect(left, (Span(4, 6),)) == (Span(4, 4), Span(6, 6))


@given(sets, st.integers(-1, 42))
def test_at_or_after_is_the_least_that_is_not_below(some: Spans, number: int) -> None:
    assert at_or_after(some, number) == min((one for one in numbers(some) if one >= number), default=None)
