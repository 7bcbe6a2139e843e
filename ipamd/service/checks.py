"""Owns CNI's CHECK: whether a container holds what it thinks, and what an import left open of that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ipamd.core.addresses import Address
from ipamd.core.asked import pools_of
from ipamd.core.commands import Binding, PoolRequest
from ipamd.core.imports import is_open_ifname, is_open_pod, matches
from ipamd.core.model import OLDEST, Attachment
from ipamd.core.ports import Snapshot


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a CHECK says that a container has. `addresses` are those of its previous result."""

    requests: tuple[PoolRequest, ...]
    node: str
    cni_network: str
    container_id: str
    ifname: str
    addresses: frozenset[Address]


class Checked(NamedTuple):
    """The first thing that differs from what a container thinks, as a sentence; and its bindings that are open."""

    mismatch: str | None
    opened: tuple[Binding, ...] = ()


def check(snapshot: Snapshot, claimed: Claimed) -> Checked:
    """Look at what a container holds."""
    there = snapshot.attachments_of_container(claimed.container_id, claimed.ifname)
    mine = [one for one in there if matches(one.owner, claimed.node, claimed.cni_network)]
    found: list[Attachment] = []
    for request in claimed.requests:
        held = _held(snapshot, claimed, request, mine)
        if isinstance(held, str):
            return Checked(held)
        for one in snapshot.assigned(held.id):
            if one.address not in claimed.addresses:
                pool = snapshot.pool_by_id(held.pool_id)
                name = pool.name if pool else request.pool
                return Checked(f"{_who(claimed)} holds {one.address} in pool {name}, which prevResult does not name")
        found.append(held)
    return Checked(None, tuple(Binding(one.id, one.generation) for one in found if _is_open(snapshot, one)))


def _held(snapshot: Snapshot, claimed: Claimed, request: PoolRequest, mine: Sequence[Attachment]) -> Attachment | str:
    """What the container has of a request, or the sentence that says that it has nothing."""
    pools = {pool.id: pool.name for pool in pools_of(snapshot, request)}
    here = [one for one in mine if one.pool_id in pools] or list(_taken_for(snapshot, request, mine))
    if here:
        return min(here, key=lambda one: (is_open_ifname(one.ifname), not _fits(snapshot, one, claimed), one.id))
    if not pools:
        return f"there is no pool {request.pool}"
    where = f"for CNI network {claimed.cni_network} on node {claimed.node}"
    return f"{_who(claimed)} holds nothing in pool {' or '.join(pools.values())} {where}"


def _taken_for(snapshot: Snapshot, request: PoolRequest, mine: Sequence[Attachment]) -> Iterator[Attachment]:
    """What an import put into another inline pool, knowing no better; the next ADD brings it to this one."""
    inline = request.inline
    for one in mine if inline is not None else ():
        pool = snapshot.pool_by_id(one.pool_id)
        if inline is None or pool is None or one.start != OLDEST:
            continue
        if pool.space == inline.space and pool.definition.inline:
            addresses = [assigned.address for assigned in snapshot.assigned(one.id)]
            if all(any(subnet.covers(address) for subnet in inline.subnets) for address in addresses):
                yield one


def _fits(snapshot: Snapshot, attachment: Attachment, claimed: Claimed) -> bool:
    return all(one.address in claimed.addresses for one in snapshot.assigned(attachment.id))


def _is_open(snapshot: Snapshot, attachment: Attachment) -> bool:
    owner, reservation = attachment.owner, snapshot.reservation_by_id(attachment.reservation_id)
    if owner is None or reservation is None:
        return False
    return (
        None in (owner.node, owner.cni_network) or is_open_ifname(attachment.ifname) or is_open_pod(reservation.pod_ref)
    )


def _who(claimed: Claimed) -> str:
    return f"interface {claimed.ifname} of container {claimed.container_id}"
