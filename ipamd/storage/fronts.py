"""Owns what is known of where ranges are free next, so that one ADD after another finds its address without looking.

For a range it is known that nothing in [`low`, `first`) is free and `first` is. Once its span was read, `last` too: the
row of the span is then exactly (`first`, `last`). Whatever is not surely so any more is forgotten, and looked up again.
"""

from __future__ import annotations

from typing import NamedTuple


class Front(NamedTuple):
    """Where a range is free next, for searches that begin at `low` or later. `last` None: not read yet."""

    low: int
    first: int
    last: int | None = None


class Fronts:
    """The fronts of the ranges that addresses were taken from lately, by the id of the range."""

    def __init__(self) -> None:
        self._fronts: dict[int, Front] = {}

    def next_free(self, range_id: int, start: int) -> int | None:
        """The lowest free address from `start` on; None: not known."""
        front = self._fronts.get(range_id)
        if front is None or start < front.low:
            return None
        if start <= front.first:
            return front.first
        return start if front.last is not None and start <= front.last else None

    def found(self, range_id: int, start: int, found: int) -> None:
        """A search that began at `start` found this."""
        self._fronts[range_id] = Front(start, found)

    def span_around(self, range_id: int, number: int) -> tuple[int, int] | None:
        """The free span with an address in it; None: not known."""
        front = self._fronts.get(range_id)
        if front is None or front.last is None or not front.first <= number <= front.last:
            return None
        return front.first, front.last

    def taken(self, range_id: int, number: int, last: int) -> None:
        """An address was taken out of the span that ends with `last`."""
        front = self._fronts.get(range_id)
        if front is None:
            return
        if number == front.first:
            if number == last:
                self.forget(range_id)
            else:
                self._fronts[range_id] = Front(front.low, number + 1, last)
        elif front.last == last:
            self._fronts[range_id] = front._replace(last=number - 1)

    def forget(self, range_id: int) -> None:
        """Something became free, or the range was made anew."""
        self._fronts.pop(range_id, None)
