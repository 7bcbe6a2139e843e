"""Owns the sentence about a pool that has nothing to give: who holds what, and the command that helps."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from ipamd.core.intervals import Span, Spans, count, intersect, normalise
from ipamd.core.model import Pool, Range
from ipamd.core.outcomes import Refused
from ipamd.core.ports import FamilyCounts, Snapshot, Unavailable
from ipamd.service.doubts import helps, total
from ipamd.service.ports import Clock
from ipamd.service.reader import Reader
from ipamd.service.request import Request

_WINDOW_S = 1.0
_FRESH_IN_WINDOW = 8
"""So many refusals of a pool a second are counted anew; a storm of more is answered with the latest counts."""


@dataclass(slots=True)
class _Window:
    """A second of one pool's refusals."""

    began_s: float
    counted: int = 0
    sentence: str = ""
    first: asyncio.Lock = field(default_factory=asyncio.Lock)


class Exhaustion:
    """Composes the sentences, and spares the database in a storm of refusals."""

    def __init__(self, reader: Reader, clock: Clock) -> None:
        self._reader, self._clock = reader, clock
        self._windows: dict[tuple[str, int], _Window] = {}

    async def sentence(self, refused: Refused, request: Request) -> str:
        """Why a pool has no address to give. Falls back on the refusal's own words where nothing can be read."""
        name, position = refused.pool, refused.position or 0
        if name is None:
            return refused.detail
        window = self._window(name, position)
        if window.counted < _FRESH_IN_WINDOW:
            window.counted += 1
            window.sentence = await self._count(name, position, refused, request)
        async with window.first:  # many at once, and none is counted yet: one counts for all
            if not window.sentence:
                window.sentence = await self._count(name, position, refused, request)
        return window.sentence

    def _window(self, name: str, position: int) -> _Window:
        now_s = self._clock.monotonic_s()
        window = self._windows.get((name, position))
        if window is None or now_s - window.began_s >= _WINDOW_S:
            self._windows = {key: one for key, one in self._windows.items() if now_s - one.began_s < _WINDOW_S}
            window = self._windows[name, position] = _Window(now_s)
        return window

    async def _count(self, name: str, position: int, refused: Refused, request: Request) -> str:
        left_s = request.deadline_s - self._clock.monotonic_s()
        try:
            found = await self._reader.peek(lambda snapshot: describe(snapshot, name, position), max(left_s, 0.0))
        except Unavailable:
            return refused.detail
        return found.value or refused.detail


def describe(snapshot: Snapshot, name: str, position: int) -> str | None:
    """The sentence about one set of a pool; None: the pool is gone or has changed since."""
    pool = snapshot.pool(name)
    if pool is None or position >= len(pool.sets):
        return None
    family = pool.sets[position][0].family
    counts = snapshot.counts(pool)[family]
    doubts = snapshot.doubts(pool)
    shares = ", ".join(_shares(pool, family, counts, total(doubts, family))) or "its ranges give none at all"
    helpful = "".join(f"{help_}; " for help_ in helps(doubts, family, snapshot.wall_ms))
    kind = f"IPv{family} " if len({ranges[0].family for ranges in pool.sets}) > 1 else ""
    holders = f"ipamctl reservation list --pool {name} shows the holders, " if counts.bound + counts.held else ""
    return (
        f"pool {name} has no free {kind}address: {shares}; {helpful}{holders}ipamctl pool update {name} makes it larger"
    )


def _shares(pool: Pool, family: int, counts: FamilyCounts, in_doubt: tuple[int, int]) -> list[str]:
    """What holds the addresses, as "4 bound"; what is nought is left out."""
    excluded, gateways = _taken_out(pool, family)
    suspect, lost = in_doubt
    of_bound = " and ".join(f"{number} {what}" for number, what in ((suspect, "suspect"), (lost, "lost")) if number)
    shares = [
        (counts.bound, f"bound (of which {of_bound})" if of_bound else "bound"),
        (counts.held, "held"),
        (counts.cooling, "cooling"),
        (counts.quarantined, "quarantined"),
        (counts.withheld, "withheld"),
        (counts.elsewhere, "taken through other pools"),
        (excluded, "excluded"),
        (gateways, "gateway"),
        (counts.free, "free in other ranges"),
    ]
    return [f"{number} {what}" for number, what in shares if number]


def _taken_out(pool: Pool, family: int) -> tuple[int, int]:
    """How many addresses between the bounds are excluded, and how many more are a gateway."""
    ranges = [one for ranges in pool.sets for one in ranges if one.family == family]
    excluded = sum(count(excluded_of(one)) for one in ranges)
    spared = sum(one.last - one.first + 1 - count(one.usable) for one in ranges)
    return excluded, spared - excluded


def excluded_of(one: Range) -> Spans:
    """The addresses between a range's bounds that are excluded."""
    return intersect((Span(one.first, one.last),), normalise(one.excludes))
