"""Owns giving addresses to pods and taking them back: ADD, DEL and CHECK, and the same for callers who are not CNI."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from ipamd.core.asked import NOBODY, asked_of
from ipamd.core.commands import Add, Claim, Del, NoteRefused, PoolRequest, Release
from ipamd.core.outcomes import Code, Done, Granted, Refused, Released
from ipamd.core.ports import Snapshot, Unavailable
from ipamd.errors import ApiError
from ipamd.service.checks import Claimed, check
from ipamd.service.exhaustion import Exhaustion
from ipamd.service.firstreport import FirstReport
from ipamd.service.pools import find
from ipamd.service.proposer import Proposer, refusal, settled
from ipamd.service.reader import Reader
from ipamd.service.request import At, Request

_QUORUM_WAIT_S = 4.0


class Allocation:
    """The use cases of a pod's interface."""

    def __init__(self, proposer: Proposer, reader: Reader, exhaustion: Exhaustion, first_report: FirstReport) -> None:
        self._proposer, self._reader, self._exhaustion = proposer, reader, exhaustion
        self._first_report = first_report

    async def add(self, command: Add, request: Request) -> At[Granted]:
        """Give what is asked for, all or nothing. Raises ApiError, Unavailable."""
        await self._first_report.wait(request)
        answer = await self._proposer.propose(command, request)
        outcome = answer.outcome
        if isinstance(outcome, Refused) and outcome.code is Code.POOL_EXHAUSTED:
            raise refusal(outcome, *await self._exhaustion.tell(outcome, command, request))
        return At(answer.index, settled(outcome, Granted))

    async def delete(self, command: Del, request: Request) -> At[Released]:
        """Let go what a container's interface holds; nothing is no error. Raises ApiError, Unavailable."""
        return await self._proposer.carry_out(command, request, Released)

    async def note_refused(self, node: str, detail: str, request: Request) -> None:
        """Tell of a DEL that was put aside and is refused for good. Raises Unavailable."""
        await self._proposer.carry_out(NoteRefused(request.origin, node, detail), request, Done)

    async def release(self, command: Release, request: Request) -> At[Released]:
        """Release a reservation through the API. Raises ApiError, Unavailable."""
        return await self._proposer.carry_out(command, request, Released)

    async def check(self, claimed: Claimed, request: Request) -> int:
        """The index at which a container holds what it thinks. Raises ApiError where it does not, Unavailable.

        What an import left open of it is filled in; the answer does not depend on whether that succeeds.
        """
        found = await self._reader.read(lambda snapshot: check(snapshot, claimed), request)
        if found.value.mismatch is not None:
            raise ApiError("reservation_not_found", found.value.mismatch)
        if found.value.opened:
            known = Claim(request.origin, found.value.opened, claimed.ifname, claimed.node, claimed.cni_network)
            with contextlib.suppress(Unavailable):
                await self._proposer.carry_out(known, request, Done)
        return found.index

    async def families(self, requests: Sequence[PoolRequest], request: Request) -> list[int]:
        """The families of the addresses that an ADD with these requests gets. Raises ApiError, Unavailable."""
        found = await self._reader.read(lambda snapshot: _families(snapshot, requests), request)
        return found.value

    async def serves(self, requests: Sequence[PoolRequest], request: Request) -> str | None:
        """Why no ADD with these requests could be served; None: one could. A full pool is no reason."""
        patient_s = self._reader.now_s() + _QUORUM_WAIT_S
        hurried = replace(request, deadline_s=min(request.deadline_s, patient_s))
        try:
            found = await self._reader.read(lambda snapshot: _unserved(snapshot, requests), hurried)
        except Unavailable as error:
            return error.detail
        return found.value


def _families(snapshot: Snapshot, requests: Sequence[PoolRequest]) -> list[int]:
    return [family for request in requests for family in _families_of(snapshot, request)]


def _families_of(snapshot: Snapshot, request: PoolRequest) -> list[int]:
    if request.inline is not None:
        return [request.inline.family]
    return [ranges[0].family for ranges in find(snapshot, request.pool).sets]


def _unserved(snapshot: Snapshot, requests: Sequence[PoolRequest]) -> str | None:
    asks = (asked_of(snapshot, request, NOBODY) for request in requests)
    return next((asked.detail for asked in asks if isinstance(asked, Refused)), None)
