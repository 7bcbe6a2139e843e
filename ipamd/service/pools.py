"""Owns the use cases of pools: making, changing, deleting and counting them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from ipamd.core.commands import Command, ConfirmPool, CreatePool, DropPool, ReplacePool
from ipamd.core.decide import decide
from ipamd.core.entries import Stamp
from ipamd.core.model import Pool, PoolDefinition
from ipamd.core.outcomes import Confirmed, Outcome, PoolDropped, PoolStored, Stranded
from ipamd.core.ports import Doubt, FamilyCounts, Snapshot
from ipamd.errors import ApiError
from ipamd.service.collection import Collection
from ipamd.service.ports import Clock
from ipamd.service.proposer import Proposer, settled
from ipamd.service.reader import Reader
from ipamd.service.request import At, Page, Request, page_of

O = TypeVar("O", bound=Outcome)  # noqa: E741 - the outcome


class ShownPool(NamedTuple):
    """A pool with what is in force where it says nothing itself."""

    pool: Pool
    cooldown_s: int
    reclaim: str


class Usage(NamedTuple):
    """How a pool's addresses are spent, by family, and what of the bound ones is suspect or lost."""

    counts: dict[int, FamilyCounts]
    doubts: Sequence[Doubt]


def _usage(snapshot: Snapshot, pool: Pool) -> Usage:
    return Usage(snapshot.counts(pool), snapshot.doubts(pool))


class Pools:
    """The use cases of pools."""

    def __init__(self, proposer: Proposer, reader: Reader, collection: Collection, clock: Clock) -> None:
        self._proposer, self._reader, self._collection, self._clock = proposer, reader, collection, clock

    async def create(self, definition: PoolDefinition, request: Request) -> At[PoolStored]:
        """Make a pool; an equal one is no error. Raises ApiError, Unavailable."""
        return await self._proposer.carry_out(CreatePool(request.origin, definition), request, PoolStored)

    async def update(
        self, definition: PoolDefinition, request: Request, *, force: bool, dry_run: bool
    ) -> At[PoolStored]:
        """Replace a pool's definition, or only say whom that would strand. Raises ApiError, Unavailable."""
        return await self._write(
            ReplacePool(request.origin, definition, force or dry_run), request, PoolStored, dry_run=dry_run
        )

    async def delete(self, name: str, request: Request, *, force: bool, dry_run: bool) -> At[PoolDropped]:
        """Delete a pool, or only say whom that would strand. Raises ApiError, Unavailable.

        By force it is emptied first, some hundreds at a time, so that no entry of the log grows with the pool.
        """
        command = DropPool(request.origin, name, force or dry_run)
        if dry_run or not force:
            return await self._write(command, request, PoolDropped, dry_run=dry_run)
        emptied = await self._collection.empty_pool(name, request)
        done = await self._proposer.carry_out(command, request, PoolDropped)
        freed = (Stranded(one.pod_ref, one.ifname, address) for one in emptied.value for address in one.addresses)
        return At(done.index, PoolDropped((*freed, *done.value.stranded)))

    async def confirm(self, name: str, request: Request, *, force: bool, dry_run: bool) -> At[Confirmed]:
        """Confirm a pool after a restore, or only say what an operator has to know. Raises ApiError, Unavailable."""
        command = ConfirmPool(request.origin, name, force or dry_run)
        return await self._write(command, request, Confirmed, dry_run=dry_run)

    async def get(self, name: str, request: Request) -> At[ShownPool]:
        """One pool. Raises ApiError, Unavailable."""
        return await self._reader.read(lambda snapshot: _shown(snapshot, find(snapshot, name)), request)

    async def page(self, after: str, limit: int, request: Request) -> At[Page[ShownPool]]:
        """Up to `limit` pools with names above `after`, by name. Raises Unavailable."""

        def look(snapshot: Snapshot) -> Page[ShownPool]:
            return page_of([_shown(snapshot, pool) for pool in snapshot.pools(after, limit + 1)], limit)

        return await self._reader.read(look, request)

    async def usage(self, name: str, request: Request) -> At[Usage]:
        """How a pool's addresses are spent, by family. Raises ApiError, Unavailable."""
        return await self._reader.read(lambda snapshot: _usage(snapshot, find(snapshot, name)), request)

    async def _write(self, command: Command, request: Request, expected: type[O], *, dry_run: bool) -> At[O]:
        if not dry_run:
            return await self._proposer.carry_out(command, request, expected)
        wall_ms = self._clock.wall_ms()
        done = await self._reader.read(
            lambda snapshot: rehearse(snapshot, command, wall_ms), replace(request, key=None)
        )
        return At(done.index, settled(done.value, expected))


def find(snapshot: Snapshot, name: str) -> Pool:
    """A pool that must be there. Raises ApiError."""
    pool = snapshot.pool(name)
    if pool is None:
        raise ApiError("pool_not_found", f"there is no pool {name}")
    return pool


def rehearse(snapshot: Snapshot, command: Command, wall_ms: int) -> Outcome:
    """What a command would answer now; nothing is changed."""
    return decide(snapshot, command, Stamp(snapshot.log_ms, wall_ms)).outcome


def _shown(snapshot: Snapshot, pool: Pool) -> ShownPool:
    settings, own = snapshot.settings(), pool.definition
    return ShownPool(
        pool,
        settings.cooldown_s if own.cooldown_s is None else own.cooldown_s,
        settings.reclaim if own.reclaim is None else own.reclaim,
    )
