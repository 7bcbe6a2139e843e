"""Owns the answer to "what would an ADD get, and why": a rehearsal on a snapshot, and an account of every range."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ipamd.core.addresses import Address
from ipamd.core.commands import Add, PoolRequest
from ipamd.core.intervals import count
from ipamd.core.model import Owner, Pool, Range
from ipamd.core.outcomes import Granted, GrantedAddress, Refused
from ipamd.core.ports import Snapshot
from ipamd.service.exhaustion import describe, excluded_of
from ipamd.service.pools import find, rehearse
from ipamd.service.ports import Clock
from ipamd.service.proposer import refusal, settled
from ipamd.service.reader import Reader
from ipamd.service.request import At, Request

_NEW_POD = "_/why/why"
"""The pod that is asked for where none is named: one that holds nothing."""


class RangeAccount(NamedTuple):
    """One range: what it could give, and why not more. `verdict` is a sentence."""

    position: int
    order: int
    range: Range
    free: int
    bound: int
    held: int
    other: int
    excluded: int
    verdict: str


class Explained(NamedTuple):
    """What an ADD would get. `code` is None where it would succeed; `known`: the interface has its address already."""

    pool: Pool
    pod_ref: str
    ifname: str
    addresses: tuple[str, ...]
    code: str | None
    detail: str
    ranges: tuple[RangeAccount, ...]


class Why:
    """Explains allocations."""

    def __init__(self, reader: Reader, clock: Clock) -> None:
        self._reader, self._clock = reader, clock

    async def explain(self, pool: str, pod_ref: str | None, ifname: str, request: Request) -> At[Explained]:
        """What an ADD of this pod's interface in a pool would get now, and why. Raises ApiError, Unavailable."""
        wall_ms = self._clock.wall_ms()
        add = Add(
            request.origin, (PoolRequest(pool),), pod_ref or _NEW_POD, ifname, Owner(container_id="why", node="why")
        )
        return await self._reader.read(lambda snapshot: _explain(snapshot, find(snapshot, pool), add, wall_ms), request)

    async def rehearse(self, add: Add, request: Request) -> At[Granted]:
        """What an ADD would get now; nothing is changed. Raises ApiError where it would be refused, Unavailable."""
        wall_ms = self._clock.wall_ms()
        return await self._reader.read(lambda snapshot: _rehearsed(snapshot, add, wall_ms), request)


def _explain(snapshot: Snapshot, pool: Pool, add: Add, wall_ms: int) -> Explained:
    outcome = rehearse(snapshot, add, wall_ms)
    accounts = tuple(_accounts(snapshot, pool))
    if isinstance(outcome, Refused):
        full = describe(snapshot, pool.name, outcome.position) if outcome.position is not None else None
        return Explained(pool, add.pod_ref, add.ifname, (), outcome.code.value, full or outcome.detail, accounts)
    if not isinstance(outcome, Granted):
        raise TypeError(f"an ADD was rehearsed and answered {type(outcome).__name__}")
    given = [one for grant in outcome.grants for one in grant.addresses]
    texts = tuple(f"{one.address}/{one.prefix}" for one in given)
    who = "a pod never seen" if add.pod_ref == _NEW_POD else add.pod_ref
    detail = f"{add.ifname} of {who} would get {'; '.join(_ways(snapshot, pool, add, given))}"
    return Explained(pool, add.pod_ref, add.ifname, texts, None, detail, accounts)


def _ways(snapshot: Snapshot, pool: Pool, add: Add, given: Sequence[GrantedAddress]) -> Iterator[str]:
    """The addresses, and how each was found; those found in one way stand together."""
    holds = _own_addresses(snapshot, pool, add)
    ways = [(_way(snapshot, pool, add, one.address, holds), f"{one.address}/{one.prefix}") for one in given]
    for way in dict.fromkeys(way for way, _ in ways):
        yield f"{', '.join(text for other, text in ways if other == way)}, {way}"


def _way(snapshot: Snapshot, pool: Pool, add: Add, address: Address, holds: Collection[Address]) -> str:
    if address in holds:
        return "which it has now"
    cooling = snapshot.cooling(pool.space, address)
    if cooling is not None and (cooling.pod_ref, cooling.ifname) == (add.pod_ref, add.ifname):
        return "which it had last"
    if cooling is not None:
        return "which has cooled longest, because nothing else is free"
    return f"by strategy {pool.definition.strategy}"


def _rehearsed(snapshot: Snapshot, add: Add, wall_ms: int) -> Granted:
    outcome = rehearse(snapshot, add, wall_ms)
    if isinstance(outcome, Refused) and outcome.position is not None and outcome.pool is not None:
        raise refusal(outcome, describe(snapshot, outcome.pool, outcome.position))
    return settled(outcome, Granted)


def _own_addresses(snapshot: Snapshot, pool: Pool, add: Add) -> Collection[Address]:
    reservation = snapshot.reservation(pool.id, add.pod_ref)
    if reservation is None:
        return ()
    return [
        one.address
        for attachment in snapshot.attachments(reservation.id)
        if attachment.ifname == add.ifname
        for one in snapshot.assigned(attachment.id)
    ]


def _accounts(snapshot: Snapshot, pool: Pool) -> Iterator[RangeAccount]:
    taken = _taken(snapshot, pool)
    for position, ranges in enumerate(pool.sets):
        for order, one in enumerate(ranges):
            bound, held = taken.get((position, order), (0, 0))
            free = snapshot.free_count(pool, position, order)
            usable = count(one.usable)
            other = usable - free - bound - held
            account = RangeAccount(position, order, one, free, bound, held, other, count(excluded_of(one)), "")
            yield account._replace(verdict=_verdict(account, usable))


def _taken(snapshot: Snapshot, pool: Pool) -> dict[tuple[int, int], tuple[int, int]]:
    """How many addresses of each range are bound and held through this pool."""
    holds = {one.id for one in snapshot.attachments_of_pool(pool.id) if one.owner is None}
    taken: dict[tuple[int, int], tuple[int, int]] = {}
    for assigned in snapshot.assigned_of_pool(pool.id):
        place = _place(pool, assigned.position, assigned.address)
        if place is not None:
            bound, held = taken.get(place, (0, 0))
            is_held = assigned.attachment_id in holds
            taken[place] = (bound + (not is_held), held + is_held)
    return taken


def _place(pool: Pool, position: int, address: Address) -> tuple[int, int] | None:
    """The range that gives an address; None: it is stranded outside all of them."""
    if position >= len(pool.sets):
        return None
    found = (order for order, one in enumerate(pool.sets[position]) if one.gives(address))
    return next(((position, order) for order in found), None)


def _verdict(account: RangeAccount, usable: int) -> str:
    first, last = Address(account.range.family, account.range.first), Address(account.range.family, account.range.last)
    if not usable:
        return f"{first} to {last} gives nothing: all of it is excluded or the gateway"
    if account.free:
        return f"{first} to {last} has {account.free} of {usable} free"
    shares = ((account.bound, "bound"), (account.held, "held"), (account.other, "cooling, quarantined or elsewhere"))
    return f"{first} to {last} has none of {usable} free: " + ", ".join(f"{n} {what}" for n, what in shares if n)
