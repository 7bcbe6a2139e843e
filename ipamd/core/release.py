"""Owns letting go: what DEL, an API release, a reclaim and the end of a hold do to attachments and their addresses.

Two ways: *let go* keeps the addresses for the pod where the pool holds (`hold_s`) or the reservation is pinned; *free*
gives them up. Freed addresses cool, so that late packets and stale ARP entries of the old pod meet nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ipamd.core.addresses import Address
from ipamd.core.commands import Del, Reclaim, ReclaimCause, Release
from ipamd.core.draft import Draft
from ipamd.core.imports import is_open_pod, known_ifname, matches, named_first, told_ifname
from ipamd.core.lost import is_reclaimable
from ipamd.core.model import (
    FOREVER,
    OLDEST,
    AssignedAddress,
    Attachment,
    Cooling,
    EventKind,
    Pool,
    Reservation,
    Tombstone,
)
from ipamd.core.outcomes import Code, LetGo, Outcome, Refused, Released
from ipamd.core.values import replace
from ipamd.core.withheld import end_dispute, is_doubtful, waits_for_nodes


@dataclass(frozen=True, slots=True)
class _Subject:
    """An attachment that goes, with what is told of it."""

    pool: Pool
    reservation: Reservation
    attachment: Attachment
    detail: str

    @property
    def node(self) -> str | None:
        return self.attachment.owner.node if self.attachment.owner else None

    def tell(self, draft: Draft, kind: EventKind, address: Address) -> None:
        draft.event(
            kind,
            space=self.pool.space,
            pool=self.pool.name,
            pod_ref=self.reservation.pod_ref,
            ifname=known_ifname(self.attachment.ifname),
            address=address,
            node=self.node,
            detail=self.detail,
        )

    def gone(self, assigned: Sequence[AssignedAddress], *, held: bool) -> LetGo:
        addresses = tuple(one.address for one in assigned)
        return LetGo(self.pool.name, self.reservation.pod_ref, self.attachment.ifname, self.node, addresses, held)


def delete(draft: Draft, command: Del) -> Outcome:
    """Carry out a CNI DEL: free what its own container holds, if it was bound before the DEL started."""
    view = draft.view
    start = draft.start(command.node, command.call) if command.call is not None else None
    there = view.attachments_of_container(command.container_id, command.ifname)
    mine = [one for one in there if matches(one.owner, command.node, command.cni_network)]
    matching = named_first(mine, command.ifname)
    current = [one for one in matching if start is None or one.start <= start]
    if start is not None:
        key = (command.node, command.cni_network, command.container_id, command.ifname)
        mark = view.tombstone(*key)
        if mark is None or mark.start < start:
            until = draft.stamp.log_ms + view.settings().tombstone_s * 1000
            draft.put(Tombstone(*key, start, until))
    items = let_go(draft, current, "")
    return Released(items, stale=len(current) < len(matching))


def release(draft: Draft, command: Release) -> Outcome:
    """Carry out a release through the API."""
    view = draft.view
    pool = view.pool(command.pool)
    if pool is None:
        return Refused(Code.POOL_NOT_FOUND, f"there is no pool {command.pool}", command.pool)
    reservation = view.reservation(pool.id, command.pod_ref)
    attachments = _chosen(draft, command, reservation)
    if reservation is None or not attachments:
        interface = f" on {command.ifname}" if command.ifname else ""
        detail = f"pool {pool.name} has no reservation for {command.pod_ref}{interface}"
        return Refused(Code.RESERVATION_NOT_FOUND, detail, pool.name)
    if command.container_id is None and command.generation is None:
        return _release_whole(draft, command, attachments)
    current = [one for one in attachments if _is_meant(one, command)]
    if not current:
        return Released((), stale=True)
    return Released(free(draft, current, "") if command.force else let_go(draft, current, ""))


def reclaim(draft: Draft, command: Reclaim) -> Outcome:
    """Free those of the bindings that are still as their proposer saw them."""
    start = draft.start(command.node, command.call) if command.node and command.call else None
    current: list[Attachment] = []
    bindings = dict.fromkeys(command.bindings)
    for binding in bindings:
        attachment = draft.view.attachment_by_id(binding.attachment_id)
        if attachment is None or attachment.generation != binding.generation:
            continue
        owner = attachment.owner
        if command.node is not None and (owner is None or owner.node != command.node):
            continue
        if (start is None or attachment.start <= start) and _may_go(draft, command, attachment):
            current.append(attachment)
    stale = len(current) < len(bindings)
    way = free if command.cause is ReclaimCause.POOL_DELETE else let_go
    return Released(way(draft, current, command.cause.value), stale)


def _may_go(draft: Draft, command: Reclaim, attachment: Attachment) -> bool:
    """Whether the cause still holds where the log is now."""
    if command.cause is ReclaimCause.LOST:
        return is_reclaimable(draft.view, attachment, draft.stamp.log_ms)
    if command.cause is ReclaimCause.UNCLAIMED:
        return attachment.owner is not None and attachment.owner.node is None
    if command.cause is ReclaimCause.SUSPECT_RELEASE:
        return attachment.suspect
    if command.cause is ReclaimCause.GC and command.node is not None:
        node = draft.node(command.node)  # a list of two hosts that share a name is the whole list of neither
        return node is None or not node.clash
    return True


def let_go(draft: Draft, attachments: Sequence[Attachment], detail: str) -> tuple[LetGo, ...]:
    """Unbind attachments: kept for the pod where the pool or a pin says so, else freed. What is held already, goes."""
    items: list[LetGo] = []
    for reservation, pool, group in _grouped(draft, attachments):
        until = _hold_until(draft, pool, reservation)
        kept = [
            one
            for one in group
            if one.owner is not None and until is not None and (reservation.pinned or not _is_disputed(draft, one))
        ]
        if until is not None:
            items += [_hold(draft, _Subject(pool, reservation, one, detail), until) for one in kept]
        items += _free_group(draft, pool, reservation, [one for one in group if one not in kept], detail)
    return tuple(items)


def free(draft: Draft, attachments: Sequence[Attachment], detail: str) -> tuple[LetGo, ...]:
    """Give attachments up for good, whatever holds or pins them."""
    items: list[LetGo] = []
    for reservation, pool, group in _grouped(draft, attachments):
        items += _free_group(draft, pool, reservation, group, detail)
    return tuple(items)


def _chosen(draft: Draft, command: Release, reservation: Reservation | None) -> list[Attachment]:
    if reservation is None:
        return []
    attachments = draft.view.attachments(reservation.id)
    return [one for one in attachments if command.ifname in (None, one.ifname)]


def _release_whole(draft: Draft, command: Release, attachments: list[Attachment]) -> Outcome:
    bound = next((one for one in attachments if one.owner is not None), None)
    if bound is not None and bound.owner is not None and not command.force:
        place = f" on node {bound.owner.node}" if bound.owner.node else ""
        detail = (
            f"{told_ifname(bound.ifname)} of {command.pod_ref} is bound to container "
            f"{bound.owner.container_id}{place}; "
            "name its container_id or generation, or use force"
        )
        return Refused(Code.BOUND, detail, command.pool)
    return Released(free(draft, attachments, ""))


def _is_meant(attachment: Attachment, command: Release) -> bool:
    """Whether an attachment is the binding that a release names."""
    if command.generation is not None and attachment.generation != command.generation:
        return False
    if command.container_id is None:
        return True
    return attachment.owner is not None and attachment.owner.container_id == command.container_id


def _grouped(draft: Draft, attachments: Iterable[Attachment]) -> Iterable[tuple[Reservation, Pool, list[Attachment]]]:
    """Attachments by reservation, since the last one to go takes the reservation with it."""
    groups: dict[int, list[Attachment]] = {}
    for attachment in attachments:
        groups.setdefault(attachment.reservation_id, []).append(attachment)
    for reservation_id, group in groups.items():
        reservation = draft.view.reservation_by_id(reservation_id)
        pool = draft.view.pool_by_id(group[0].pool_id)
        if reservation is None or pool is None:
            raise LookupError(f"attachment {group[0].id} has no reservation {reservation_id} or no pool")
        yield reservation, pool, group


def _hold_until(draft: Draft, pool: Pool, reservation: Reservation) -> int | None:
    """Until when what is let go is kept for its pod; None: it is not. A pod that nobody knows cannot come back."""
    if is_open_pod(reservation.pod_ref):
        return None
    hold_s = pool.definition.hold_s
    if reservation.pinned or hold_s == FOREVER:
        return FOREVER
    return draft.stamp.log_ms + hold_s * 1000 if hold_s else None


def _hold(draft: Draft, subject: _Subject, until: int) -> LetGo:
    attachment = subject.attachment
    assigned = draft.view.assigned(attachment.id)
    since_ms = draft.stamp.wall_ms
    held = replace(attachment, owner=None, start=OLDEST, since_ms=since_ms, hold_until_log_ms=until, suspect=False)
    draft.put(held)
    for one in assigned:
        subject.tell(draft, EventKind.HELD, one.address)
    return subject.gone(assigned, held=True)


def _is_disputed(draft: Draft, attachment: Attachment) -> bool:
    """Whether another pod's container uses an address of this one: it is not kept for who lets it go."""
    view = draft.view
    return view.restored() is not None and any(
        view.disputed(one.space, one.address) is not None for one in view.assigned(attachment.id)
    )


