"""Owns the algebra of sorted, disjoint, closed integer intervals.

Everything here costs by the number of intervals, never by how many integers they span, so that an empty IPv6 /64 and
an IPv4 /24 cost the same. A *set* is a tuple of spans in ascending order that neither overlap nor touch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple


class Span(NamedTuple):
    """A closed interval of integers: `first` and `last` both belong to it."""

    first: int
    last: int


_FEW = 4
"""So many spans are looked at one by one sooner than they are searched."""

Spans = tuple[Span, ...]
"""A normalised set of integers: ascending, disjoint, not touching."""


def normalise(spans: Iterable[Span]) -> Spans:
    """Sort spans and join those that overlap or touch; empty ones (first > last) vanish."""
    joined: list[Span] = []
    for span in sorted(span for span in spans if span.first <= span.last):
        if joined and span.first <= joined[-1].last + 1:
            joined[-1] = Span(joined[-1].first, max(joined[-1].last, span.last))
        else:
            joined.append(Span(*span))
    return tuple(joined)


def subtract(spans: Spans, holes: Spans) -> Spans:
    """What remains of `spans` without `holes`; both normalised."""
    left: list[Span] = []
    for span in spans:
        first = span.first
        for hole in holes[max(0, bisect_right(holes, (first,)) - 1) :]:
            if hole.first > span.last:
                break
            if first < hole.first:
                left.append(Span(first, hole.first - 1))
            first = max(first, hole.last + 1)
        if first <= span.last:
            left.append(Span(first, span.last))
    return tuple(left)


def intersect(left: Spans, right: Spans) -> Spans:
    """What two normalised sets have in common."""
    common: list[Span] = []
    i = j = 0
    while i < len(left) and j < len(right):
        first, last = max(left[i].first, right[j].first), min(left[i].last, right[j].last)
        if first <= last:
            common.append(Span(first, last))
        if left[i].last < right[j].last:
            i += 1
        else:
            j += 1
    return tuple(common)


def contains(spans: Spans, value: int) -> bool:
    """Whether a normalised set has a number in it."""
    if len(spans) <= _FEW:
        for first, last in spans:
            if value <= last:
                return first <= value
        return False
    at = bisect_right(spans, (value, float("inf"))) - 1
    return at >= 0 and spans[at].last >= value


def at_or_after(spans: Spans, value: int) -> int | None:
    """The lowest number of a normalised set that is not below `value`; None: all are."""
    at = bisect_right(spans, (value, float("inf"))) - 1
    if at >= 0 and spans[at].last >= value:
        return value
    return spans[at + 1].first if at + 1 < len(spans) else None


def count(spans: Iterable[Span]) -> int:
    """How many integers a normalised set has."""
    return sum(span.last - span.first + 1 for span in spans)


def nth(spans: Spans, n: int) -> int:
    """The n-th number of a normalised set, counted from 0. Raises IndexError past the end."""
    for span in spans:
        size = span.last - span.first + 1
        if n < size:
            return span.first + n
        n -= size
    raise IndexError("beyond the last number of the set")
