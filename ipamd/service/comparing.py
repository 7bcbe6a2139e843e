"""Owns the comparison of states: now and then all members take a digest at one index, and look at each other's.

That is once a minute, or more seldom where a large state takes long to read.

Who differs from a majority stops, because nothing that it says can be trusted. Where there is no majority nobody knows
who is right, and nothing is written any more until an operator has looked.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping

from ipamd.core.commands import Origin, TakeDigest
from ipamd.core.digests import Verdict, judge
from ipamd.core.model import Member
from ipamd.core.ports import Unavailable
from ipamd.service.background import Background
from ipamd.service.inside import Inside
from ipamd.service.ports import Clock, Peers
from ipamd.service.proposer import Proposer
from ipamd.service.request import Request
from ipamd.service.routing import RoutedLog

logger = logging.getLogger(__name__)

_LOOK_S = 1.0
_PATIENCE_S = 5.0
_LATEST_S = 30.0
"""How long members that lag are waited for."""

_SPARED = 20
"""A digest reads the whole state: the next one waits this many times as long as the last one took."""


class Comparing(Background):
    """Has digests taken, and compares them."""

    def __init__(
        self,
        routed: RoutedLog,
        proposer: Proposer,
        *,
        inside: Inside,
        peers: Peers,
        clock: Clock,
        fatal: Callable[[str], None],
        every_s: float,
    ) -> None:
        """`proposer` puts commands into this member's own log: its way is open when all others are closed."""
        super().__init__()
        self._routed, self._proposer, self._inside, self._peers = routed, proposer, inside, peers
        self._clock, self._fatal, self._every_s = clock, fatal, every_s
        self._proposed_s = clock.monotonic_s()
        self._pause_s = every_s
        self._began_s = 0.0
        self._index = 0
        """The index whose digests are being compared; what is older is done."""

        self._said: str | None = None

    @property
    def differs(self) -> bool:
        """Whether states were not all equal when they were compared last."""
        return self._said is not None

    async def _run(self) -> None:
        pause_s = min(_LOOK_S, self._every_s / 4)
        while True:
            await asyncio.sleep(pause_s)
            await self._propose_in_time()
            await self._compare()

    async def _propose_in_time(self) -> None:
        now_s = self._clock.monotonic_s()
        if not self._inside.log.status().is_leader:
            self._proposed_s = now_s  # a new leader waits its time: the old one has just had one taken
        elif now_s - self._proposed_s >= self._pause_s and len(self._inside.members()) > 1:
            self._proposed_s, self._pause_s = now_s, self._every_s
            request = Request("system", "comparing", now_s + _PATIENCE_S)
            with contextlib.suppress(Unavailable):  # the next minute has another
                await self._proposer.propose(TakeDigest(Origin("system", "comparing")), request)

    async def _compare(self) -> None:
        """Compare the newest digest until all have theirs, or are away for too long."""
        own, now_s = self._inside.digests(), self._clock.monotonic_s()
        newest = max(own, default=0)
        if newest > self._index:
            self._index, self._began_s = newest, now_s
            self._pause_s = max(self._every_s, _SPARED * (now_s - self._proposed_s))
        if self._index not in own or self._began_s == 0.0:
            return
        members = self._inside.members()
        digests = await self._collect(self._index, members) | {self._inside.name: own[self._index]}
        if len(digests) == len(members) or now_s - self._began_s >= _LATEST_S:
            self._began_s = 0.0
        self._act(self._index, digests, members)

    async def _collect(self, index: int, members: tuple[Member, ...]) -> dict[str, str]:
        others = [member for member in members if member.name != self._inside.name]
        found = await asyncio.gather(*(self._digests(member) for member in others))
        return {member.name: said[index] for member, said in zip(others, found, strict=True) if index in said}

    async def _digests(self, member: Member) -> Mapping[int, str]:
        try:
            return (await self._peers.look(member, _LOOK_S)).digests
        except Unavailable:
            return {}

    def _act(self, index: int, digests: Mapping[str, str], members: tuple[Member, ...]) -> None:
        names = [member.name for member in members]
        verdict = judge(self._inside.name, digests, names)
        sentence = f"at log index {index} the members' states differ ({_groups(digests)})"
        if verdict is Verdict.OWN_IS_WRONG:
            self._fatal(f"{sentence}: this one is not that of the majority, and stops")
        elif verdict is Verdict.SPLIT:
            self._say(f"{sentence} and none is that of a majority: nothing is written until that is settled")
            self._routed.halted = self._said
        else:
            self._routed.halted = None
            self._say(None if verdict is Verdict.EQUAL else f"{sentence}: this one is that of the majority")

    def _say(self, sentence: str | None) -> None:
        if sentence is not None and sentence != self._said:
            logger.error("%s", sentence)
        self._said = sentence


def _groups(digests: Mapping[str, str]) -> str:
    by_digest: dict[str, list[str]] = {}
    for name in sorted(digests):
        by_digest.setdefault(digests[name], []).append(name)
    return " against ".join(", ".join(names) for names in by_digest.values())
