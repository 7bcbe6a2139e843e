"""Owns the sentence about a pool that has nothing to give: range by range, and the command that helps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ipamd.core.asked import Asked, asked_of
from ipamd.core.commands import Add, PoolRequest
from ipamd.core.model import Pool
from ipamd.core.outcomes import Refused
from ipamd.core.ports import Snapshot, Unavailable
from ipamd.service.accounts import RangeAccount, accounts, clauses
from ipamd.service.doubts import helps, shares
from ipamd.service.ports import Clock
from ipamd.service.reader import Reader
from ipamd.service.request import Request

_WINDOW_S = 1.0
_FRESH_IN_WINDOW = 8
"""So many refusals of a request a second are counted anew; a storm of more is answered with the latest counts."""


class Told(NamedTuple):
    """Why there is nothing: a sentence, and a clause about each range."""

    sentence: str
    ranges: tuple[str, ...] = ()


@dataclass(slots=True)
class _Window:
    """A second of one request's refusals."""

    began_s: float
    counted: int = 0
    told: Told | None = None
    first: asyncio.Lock = field(default_factory=asyncio.Lock)


class Exhaustion:
    """Composes the sentences, and spares the database in a storm of refusals."""

    def __init__(self, reader: Reader, clock: Clock) -> None:
        self._reader, self._clock = reader, clock
        self._windows: dict[tuple[PoolRequest, int], _Window] = {}

    async def tell(self, refused: Refused, command: Add, request: Request) -> Told:
        """Why an ADD found nothing. Falls back on the refusal's own words where nothing can be read."""
        window = self._window(_wanted(refused, command), refused.position or 0)
        if window.counted < _FRESH_IN_WINDOW:
            window.counted += 1
            window.told = await self._count(refused, command, request)
        async with window.first:  # many at once, and none is counted yet: one counts for all
            if window.told is None:
                window.told = await self._count(refused, command, request)
        return window.told

    def _window(self, wanted: PoolRequest, position: int) -> _Window:
        now_s = self._clock.monotonic_s()
        window = self._windows.get((wanted, position))
        if window is None or now_s - window.began_s >= _WINDOW_S:
            self._windows = {key: one for key, one in self._windows.items() if now_s - one.began_s < _WINDOW_S}
            window = self._windows[wanted, position] = _Window(now_s)
        return window

    async def _count(self, refused: Refused, command: Add, request: Request) -> Told:
        left_s = request.deadline_s - self._clock.monotonic_s()
        try:
            found = await self._reader.peek(lambda snapshot: explain(snapshot, refused, command), max(left_s, 0.0))
        except Unavailable:
            return Told(refused.detail)
        return found.value or Told(refused.detail)


def explain(snapshot: Snapshot, refused: Refused, command: Add) -> Told | None:
    """Why an ADD found nothing; None: the pool is gone or has changed since."""
    asked, position = asked_of(snapshot, _wanted(refused, command), command.pod_ref), refused.position or 0
    if isinstance(asked, Refused) or position >= len(asked.sets):
        return None
    if not asked.is_made and snapshot.restored() is not None:
        return None  # as an ADD would make it, all of it is withheld
    return describe(snapshot, asked, position)


def _wanted(refused: Refused, command: Add) -> PoolRequest:
    """The request that found nothing."""
    return command.requests[refused.request or 0]


def describe(snapshot: Snapshot, asked: Asked, position: int) -> Told:
    """Why one set of a pool has nothing for a request."""
    pool = asked.pool
    found = list(accounts(snapshot, pool, asked.sets, position))
    family = f"IPv{found[0].range.family} " if len({ranges[0].family for ranges in pool.sets}) > 1 else ""
    doubts, version = snapshot.doubts(pool), found[0].range.family
    in_doubt = [*shares(doubts, version), *helps(doubts, version, snapshot.wall_ms)]
    why = "; ".join([*clauses(found), *in_doubt, _helps(pool, found)])
    return Told(f"pool {pool.name} has no free {family}address: {why}", tuple(one.verdict for one in found))


def _helps(pool: Pool, found: Sequence[RangeAccount]) -> str:
    """What helps. An inline pool is as large as its subnets: only the configuration can ask for more."""
    if any(one.spent.withheld for one in found):
        return (
            "withheld is what may have been given to pods after the backup that this cluster was restored from; once"
            f" the nodes have reported: ipamctl pool confirm {pool.name}"
        )
    larger = f"ipamctl pool update {pool.name} makes it larger"
    if pool.definition.inline:
        larger = "a wider range in the network configuration gives more"
    if any(one.spent.bound + one.spent.held for one in found):
        return f"ipamctl reservation list --pool {pool.name} shows the holders, {larger}"
    return larger
