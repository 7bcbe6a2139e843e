"""Owns giving addresses to pods and taking them back: ADD, DEL and CHECK, and the same for callers who are not CNI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ipamd.core.addresses import Address
from ipamd.core.asked import NOBODY, asked_of, pools_of
from ipamd.core.commands import Add, Del, PoolRequest, Release
from ipamd.core.model import Owner
from ipamd.core.outcomes import Code, Granted, Refused, Released
from ipamd.core.ports import Snapshot, Unavailable
from ipamd.errors import ApiError
from ipamd.service.exhaustion import Exhaustion
from ipamd.service.pools import find
from ipamd.service.proposer import Proposer, refusal, settled
from ipamd.service.reader import Reader
from ipamd.service.request import At, Request

_QUORUM_WAIT_S = 4.0


@dataclass(frozen=True, slots=True)
class Binding:
    """What a CHECK says that a container has. `addresses` are those of its previous result."""

    requests: tuple[PoolRequest, ...]
    node: str
    cni_network: str
    container_id: str
    ifname: str
    addresses: frozenset[Address]


class Allocation:
    """The use cases of a pod's interface."""

    def __init__(self, proposer: Proposer, reader: Reader, exhaustion: Exhaustion) -> None:
        self._proposer, self._reader, self._exhaustion = proposer, reader, exhaustion

    async def add(self, command: Add, request: Request) -> At[Granted]:
        """Give what is asked for, all or nothing. Raises ApiError, Unavailable."""
        answer = await self._proposer.propose(command, request)
        outcome = answer.outcome
        if isinstance(outcome, Refused) and outcome.code is Code.POOL_EXHAUSTED:
            raise refusal(outcome, *await self._exhaustion.tell(outcome, command, request))
        return At(answer.index, settled(outcome, Granted))

    async def delete(self, command: Del, request: Request) -> At[Released]:
        """Let go what a container's interface holds; nothing is no error. Raises ApiError, Unavailable."""
        return await self._proposer.carry_out(command, request, Released)

    async def release(self, command: Release, request: Request) -> At[Released]:
        """Release a reservation through the API. Raises ApiError, Unavailable."""
        return await self._proposer.carry_out(command, request, Released)

    async def check(self, binding: Binding, request: Request) -> int:
        """The index at which a container holds what it thinks. Raises ApiError where it does not, Unavailable."""
        found = await self._reader.read(lambda snapshot: _mismatch(snapshot, binding), request)
        if found.value is not None:
            raise ApiError("reservation_not_found", found.value)
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


def _mismatch(snapshot: Snapshot, binding: Binding) -> str | None:
    """The first thing that differs from what a container thinks, as a sentence."""
    who = f"interface {binding.ifname} of container {binding.container_id}"
    mine = [
        one
        for one in snapshot.attachments_of_container(binding.container_id, binding.ifname)
        if one.owner is not None and _is_same(one.owner, binding)
    ]
    for request in binding.requests:
        pools = {pool.id: pool.name for pool in pools_of(snapshot, request)}
        if not pools:
            return f"there is no pool {request.pool}"
        held = next((one for one in mine if one.pool_id in pools), None)
        if held is None:
            where = f"for CNI network {binding.cni_network} on node {binding.node}"
            return f"{who} holds nothing in pool {' or '.join(pools.values())} {where}"
        name = pools[held.pool_id]
        for one in snapshot.assigned(held.id):
            if one.address not in binding.addresses:
                return f"{who} holds {one.address} in pool {name}, which prevResult does not name"
    return None


def _is_same(owner: Owner, binding: Binding) -> bool:
    """What an import did not know (None) matches anything."""
    return owner.node in (None, binding.node) and owner.cni_network in (None, binding.cni_network)
