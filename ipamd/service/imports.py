"""Owns carrying out imports: a plan goes into the log in parts, and one last entry makes all of it so, or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ipamd.core.commands import Command, FinishImport, PoolRequest, StageImport
from ipamd.core.imports import Conflict, Finding, Verdict
from ipamd.core.model import DEFAULT_SPACE, Pool
from ipamd.core.outcomes import Done, Imported, Refused
from ipamd.core.ports import Snapshot
from ipamd.core.staging import conflicts_of, counts_of, find_destinations
from ipamd.core.weigh import weigh
from ipamd.errors import ApiError
from ipamd.service.ports import Random
from ipamd.service.proposer import O, Proposer, refusal
from ipamd.service.reader import Reader
from ipamd.service.request import At, Request

PART = 400
"""Findings in one command: even with the longest names they fit into an entry of the log."""

MOST = 100_000
"""Findings in one import: its last entry keeps every member from all else for some ten seconds then."""

_AT_ONCE = 4
"""Parts that are proposed together: more would only keep other calls waiting."""

_ID_BYTES = 16


class Plan(Protocol):
    """What a source says, read and made sense of."""

    @property
    def pools(self) -> tuple[PoolRequest, ...]:
        """The pools that it needs."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Who holds what."""

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Where it contradicts itself."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What an import would do: its outcome, and what would become of each finding."""

    outcome: Imported
    verdicts: tuple[tuple[Finding, Verdict], ...]


class Imports:
    """The use cases of imports."""

    def __init__(self, proposer: Proposer, reader: Reader, random: Random) -> None:
        self._proposer, self._reader, self._random = proposer, reader, random

    async def default_pools(self, request: Request) -> Sequence[Pool]:
        """The pools of the default space. Raises Unavailable."""
        found = await self._reader.read(lambda snapshot: snapshot.pools_of_space(DEFAULT_SPACE), request)
        return found.value

    async def rehearse(self, plan: Plan, request: Request) -> At[Rehearsal]:
        """What an import would do now; nothing is changed. Raises ApiError, Unavailable."""
        return await self._reader.read(lambda snapshot: _rehearse(snapshot, plan), request)

    async def carry_out(self, plan: Plan, request: Request) -> At[Imported]:
        """Import all of it, or nothing. Raises ApiError with every conflict, Unavailable."""
        if plan.conflicts:
            found = await self.rehearse(plan, request)
            raise conflict(found.value.outcome.conflicts)
        if len(plan.findings) > MOST:
            many = len(plan.findings)
            detail = f"{many} addresses are too many for one import, {MOST} are the most: do it pool by pool"
            raise ApiError("too_large", detail)
        import_id = (self._random(_ID_BYTES) if request.key is None else request.key.op).hex()
        parts = list(_parts(plan.findings))
        for first in range(0, len(parts), _AT_ONCE):
            batch = enumerate(parts[first : first + _AT_ONCE], first)
            staged = (StageImport(request.origin, import_id, number, findings) for number, findings in batch)
            await asyncio.gather(*(self._propose(one, one.number, request, Done) for one in staged))
        finish = FinishImport(request.origin, import_id, len(parts), plan.pools)
        done = await self._propose(finish, len(parts), request, Imported)
        if done.value.conflicts:
            raise conflict(done.value.conflicts)
        return done

    async def _propose(self, command: Command, number: int, request: Request, expected: type[O]) -> At[O]:
        part = request if request.key is None else replace(request, key=request.key.part(number))
        return await self._proposer.carry_out(command, part, expected)


def conflict(conflicts: Sequence[Conflict]) -> ApiError:
    """The refusal of an import, with all that stands against it."""
    first = conflicts[0]
    place = f"{first.address} ({first.place})" if first.address else first.place
    more = f", and {len(conflicts) - 1} more" if len(conflicts) > 1 else ""
    return ApiError(
        "import_conflict",
        f"nothing was imported: {place} {first.why}{more}",
        conflicts=[
            {"place": one.place, "address": str(one.address) if one.address else None, "why": one.why}
            for one in conflicts
        ],
    )


def _parts(findings: Sequence[Finding]) -> Iterator[tuple[Finding, ...]]:
    for at in range(0, len(findings), PART):
        yield tuple(findings[at : at + PART])


def _rehearse(snapshot: Snapshot, plan: Plan) -> Rehearsal:
    destinations = find_destinations(snapshot, plan.pools)
    if isinstance(destinations, Refused):
        raise refusal(destinations)
    verdicts = list(weigh(snapshot, destinations, plan.findings))
    conflicts = (*plan.conflicts, *conflicts_of(plan.findings, verdicts))
    outcome = Imported(counts_of(destinations, plan.findings, verdicts), conflicts)
    return Rehearsal(outcome, tuple(zip(plan.findings, verdicts, strict=True)))
