"""Owns the use cases of single addresses: what one is doing now, who had it, and taking it out of use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ipamd.core.addresses import Address
from ipamd.core.commands import LiftQuarantine, SetQuarantine
from ipamd.core.imports import known_ifname, told_ifname
from ipamd.core.intervals import contains, normalise
from ipamd.core.model import FOREVER, AssignedAddress, Attachment, Cooling, Pool, Quarantine, Range, Reservation
from ipamd.core.outcomes import Done, Quarantined
from ipamd.core.ports import HistoryRow, Snapshot
from ipamd.core.withheld import is_withheld
from ipamd.service.proposer import Proposer
from ipamd.service.reader import Reader
from ipamd.service.request import At, Page, Request, page_of


class ShownAddress(NamedTuple):
    """What an address is doing. `reason` is a sentence for people."""

    address: Address
    space: str
    state: str
    pools: tuple[str, ...]
    reason: str
    pod_ref: str | None = None
    ifname: str | None = None
    node: str | None = None
    since_ms: int | None = None


class Addresses:
    """The use cases of single addresses."""

    def __init__(self, proposer: Proposer, reader: Reader) -> None:
        self._proposer, self._reader = proposer, reader

    async def get(self, space: str, address: Address, request: Request) -> At[ShownAddress]:
        """What an address is doing now. Raises Unavailable."""
        return await self._reader.read(lambda snapshot: show(snapshot, space, address), request)

    async def history(
        self, space: str, address: Address, before: int | None, limit: int, request: Request
    ) -> At[Page[HistoryRow]]:
        """Who had an address, newest first, from before an event. Raises Unavailable."""
        return await self._reader.read(
            lambda snapshot: page_of(list(snapshot.history(space, address, before, limit + 1)), limit), request
        )

    async def quarantine(self, command: SetQuarantine, request: Request) -> At[Quarantined]:
        """Take an address out of use. Raises ApiError, Unavailable."""
        return await self._proposer.carry_out(command, request, Quarantined)

    async def lift(self, command: LiftQuarantine, request: Request) -> At[Done]:
        """Put it back into use. Raises ApiError, Unavailable."""
        return await self._proposer.carry_out(command, request, Done)


def show(snapshot: Snapshot, space: str, address: Address) -> ShownAddress:
    """What an address of a space is doing; the first that applies: held, quarantined, cooling, free, not given."""
    around = list(_around(snapshot, space, address))
    pools = tuple(dict.fromkeys(pool.name for pool, _ in around))
    holder, quarantine = snapshot.holder(space, address), snapshot.quarantine(space, address)
    if holder is not None:
        return _held(snapshot, holder, quarantine, pools)
    if quarantine is not None:
        return _quarantined(snapshot, quarantine, pools)
    cooling = snapshot.cooling(space, address)
    if cooling is not None:
        return _cooling(snapshot, cooling, pools)
    giving = next((pool for pool, one in around if one.gives(address)), None)
    if giving is not None:
        if is_withheld(snapshot, space, address):
            return ShownAddress(address, space, "withheld", pools, _why_withheld(snapshot, giving))
        return ShownAddress(address, space, "free", pools, f"pool {giving.name} can hand it out")
    state, reason = _not_given(around, space, address)
    return ShownAddress(address, space, state, pools, reason)


def _around(snapshot: Snapshot, space: str, address: Address) -> Iterator[tuple[Pool, Range]]:
    """The ranges of a space that have to do with an address: it lies in their subnet or is their gateway."""
    for pool in snapshot.pools_of_space(space):
        for ranges in pool.sets:
            for one in ranges:
                if one.subnet.covers(address) or _is_gateway(one, address):
                    yield pool, one


def whose(snapshot: Snapshot, holder: AssignedAddress) -> tuple[Attachment, Reservation]:
    """The attachment and the reservation of a held address; the schema's foreign keys see to both."""
    attachment = snapshot.attachment_by_id(holder.attachment_id)
    reservation = None if attachment is None else snapshot.reservation_by_id(attachment.reservation_id)
    if attachment is None or reservation is None:
        raise LookupError(f"{holder.address} of space {holder.space} is held by nobody")
    return attachment, reservation


