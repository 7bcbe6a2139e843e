"""Owns the comparison of wall clocks: a member whose clock differs from the majority's does not raise the log's.

The wall clock of the log never falls. One leader whose clock is a year ahead for a second would end every token.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from ipamd.core.entries import MOST_APART_MS
from ipamd.core.model import Member
from ipamd.core.ports import Unavailable
from ipamd.service.background import Background
from ipamd.service.inside import Inside
from ipamd.service.ports import Clock, Peers

logger = logging.getLogger(__name__)

EVERY_S: Final = 10.0
SOON_S: Final = 0.5
"""Until a majority was heard for the first time."""

_PATIENCE_S: Final = 2.0

Judge = Callable[[bool], None]
"""Is told whether a majority has the same clock."""


class ClockWatch(Background):
    """Each member compares its own clock, whether it leads or not: it may lead the next moment."""

    def __init__(self, inside: Inside, peers: Peers, clock: Clock, judge: Judge) -> None:
        super().__init__()
        self._inside, self._peers, self._clock, self._judge = inside, peers, clock, judge
        self._is_right: bool | None = None

    async def look(self) -> bool | None:
        """Compare once; None: too few were heard."""
        others = [member for member in self._inside.members() if member.name != self._inside.name]
        heard = await asyncio.gather(*(self._apart_ms(member) for member in others))
        apart = [one for one in heard if one is not None]
        is_right = verdict(apart, len(others) + 1)
        if is_right is not None:
            self._judge(is_right)
            self._tell(apart, is_right=is_right)
        return is_right

    async def _run(self) -> None:
        while True:
            known = await self.look()
            await asyncio.sleep(SOON_S if known is None else EVERY_S)

    async def _apart_ms(self, member: Member) -> int | None:
        """How far another member's clock is ahead of this one's; None: it does not say."""
        began_s = self._clock.monotonic_s()
        try:
            glimpse = await self._peers.look(member, _PATIENCE_S)
        except Unavailable:
            return None
        if glimpse.wall_ms is None:
            return None
        way_ms = int((self._clock.monotonic_s() - began_s) * 500)
        return glimpse.wall_ms + way_ms - self._clock.wall_ms()

    def _tell(self, apart: Sequence[int], *, is_right: bool) -> None:
        if is_right is self._is_right:
            return
        if not is_right:
            seconds = sorted(apart, key=abs)[len(apart) // 2] // 1000
            logger.error(
                "the clock of this member is %s s %s the others': while it leads, the times of events stand still and"
                " no token ends; set it right",
                *(seconds, "behind") if seconds > 0 else (-seconds, "ahead of"),
            )
        elif self._is_right is False:
            logger.info("the clock of this member is right again")
        self._is_right = is_right


def verdict(apart_ms: Sequence[int], members: int) -> bool | None:
    """Whether a majority of the members has the same clock, this one included; None: no majority was heard."""
    same = 1 + sum(abs(one) <= MOST_APART_MS for one in apart_ms)
    if same * 2 > members:
        return True
    return False if (1 + len(apart_ms)) * 2 > members else None
