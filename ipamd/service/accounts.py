"""Owns the account of ranges: what each of them could give to a request, and what holds or forbids the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ipamd.core.addresses import Address
from ipamd.core.intervals import Span, Spans, count, intersect, normalise
from ipamd.core.model import Pool, Range, RangeSet
from ipamd.core.ports import FamilyCounts, Snapshot
from ipamd.core.requested import reason_not_given

_TOLD_CHARS = 600
"""So much of a sentence the clauses of single ranges may take; the other ranges are summed up."""


class RangeAccount(NamedTuple):
    """One range that a request asks of a pool: the pool's own, or what the request's limits leave of it.

    `spent` counts what it gives. `excluded` and `gateways` lie between its bounds; `outside` would be given by the pool
    in the same subnet, but lies outside these bounds.
    """

    position: int
    order: int
    range: Range
    spent: FamilyCounts
    excluded: int
    gateways: int
    outside: int

    @property
    def bounds(self) -> str:
        """The range in a sentence."""
        one = self.range
        if one.first > one.last:
            return str(one.subnet)
        first, last = Address(one.family, one.first), Address(one.family, one.last)
        return str(first) if first == last else f"{first}-{last}"

    @property
    def verdict(self) -> str:
        """What an allocation finds here, as a clause of a sentence."""
        shares = ", ".join(shares_of(self))
        if self.spent.free:
            return f"{self.bounds} has {self.spent.free} of {self.spent.total} free{shares and ': '}{shares}"
        found = "is full" if self.spent.total else "gives nothing"
        return f"{self.bounds} {found}{shares and ': '}{shares}"

    def forbids(self, address: Address) -> str | None:
        """Why an allocation that insists on an address does not get it here; None: it may, if it is to be had."""
        if address.family != self.range.family or self.range.gives(address):
            return None
        if not self.range.subnet.covers(address):
            return f"{self.bounds} does not allow {address}: it lies outside {self.range.subnet}"
        return f"{self.bounds} does not allow {address}: {reason_not_given(self.range, address)}"


def accounts(
    snapshot: Snapshot, pool: Pool, asked: Sequence[RangeSet], position: int | None = None
) -> Iterator[RangeAccount]:
    """The accounts of what is asked of a pool's sets, or of one of them."""
    for at, ranges in enumerate(asked):
        if position is None or at == position:
            for order, one in enumerate(ranges):
                yield _account(snapshot, pool, (at, order), one)


def _account(snapshot: Snapshot, pool: Pool, place: tuple[int, int], asked: Range) -> RangeAccount:
    between = _between(asked)
    spent = snapshot.spent(pool, asked.family, asked.usable)
    excluded = count(excluded_of(asked))
    given = normalise(span for one in pool.sets[place[0]] if one.subnet == asked.subnet for span in one.usable)
    return RangeAccount(
        *place,
        range=asked,
        spent=spent,
        excluded=excluded,
        gateways=count(between) - excluded - spent.total,
        outside=count(given) - count(intersect(given, between)),
    )


def _between(one: Range) -> Spans:
    """All between the bounds of a range; a request may leave it none."""
    return normalise((Span(one.first, one.last),))


def excluded_of(one: Range) -> Spans:
    """The addresses between a range's bounds that are excluded."""
    return intersect(_between(one), normalise(one.excludes))


def clauses(found: Sequence[RangeAccount]) -> list[str]:
    """A clause for each of the ranges; of very many only the first have their own."""
    spoken, left = list[str](), _TOLD_CHARS
    for account in found:
        left -= len(account.verdict)
        if left < 0 and spoken:
            break
        spoken.append(account.verdict)
    rest = found[len(spoken) :]
    if rest:
        spoken.append(f"{len(rest)} more: {', '.join(_joined(map(_numbers, rest)))}")
    return spoken


def shares_of(account: RangeAccount) -> list[str]:
    """What holds or forbids the addresses of a range, as "4 bound"; what is nought is left out."""
    return _joined([_numbers(account)])


def _numbers(account: RangeAccount) -> tuple[int, ...]:
    spent = account.spent
    held = (spent.bound, spent.held, spent.cooling, spent.quarantined, spent.withheld, spent.elsewhere)
    return (*held, account.excluded, account.gateways, account.outside)


_WHAT = (
    "bound",
    "held",
    "cooling",
    "quarantined",
    "withheld",
    "taken through other pools",
    "excluded",
    "gateway",
    "outside the limits",
)
"""What the numbers of an account are, in their order."""


def _joined(numbers: Iterable[tuple[int, ...]]) -> list[str]:
    sums = [sum(column) for column in zip(*numbers, strict=True)]
    return [f"{number} {what}" for number, what in zip(sums, _WHAT, strict=True) if number]