def _held(
    snapshot: Snapshot, holder: AssignedAddress, quarantine: Quarantine | None, pools: tuple[str, ...]
) -> ShownAddress:
    attachment, reservation = whose(snapshot, holder)
    pool = snapshot.pool_by_id(holder.pool_id)
    owner = attachment.owner
    where = f" on node {owner.node}" if owner and owner.node else ""
    what = f"bound to container {owner.container_id}{where}" if owner else _hold(snapshot, attachment)
    through = f", through pool {pool.name}" if pool else ""
    pinned = ", pinned" if reservation.pinned else ""
    remark = f" ({reservation.note})" if reservation.note else ""
    note = "; it is in quarantine once it is let go" if quarantine else ""
    return ShownAddress(
        holder.address,
        holder.space,
        attachment.state.value,
        pools,
        f"{told_ifname(attachment.ifname)} of {reservation.pod_ref} has it {what}{through}{pinned}{remark}{note}",
        reservation.pod_ref,
        known_ifname(attachment.ifname),
        owner.node if owner else None,
        attachment.since_ms,
    )


def _hold(snapshot: Snapshot, attachment: Attachment) -> str:
    """A hold and its end."""
    until_log_ms = attachment.hold_until_log_ms
    if until_log_ms is None or until_log_ms == FOREVER:
        return "held, without a container, until it is released"
    return f"held, without a container, for {_left_s(snapshot, until_log_ms)} s more"


def _quarantined(snapshot: Snapshot, quarantine: Quarantine, pools: tuple[str, ...]) -> ShownAddress:
    note = f": {quarantine.note}" if quarantine.note else ""
    until_log_ms = quarantine.until_log_ms
    end = "until it is lifted" if until_log_ms is None else f"for {_left_s(snapshot, until_log_ms)} s more"
    reason = f"{quarantine.by} took it out of use {end}{note}"
    return ShownAddress(
        quarantine.address, quarantine.space, "quarantined", pools, reason, since_ms=quarantine.since_ms
    )


def _cooling(snapshot: Snapshot, cooling: Cooling, pools: tuple[str, ...]) -> ShownAddress:
    left_s = _left_s(snapshot, cooling.until_log_ms)
    hard_s = _left_s(snapshot, cooling.hard_until_log_ms)
    firmly = f", the first {hard_s} s of it from everybody else" if hard_s else ""
    return ShownAddress(
        cooling.address,
        cooling.space,
        "cooling",
        pools,
        f"{told_ifname(cooling.ifname)} of {cooling.pod_ref} had it last; it is kept back for {left_s} s{firmly}",
        cooling.pod_ref,
        known_ifname(cooling.ifname),
    )


def _why_withheld(snapshot: Snapshot, pool: Pool) -> str:
    restored = snapshot.restored()
    index = "" if restored is None else f" (log index {restored.index} of cluster {restored.cluster_id})"
    return (
        f"it may have been given to a pod after the backup that this cluster was restored from{index}; once it is not:"
        f" ipamctl pool confirm {pool.name}"
    )


def _left_s(snapshot: Snapshot, until_log_ms: int) -> int:
    return max(0, until_log_ms - snapshot.log_ms) // 1000


def _not_given(around: list[tuple[Pool, Range]], space: str, address: Address) -> tuple[str, str]:
    """State and reason of an address that no pool hands out."""
    for pool, one in around:
        if _is_gateway(one, address):
            return "gateway", f"it is the gateway of {one.subnet} in pool {pool.name}"
    for pool, one in around:
        if one.first <= address.value <= one.last and contains(normalise(one.excludes), address.value):
            return "excluded", f"pool {pool.name} excludes it"
    if around:
        pool, one = around[0]
        first, last = Address(one.family, one.first), Address(one.family, one.last)
        return "outside", f"it lies in {one.subnet} of pool {pool.name}, which hands out {first} to {last}"
    return "outside", f"no pool of space {space} has it"


def _is_gateway(one: Range, address: Address) -> bool:
    return one.gateway == address.value and one.family == address.family
