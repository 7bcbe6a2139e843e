"""Owns the choice of an address: the pod's own that still cools, else a free one by strategy, else the longest cooled.

Nothing here walks addresses: every step asks the view for the next free or the oldest cooling one in an interval.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial

from ipamd.core.addresses import Address
from ipamd.core.asked import Asked
from ipamd.core.intervals import Span, Spans, at_or_after, count, normalise, nth, subtract
from ipamd.core.model import Cooling, Cursor, Pool, Range, Strategy
from ipamd.core.ports import View
from ipamd.core.values import Value
from ipamd.core.withheld import withheld_spans


class Choice(Value):
    """An address for one set: from which range of the pool, and the cooling record that it ends, if it was cooling."""

    address: Address
    order: int
    cooling: Cooling | None = None


class Wish(Value):
    """For whom a set of a pool is asked. `chosen` are addresses that this command already gave away in the space."""

    asked: Asked
    position: int
    pod_ref: str
    ifname: str
    now_log_ms: int
    seed: int
    chosen: tuple[Address, ...] = ()

    @property
    def pool(self) -> Pool:
        """The pool that is asked."""
        return self.asked.pool

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What of the set may be used. A *number* counts these; an *order* counts the pool's own ranges."""
        return self.asked.sets[self.position]

    def choice(self, number: int, value: int, cooling: Cooling | None = None) -> Choice:
        """An address out of one of these ranges."""
        return Choice(Address(self.ranges[number].family, value), self.asked.order(number), cooling)


def choose(view: View, wish: Wish) -> Choice | None:
    """The address that the set gives; None: it has none to give."""
    return _own_cooling(view, wish) or _free(view, wish) or _oldest_cooling(view, wish)


def number_of(ranges: tuple[Range, ...], address: Address) -> int | None:
    """Which of some ranges gives an address."""
    return next((number for number, one in enumerate(ranges) if one.gives(address)), None)


def _own_cooling(view: View, wish: Wish) -> Choice | None:
    """What this attachment held last, if it still waits."""
    own = view.cooling_of_pod(wish.pool.id, wish.pod_ref, wish.ifname)
    for cooling in sorted(own, key=lambda one: (-one.freed_log_ms, one.address)):
        number = number_of(wish.ranges, cooling.address)
        if number is None or cooling.address in wish.chosen:
            continue
        if view.quarantine(cooling.space, cooling.address) is None:
            return wish.choice(number, cooling.address.value, cooling)
    return None


def _free(view: View, wish: Wish) -> Choice | None:
    for number, span in _search_order(view, wish):
        found = _next_free(view, wish, number, span)
        if found is not None:
            return wish.choice(number, found)
    return None


def _next_free(view: View, wish: Wish, number: int, span: Span) -> int | None:
    """The lowest free address of a range in a span. What the request leaves out is leapt over, never walked."""
    one, order, first = wish.ranges[number], wish.asked.order(number), span.first
    while first <= span.last:
        found = view.next_free(wish.pool, wish.position, order, first, span.last)
        if found is None:
            return None
        usable = at_or_after(one.usable, found)
        if usable is None:
            return None
        if usable == found and Address(one.family, found) not in wish.chosen:
            return found
        first = usable if usable > found else found + 1
    return None


def _search_order(view: View, wish: Wish) -> Iterator[tuple[int, Span]]:
    """The intervals to look through, in the order of the pool's strategy."""
    whole = [(number, Span(one.first, one.last)) for number, one in enumerate(wish.ranges)]
    begin = _beginning(view, wish)
    if begin is None:
        yield from whole
        return
    number, value = begin
    bounds = whole[number][1]
    yield number, Span(value, bounds.last)
    yield from whole[number + 1 :]
    yield from whole[:number]
    yield number, Span(bounds.first, value - 1)


def _beginning(view: View, wish: Wish) -> tuple[int, int] | None:
    """Where the search begins: (number of the range, address); None: at the very start."""
    match wish.pool.definition.strategy:
        case Strategy.LOWEST:
            return None
        case Strategy.ROUND_ROBIN:
            return _after_cursor(view.cursor(wish.pool.id, wish.position), wish)
        case Strategy.RANDOM:
            return _anywhere(wish)


def _after_cursor(cursor: Cursor | None, wish: Wish) -> tuple[int, int] | None:
    """Behind the cursor; where no range of the wish has it, at the first one that begins behind it."""
    if cursor is None:
        return None
    at, value = cursor.order, cursor.address.value
    for number, one in enumerate(wish.ranges):
        if wish.asked.order(number) == at and one.first <= value <= one.last:
            return number, value + 1
    for number, one in enumerate(wish.ranges):
        if (wish.asked.order(number), one.first) > (at, value):
            return number, one.first
    return None


def _anywhere(wish: Wish) -> tuple[int, int] | None:
    """A place that looks random and is the same on every member, since it comes from ids in the log."""
    sizes = [count(one.usable) for one in wish.ranges]
    total = sum(sizes)
    if not total:
        return None
    text = f"{wish.pool.id}:{wish.position}:{wish.seed}".encode()
    place = int.from_bytes(hashlib.blake2b(text, digest_size=32).digest(), "big") % total
    for number, size in enumerate(sizes):
        if place < size:
            return number, nth(wish.ranges[number].usable, place)
        place -= size
    return None


def _oldest_cooling(view: View, wish: Wish) -> Choice | None:
    best: Choice | None = None
    withheld = partial(withheld_spans, view, wish.pool.space)
    for number, one in enumerate(wish.ranges):
        for span in subtract(_without(one.usable, one.family, wish.chosen), withheld(one.family)):
            found = _oldest_between(view, wish, one.family, span)
            if found and (best is None or best.cooling is None or found.freed_log_ms < best.cooling.freed_log_ms):
                best = wish.choice(number, found.address.value, found)
    return best


def _oldest_between(view: View, wish: Wish, family: int, whole: Span) -> Cooling | None:
    """The longest cooled address of a span. Around each one in quarantine the search goes on, to its left and right."""
    best: Cooling | None = None
    spans = [whole]
    while spans:
        span = spans.pop()
        if span.first > span.last:
            continue
        first, last = Address(family, span.first), Address(family, span.last)
        found = view.oldest_cooling(wish.pool.space, first, last, wish.now_log_ms)
        if found is None or (best and (best.freed_log_ms, best.address) < (found.freed_log_ms, found.address)):
            continue
        if view.quarantine(found.space, found.address) is None:
            best = found
        else:
            at = found.address.value
            spans += (Span(at + 1, span.last), Span(span.first, at - 1))
    return best


def _without(spans: Spans, family: int, chosen: tuple[Address, ...]) -> Spans:
    holes = normalise(Span(address.value, address.value) for address in chosen if address.family == family)
    return subtract(spans, holes) if holes else spans
