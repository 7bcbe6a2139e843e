"""Owns which of many pools may give an address: searched for, where many addresses are asked for at once.

What the pools give stands sorted by its beginning, as a balanced tree laid out in lists: the middle of a part is its
root, and knows how far the part reaches. A search visits the branches that lead to an answer, and a few beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ipamd.core.addresses import Address
from ipamd.core.model import Pool
from ipamd.core.withheld import usable_of


class Giving:
    """What some pools give. An answer costs by the logarithm of their ranges, and by how many pools there are in it."""

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = pools
        self._spans = {family: _Spans(pools, family) for family in (4, 6)}

    def of(self, address: Address) -> list[Pool]:
        """The pools that may hand an address out, in the order in which all of them stand."""
        return [self._pools[number] for number in sorted(self._spans[address.family].around(address.value))]


class _Spans:
    """The spans of one family, each with the number of its pool. Those of one pool do not meet."""

    def __init__(self, pools: Sequence[Pool], family: int) -> None:
        spans = sorted((*span, number) for number, pool in enumerate(pools) for span in usable_of((pool,), family))
        self._spans = spans
        self._reach = [last for _, last, _ in spans]
        self._measure(0, len(spans))

    def _measure(self, begin: int, end: int) -> int:
        """How far a part reaches, kept at its root; -1: it has nothing."""
        if begin == end:
            return -1
        root = (begin + end) // 2
        below = max(self._measure(begin, root), self._measure(root + 1, end))
        self._reach[root] = max(self._reach[root], below)
        return self._reach[root]

    def around(self, value: int) -> Iterator[int]:
        """The numbers of the pools with a span that has a number in it."""
        parts = [(0, len(self._spans))]
        while parts:
            begin, end = parts.pop()
            root = (begin + end) // 2
            if begin == end or self._reach[root] < value:
                continue
            parts.append((begin, root))
            first, last, number = self._spans[root]
            if first <= value:
                parts.append((root + 1, end))
                if value <= last:
                    yield number
