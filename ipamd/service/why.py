"""Owns the answer to "what would an ADD get, and why": a rehearsal on a snapshot, and an account of every range."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ipamd.core.addresses import Address
from ipamd.core.asked import Asked
from ipamd.core.commands import Add, PoolRequest
from ipamd.core.model import Attachment, Owner, Pool
from ipamd.core.outcomes import Code, Granted, GrantedAddress, Outcome, Refused
from ipamd.core.ports import Snapshot
from ipamd.core.values import replace
from ipamd.service.accounts import RangeAccount, accounts
from ipamd.service.exhaustion import describe
from ipamd.service.pools import find, rehearse
from ipamd.service.ports import Clock
from ipamd.service.reader import Reader
from ipamd.service.request import At, Request

NEW_POD = "_/why/why"
"""The pod that is asked for where none is named: one that holds nothing."""

_ASKING = Owner(container_id="why", node="why")
"""The container of the ADD, on a node that nobody else is."""


class Question(NamedTuple):
    """Whose ADD, and what it insists on. `pod_ref` None: a pod never seen.

    `node`: where the pod would be; None: where it is, if it has something.
    """

    pool: str
    pod_ref: str | None
    ifname: str
    addresses: tuple[Address, ...] = ()
    node: str | None = None


class Explained(NamedTuple):
    """What an ADD would get. `code` is None where it would succeed. `wanted`: the addresses that it insists on."""

    pool: Pool
    pod_ref: str
    ifname: str
    wanted: tuple[Address, ...]
    addresses: tuple[str, ...]
    code: str | None
    detail: str
    ranges: tuple[RangeAccount, ...]


class Why:
    """Explains allocations."""

    def __init__(self, reader: Reader, clock: Clock) -> None:
        self._reader, self._clock = reader, clock

    async def explain(self, question: Question, request: Request) -> At[Explained]:
        """What an ADD would get now, and why. Raises ApiError, Unavailable."""
        wall_ms = self._clock.wall_ms()
        add = Add(
            request.origin,
            (PoolRequest(question.pool),),
            question.pod_ref or NEW_POD,
            question.ifname,
            _ASKING,
            addresses=question.addresses,
        )
        return await self._reader.read(
            lambda snapshot: _explain(snapshot, find(snapshot, question.pool), add, question.node, wall_ms), request
        )


def _explain(snapshot: Snapshot, pool: Pool, add: Add, node: str | None, wall_ms: int) -> Explained:
    here = node or _node_of(snapshot, pool, add)
    outcome = rehearse(snapshot, add if here is None else replace(add, owner=replace(_ASKING, node=here)), wall_ms)
    found = tuple(accounts(snapshot, pool, pool.sets))
    about = pool, add.pod_ref, add.ifname, add.addresses
    if isinstance(outcome, Refused):
        detail = outcome.detail
        if outcome.position is not None:
            detail = describe(snapshot, Asked(pool, pool.sets), outcome.position).sentence
        return Explained(*about, (), outcome.code.value, detail, found)
    if not isinstance(outcome, Granted):
        raise TypeError(f"an ADD was rehearsed and answered {type(outcome).__name__}")
    given = [one for grant in outcome.grants for one in grant.addresses]
    texts = tuple(f"{one.address}/{one.prefix}" for one in given)
    who = "a pod never seen" if add.pod_ref == NEW_POD else add.pod_ref
    detail = f"{add.ifname} of {who} would get {'; '.join(_ways(snapshot, pool, add, given))}"
    if node is None and here is not None:
        detail += _elsewhere(rehearse(snapshot, add, wall_ms), pool, add, here)
    return Explained(*about, texts, None, detail, found)


def _elsewhere(outcome: Outcome, pool: Pool, add: Add, here: str) -> str:
    """What the pod would be told on another node than it is on."""
    if not isinstance(outcome, Refused) or outcome.code is not Code.CONTESTED:
        return ""
    release = f"ipamctl reservation release {pool.name} {add.pod_ref} --force"
    return f"; on another node it is contested while node {here} reports it alive, unless: {release}"


def _ways(snapshot: Snapshot, pool: Pool, add: Add, given: Sequence[GrantedAddress]) -> Iterator[str]:
    """The addresses, and how each was found; those found in one way stand together."""
    holds = _own_addresses(snapshot, pool, add)
    ways = [(_way(snapshot, pool, add, one.address, holds), f"{one.address}/{one.prefix}") for one in given]
    for way in dict.fromkeys(way for way, _ in ways):
        yield f"{', '.join(text for other, text in ways if other == way)}, {way}"


def _way(snapshot: Snapshot, pool: Pool, add: Add, address: Address, holds: Collection[Address]) -> str:
    if address in holds:
        return "which it has now"
    if address in add.addresses:
        return "as it asks"
    cooling = snapshot.cooling(pool.space, address)
    if cooling is not None and (cooling.pod_ref, cooling.ifname) == (add.pod_ref, add.ifname):
        return "which it had last"
    if cooling is not None:
        return "which has cooled longest, because nothing else is free"
    return f"by strategy {pool.definition.strategy}"


def _own_addresses(snapshot: Snapshot, pool: Pool, add: Add) -> Collection[Address]:
    return [one.address for attachment in _own(snapshot, pool, add) for one in snapshot.assigned(attachment.id)]


def _node_of(snapshot: Snapshot, pool: Pool, add: Add) -> str | None:
    """The node that the pod is on; None: it has nothing there, or nobody knows where it is."""
    return next((one.owner.node for one in _own(snapshot, pool, add) if one.owner is not None), None)


def _own(snapshot: Snapshot, pool: Pool, add: Add) -> list[Attachment]:
    """The interface of the pod that is asked for, if it has it."""
    reservation = snapshot.reservation(pool.id, add.pod_ref)
    if reservation is None:
        return []
    return [one for one in snapshot.attachments(reservation.id) if one.ifname == add.ifname]