def _free_group(
    draft: Draft, pool: Pool, reservation: Reservation, group: list[Attachment], detail: str
) -> list[LetGo]:
    items = [_free_one(draft, _Subject(pool, reservation, one, detail)) for one in group]
    if len(draft.view.attachments(reservation.id)) == len(group):
        draft.drop(reservation)
    return items


def _free_one(draft: Draft, subject: _Subject) -> LetGo:
    view, assigned = draft.view, draft.view.assigned(subject.attachment.id)
    is_restored = view.restored() is not None
    doubtful = is_restored and is_doubtful(view, subject.attachment) and waits_for_nodes(draft)
    for one in assigned:
        draft.drop(one)
        disputed = view.disputed(one.space, one.address) if is_restored else None
        if disputed is not None:
            end_dispute(draft, disputed, "who was recorded with it let go")
        if doubtful or disputed is not None:  # maybe another pod's: it is withheld, and does not wait for this one
            _vacate(draft, one)
        else:
            _cool(draft, subject, one)
        subject.tell(draft, EventKind.RELEASED, one.address)
    draft.drop(subject.attachment)
    draft.retire(subject.pool.id, subject.attachment.generation)
    return subject.gone(assigned, held=False)


def _cool(draft: Draft, subject: _Subject, assigned: AssignedAddress) -> None:
    """What a freed address does next: cool, be free, or wait for the end of its quarantine."""
    pool = subject.pool
    own, hard_s = pool.definition.cooldown_s, pool.definition.cooldown_min_s
    soft_s = max(draft.view.settings().cooldown_s if own is None else own, hard_s)
    if soft_s == 0:
        _vacate(draft, assigned)
        return
    now = draft.stamp.log_ms
    draft.put(
        Cooling(
            assigned.space,
            assigned.address,
            pool.id,
            subject.reservation.pod_ref,
            subject.attachment.ifname,
            freed_log_ms=now,
            hard_until_log_ms=now + hard_s * 1000,
            until_log_ms=now + soft_s * 1000,
        )
    )


def _vacate(draft: Draft, assigned: AssignedAddress) -> None:
    if not draft.in_quarantine(assigned.space, assigned.address):
        draft.vacate(assigned.space, assigned.address)
