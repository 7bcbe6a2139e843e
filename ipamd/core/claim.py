"""Owns claiming what an import left open: the first call that names the container says which pod, node and interface.

An ADD adopts an open interface of its own pod, or what the import knew by the container alone; that one may even lie
in the inline pool of another subnet, where the import had no configuration to go by: it then comes along. A CHECK or
a report only fills in.
"""

from __future__ import annotations

from collections.abc import Sequence

from ipamd.core.commands import Add, Claim
from ipamd.core.draft import Draft
from ipamd.core.filling import Filling
from ipamd.core.imports import is_named_after, is_open_ifname, matches
from ipamd.core.model import OLDEST, AssignedAddress, Attachment, Owner, Pool, Reservation
from ipamd.core.outcomes import Done, Outcome
from ipamd.core.pools import place_in
from ipamd.core.values import Value, replace


class Own(Value):
    """What a pod has in a pool when its ADD comes; `mine` is the attachment of the ADD's interface."""

    reservation: Reservation | None = None
    attachments: tuple[Attachment, ...] = ()
    mine: Attachment | None = None
    assigned: tuple[AssignedAddress, ...] = ()
    was_open: bool = False


def own_of(draft: Draft, command: Add, pool: Pool) -> Own:
    """What the pod of an ADD has in a pool; what is open and its own becomes its own here."""
    view, owner = draft.view, command.owner
    reservation = view.reservation(pool.id, command.pod_ref)
    attachments = tuple(view.attachments(reservation.id)) if reservation else ()
    mine = next((one for one in attachments if one.ifname == command.ifname), None)
    there = Own(reservation, attachments, mine, tuple(view.assigned(mine.id)) if mine else ())
    if mine is not None or owner is None or owner.container_id is None:
        return there
    found = _open_of_pod(attachments, owner) or _open_of_container(draft, command, owner, pool)
    return there if found is None else _adopt(draft, command, pool, there, found)


def claim(draft: Draft, command: Claim) -> Outcome:
    """Fill in what is open of bindings that somebody saw."""
    filling = Filling(draft, command.node)
    for binding in dict.fromkeys(command.bindings):
        old = draft.view.attachment_by_id(binding.attachment_id)
        if old is None or old.owner is None or old.generation != binding.generation:
            continue
        if matches(old.owner, command.node, command.cni_network):
            new = filling.fill(old, command.ifname, command.cni_network)
            if new != old:
                draft.put(new)
    return Done()


def _open_of_pod(attachments: Sequence[Attachment], owner: Owner) -> Attachment | None:
    """An open interface of the pod, of this container if there is one."""
    opened = [one for one in attachments if is_open_ifname(one.ifname)]
    own = [one for one in opened if one.owner is not None and one.owner.container_id == owner.container_id]
    return next(iter(own or opened), None)


def _open_of_container(draft: Draft, command: Add, owner: Owner, pool: Pool) -> Attachment | None:
    """What an import knew by the container alone: in this pool, or in an inline one that it took for it."""
    if owner.container_id is None or owner.node is None:
        return None
    there = draft.view.attachments_of_container(owner.container_id, command.ifname)
    found = [
        one
        for one in there
        if one.start == OLDEST
        and matches(one.owner, owner.node, owner.cni_network)
        and _is_nobodys(draft, one, owner.container_id)
        and (one.pool_id == pool.id or _may_come_along(draft, one, pool))
    ]
    return min(found, key=lambda one: (one.pool_id != pool.id, is_open_ifname(one.ifname), one.id), default=None)


def _is_nobodys(draft: Draft, attachment: Attachment, container_id: str) -> bool:
    reservation = draft.view.reservation_by_id(attachment.reservation_id)
    return reservation is not None and is_named_after(reservation.pod_ref, container_id)


def _may_come_along(draft: Draft, attachment: Attachment, pool: Pool) -> bool:
    old = draft.view.pool_by_id(attachment.pool_id)
    if old is None or old.space != pool.space or not old.definition.inline:
        return False
    return all(place_in(pool, one.address) is not None for one in draft.view.assigned(attachment.id))


def _adopt(draft: Draft, command: Add, pool: Pool, there: Own, found: Attachment) -> Own:
    """Make an open attachment the pod's own, under its reservation in the pool."""
    reservation = there.reservation
    if reservation is not None and found.reservation_id == reservation.id:
        new, others = reservation, tuple(one for one in there.attachments if one.id != found.id)
    else:
        new, others = _join(draft, command, pool, there, found)
    mine = _moved(draft, found, new, command.ifname)
    draft.put(mine)
    return Own(new, (*others, mine), mine, _bring_along(draft, found, pool), was_open=True)


def _join(
    draft: Draft, command: Add, pool: Pool, there: Own, found: Attachment
) -> tuple[Reservation, tuple[Attachment, ...]]:
    """The reservation that an attachment of another one comes to, and whom it meets there. An empty one goes."""
    old = draft.view.reservation_by_id(found.reservation_id)
    if old is None:
        raise LookupError(f"attachment {found.id} has no reservation")
    siblings = tuple(one for one in draft.view.attachments(old.id) if one.id != found.id)
    if there.reservation is not None:
        if not siblings:
            draft.drop(old)
        return there.reservation, there.attachments
    if found.pool_id == pool.id or not siblings:  # the whole of it is this container's
        new, others = replace(old, pool_id=pool.id, pod_ref=command.pod_ref), siblings
    else:
        new, others = Reservation(draft.new_id(), pool.id, command.pod_ref, created_ms=old.created_ms), ()
    draft.put(new)
    return new, others


def _moved(draft: Draft, found: Attachment, to: Reservation, ifname: str) -> Attachment:
    generation = found.generation
    if found.pool_id != to.pool_id:
        draft.retire(found.pool_id, generation)
        generation = max(generation, draft.view.generation_floor(to.pool_id))
    return replace(found, reservation_id=to.id, pool_id=to.pool_id, ifname=ifname, generation=generation)


def _bring_along(draft: Draft, found: Attachment, pool: Pool) -> tuple[AssignedAddress, ...]:
    """The addresses of an attachment, as those of a pool."""
    assigned = tuple(draft.view.assigned(found.id))
    if found.pool_id == pool.id:
        return assigned
    moved = tuple(_placed(one, pool) for one in assigned)
    for one in moved:
        draft.put(one)
    return tuple(sorted(moved, key=lambda one: (one.position, one.address)))


def _placed(assigned: AssignedAddress, pool: Pool) -> AssignedAddress:
    position, prefix = place_in(pool, assigned.address) or (0, assigned.prefix)
    return replace(assigned, pool_id=pool.id, position=position, prefix=prefix)
