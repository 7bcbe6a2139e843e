"""Owns the rehearsal of an ADD: what it would get or why not, pool by pool and range by range; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ipamd.core.asked import Asked, asked_of
from ipamd.core.commands import Add
from ipamd.core.outcomes import Code, Granted, Refused
from ipamd.core.ports import Snapshot
from ipamd.service.accounts import RangeAccount, accounts
from ipamd.service.exhaustion import explain
from ipamd.service.pools import rehearse
from ipamd.service.ports import Clock
from ipamd.service.reader import Reader
from ipamd.service.request import At, Request


class AskedPool(NamedTuple):
    """What the request asks of a pool, and what each range of that could give."""

    asked: Asked
    ranges: tuple[RangeAccount, ...]


class Rehearsed(NamedTuple):
    """What became of the ADD. `detail` says of a refusal why; a pool that cannot be asked is left out."""

    outcome: Granted | Refused
    detail: str
    pools: tuple[AskedPool, ...]


class Rehearsal:
    """Rehearses ADDs."""

    def __init__(self, reader: Reader, clock: Clock) -> None:
        self._reader, self._clock = reader, clock

    async def add(self, add: Add, request: Request) -> At[Rehearsed]:
        """What an ADD would get now. Raises Unavailable."""
        wall_ms = self._clock.wall_ms()
        return await self._reader.read(lambda snapshot: _rehearse(snapshot, add, wall_ms), request)


def _rehearse(snapshot: Snapshot, add: Add, wall_ms: int) -> Rehearsed:
    outcome = rehearse(snapshot, add, wall_ms)
    pools = tuple(_pools(snapshot, add))
    if isinstance(outcome, Granted):
        return Rehearsed(outcome, "", pools)
    if not isinstance(outcome, Refused):
        raise TypeError(f"an ADD was rehearsed and answered {type(outcome).__name__}")
    told = explain(snapshot, outcome, add) if outcome.code is Code.POOL_EXHAUSTED else None
    return Rehearsed(outcome, outcome.detail if told is None else told.sentence, pools)


def _pools(snapshot: Snapshot, add: Add) -> Iterator[AskedPool]:
    for wanted in add.requests:
        asked = asked_of(snapshot, wanted, add.pod_ref)
        if isinstance(asked, Asked):
            yield AskedPool(asked, tuple(accounts(snapshot, asked.pool, asked.sets)))
