"""Owns the choice of an address: the pod's own that still cools, else a free one by strategy, else the longest cooled.

Nothing here walks addresses: every step asks the view for the next free or the oldest cooling one in an interval.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from ipamd.core.addresses import Address
from ipamd.core.intervals import Span, Spans, count, normalise, nth, subtract
from ipamd.core.model import Cooling, Cursor, Pool, Range, Strategy
from ipamd.core.ports import View
from ipamd.core.values import Value


class Choice(Value):
    """An address for one set: from which inner range, and the cooling record that it ends, if it was cooling."""

    address: Address
    order: int
    cooling: Cooling | None = None


class Wish(Value):
    """For whom a set of a pool is asked. `chosen` are addresses that this command already gave away in the space."""

    pool: Pool
    position: int
    pod_ref: str
    ifname: str
    now_log_ms: int
    seed: int
    chosen: tuple[Address, ...] = ()

    @property
    def ranges(self) -> tuple[Range, ...]:
        """The inner ranges of the set."""
        return self.pool.sets[self.position]


def choose(view: View, wish: Wish) -> Choice | None:
    """The address that the set gives; None: it has none to give."""
    return _own_cooling(view, wish) or _free(view, wish) or _oldest_cooling(view, wish)


def order_of(ranges: tuple[Range, ...], address: Address) -> int | None:
    """Which of some ranges gives an address."""
    return next((order for order, one in enumerate(ranges) if one.gives(address)), None)


def _own_cooling(view: View, wish: Wish) -> Choice | None:
    """What this attachment held last, if it still waits."""
    own = view.cooling_of_pod(wish.pool.id, wish.pod_ref, wish.ifname)
    for cooling in sorted(own, key=lambda one: (-one.freed_log_ms, one.address)):
        order = order_of(wish.ranges, cooling.address)
        if order is None or cooling.address in wish.chosen:
            continue
        if view.quarantine(cooling.space, cooling.address) is None:
            return Choice(cooling.address, order, cooling)
    return None


def _free(view: View, wish: Wish) -> Choice | None:
    for order, span in _search_order(view, wish):
        found = _next_free(view, wish, order, span)
        if found is not None:
            return Choice(Address(wish.ranges[order].family, found), order)
    return None


def _next_free(view: View, wish: Wish, order: int, span: Span) -> int | None:
    first, family = span.first, wish.ranges[order].family
    while first <= span.last:
        found = view.next_free(wish.pool, wish.position, order, first, span.last)
        if found is None or Address(family, found) not in wish.chosen:
            return found
        first = found + 1
    return None


def _search_order(view: View, wish: Wish) -> Iterator[tuple[int, Span]]:
    """The intervals to look through, in the order of the pool's strategy."""
    whole = [(order, Span(one.first, one.last)) for order, one in enumerate(wish.ranges)]
    begin = _beginning(view, wish)
    if begin is None:
        yield from whole
        return
    order, value = begin
    bounds = whole[order][1]
    yield order, Span(value, bounds.last)
    yield from whole[order + 1 :]
    yield from whole[:order]
    yield order, Span(bounds.first, value - 1)


def _beginning(view: View, wish: Wish) -> tuple[int, int] | None:
    """Where the search begins: (inner range, address); None: at the very start."""
    match wish.pool.definition.strategy:
        case Strategy.LOWEST:
            return None
        case Strategy.ROUND_ROBIN:
            return _after_cursor(view.cursor(wish.pool.id, wish.position), wish.ranges)
        case Strategy.RANDOM:
            return _anywhere(wish)


def _after_cursor(cursor: Cursor | None, ranges: tuple[Range, ...]) -> tuple[int, int] | None:
    if cursor is None:
        return None
    return cursor.order, min(cursor.address.value + 1, ranges[cursor.order].last + 1)


def _anywhere(wish: Wish) -> tuple[int, int] | None:
    """A place that looks random and is the same on every member, since it comes from ids in the log."""
    sizes = [count(one.usable) for one in wish.ranges]
    total = sum(sizes)
    if not total:
        return None
    text = f"{wish.pool.id}:{wish.position}:{wish.seed}".encode()
    place = int.from_bytes(hashlib.blake2b(text, digest_size=32).digest(), "big") % total
    for order, size in enumerate(sizes):
        if place < size:
            return order, nth(wish.ranges[order].usable, place)
        place -= size
    return None


def _oldest_cooling(view: View, wish: Wish) -> Choice | None:
    best: Choice | None = None
    for order, one in enumerate(wish.ranges):
        for span in _without(one.usable, one.family, wish.chosen):
            found = _oldest_between(view, wish, one.family, span)
            if found and (best is None or best.cooling is None or found.freed_log_ms < best.cooling.freed_log_ms):
                best = Choice(found.address, order, found)
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
