"""Owns how many requests a caller may make: a bucket a token, one an address for those without, and what comes of it.

A refusal costs time too. Who goes on in spite of many gets the next ones late, so that asking faster does not help.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final, NamedTuple, NoReturn

from ipamd.api.buckets import Buckets, Rate
from ipamd.api.problems import Failure
from ipamd.core.model import Role
from ipamd.errors import ApiError
from ipamd.service.ports import Clock


class Rates(NamedTuple):
    """What each kind of caller may do."""

    node: Rate = Rate(500, 2_000)
    people: Rate = Rate(5_000, 20_000)
    strangers: Rate = Rate(50, 500)
    """Of one address: requests without a valid token, those that need none among them."""

    refusals: Rate = Rate(20, 200)
    """Refusals of one caller that are told at once."""


LATE_S: Final = 1.0
"""How long those beyond them wait."""


class Limiter:
    """The buckets of one listener."""

    def __init__(self, clock: Clock, rates: Rates | None = None) -> None:
        rates = rates or Rates()
        self._nodes, self._people = Buckets(rates.node, clock), Buckets(rates.people, clock)
        self._strangers, self._refusals = Buckets(rates.strangers, clock), Buckets(rates.refusals, clock)

    async def known(self, key: str, role: Role) -> None:
        """Count a request of a token, or of whoever connects where tokens are off. Raises Failure."""
        buckets = self._nodes if role is Role.NODE else self._people
        await self._count(buckets, key, "of this caller")

    async def stranger(self, address: str) -> None:
        """Count a request of somebody who showed no valid token. Raises Failure."""
        await self._count(self._strangers, address, "without a valid token from this address")

    async def _count(self, buckets: Buckets, key: str, whose: str) -> None:
        wait_s = buckets.take(key)
        if not wait_s:
            return
        if self._refusals.take(key):
            await asyncio.sleep(LATE_S)
        _refuse(whose, wait_s)


def _refuse(whose: str, wait_s: float) -> NoReturn:
    after_s = max(1, math.ceil(wait_s))
    error = ApiError("too_many_requests", f"there are too many requests {whose}: come again in {after_s} s")
    raise Failure(error, {"Retry-After": str(after_s)})
