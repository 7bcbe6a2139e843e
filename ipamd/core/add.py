"""Owns the ADD: a pod's interface gets its addresses in each pool asked for, or nothing changes.

The pod is its pod_ref. Whoever it was before - another container, another node - the addresses stay; only the binding
moves. What a caller may not do is come late: an ADD that started no later than the DEL of its attachment is refused,
and one that started before the binding that is there leaves that binding alone, so that the DEL of the older container
frees nothing of the newer one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ipamd.core.addresses import Address
from ipamd.core.allocate import Choice, Wish, choose
from ipamd.core.asked import Asked, asked_of
from ipamd.core.claim import own_of
from ipamd.core.commands import Add
from ipamd.core.draft import Draft
from ipamd.core.grant import grant_of
from ipamd.core.model import (
    FOREVER,
    OLDEST,
    AssignedAddress,
    Attachment,
    Cursor,
    EventKind,
    Held,
    Owner,
    Pool,
    Reservation,
    Start,
    Strategy,
)
from ipamd.core.outcomes import Code, Grant, Granted, Outcome, Refused
from ipamd.core.requested import Place, check_requested, place_requested
from ipamd.core.takeover import refuse_contested
from ipamd.core.values import Value, replace
from ipamd.core.withheld import put_pool, refuse_doubtful

MAX_POD_UIDS = 8
"""How many pod uids a reservation remembers."""


class _Found(Value):
    """What a pod asks of one pool, and what it has there already."""

    asked: Asked
    reservation: Reservation | None
    attachments: tuple[Attachment, ...]
    mine: Attachment | None
    held: Mapping[int, AssignedAddress]
    """The interface's own addresses by position."""

    spare: tuple[AssignedAddress, ...] = ()
    """Own addresses whose position is served by another one: kept until they are let go, not handed out."""

    was_open: bool = False
    """An import left open whose it is, or which interface; this ADD says it."""

    @property
    def pool(self) -> Pool:
        """The pool that is asked."""
        return self.asked.pool


@dataclass(slots=True)
class _Plan:
    """The addresses of one pool, old and new, by position."""

    found: _Found
    chosen: dict[int, Choice] = field(default_factory=dict)


def add(draft: Draft, command: Add) -> Outcome:
    """Carry out an ADD."""
    founds = _look_in_all(draft, command)
    if isinstance(founds, Refused):
        return founds
    start = _start(draft, command)
    late = _refuse_late(draft, command, start, founds)
    if late is not None:
        return late
    contested = _refuse_contested(draft, command, founds)
    if contested is not None:
        return contested
    plans = _plan(draft, command, founds)
    if isinstance(plans, Refused):
        return plans
    grants = tuple(_write(draft, command, start, plan) for plan in plans)
    return Granted(any(found.reservation is None for found in founds), grants)


def _look_in_all(draft: Draft, command: Add) -> list[_Found] | Refused:
    founds: dict[str, _Found] = {}
    for number, request in enumerate(command.requests):
        asked = asked_of(draft.view, request, command.pod_ref)
        if isinstance(asked, Refused):
            return asked
        name = asked.pool.name
        if name in founds:  # it would get two reservations for one pod
            return Refused(Code.INVALID_REQUEST, f"pool {name} is asked for twice", name)
        if not asked.is_made and draft.view.restored() is not None:
            return _make_withheld(draft, asked, number)
        founds[name] = _look(draft, command, asked if asked.is_made else _make(draft, asked))
    return list(founds.values()) or Refused(Code.INVALID_REQUEST, "no pool is asked for")


def _make(draft: Draft, asked: Asked) -> Asked:
    """Make the pool that an inline request describes: with the addresses, or not at all."""
    pool = replace(asked.pool, id=draft.new_id(), created_ms=draft.stamp.wall_ms)
    put_pool(draft, pool)
    draft.event(EventKind.POOL_CREATED, space=pool.space, pool=pool.name)
    return replace(asked, pool=pool)


def _make_withheld(draft: Draft, asked: Asked, number: int) -> Refused:
    """After a restore nobody knows what a pool has given that the backup does not have: it is made, to be confirmed."""
    draft.only_tell()
    pool = _make(draft, asked).pool
    detail = f"pool {pool.name} is not in the backup that this cluster was restored from: what it gives is withheld"
    return Refused(Code.POOL_EXHAUSTED, detail, pool.name, 0, request=number)


def _look(draft: Draft, command: Add, asked: Asked) -> _Found:
    pool = asked.pool
    own = own_of(draft, command, pool)
    if own.reservation is None:
        return _Found(asked, None, (), None, {})
    held: dict[int, AssignedAddress] = {}
    spare: list[AssignedAddress] = []
    for assigned in own.assigned:
        position = assigned.position
        if position >= len(pool.sets):
            spare.append(assigned)
        elif position not in held:
            held[position] = assigned
        elif _in_set(pool, position, assigned.address) and not _in_set(pool, position, held[position].address):
            spare.append(held[position])
            held[position] = assigned
        else:
            spare.append(assigned)
    return _Found(asked, own.reservation, own.attachments, own.mine, held, tuple(spare), own.was_open)


def _in_set(pool: Pool, position: int, address: Address) -> bool:
    return any(one.subnet.covers(address) for one in pool.sets[position])


def _start(draft: Draft, command: Add) -> Start | None:
    """The start of a CNI call; None for what has none."""
    owner = command.owner
    if owner is not None and owner.node is not None:
        if command.call is not None:
            return draft.start(owner.node, command.call)
        draft.meet_node(owner.node)
    return None


def _refuse_late(draft: Draft, command: Add, start: Start | None, founds: list[_Found]) -> Refused | None:
    owner = command.owner
    if start is not None and owner and owner.node and owner.cni_network and owner.container_id:
        mark = draft.view.tombstone(owner.node, owner.cni_network, owner.container_id, command.ifname)
        if mark is not None and start <= mark.start:
            detail = f"{command.ifname} of container {owner.container_id} was deleted after this ADD had started"
            return Refused(Code.LATE, detail)
    for found in founds:
        if found.reservation and command.pod_uid and command.pod_uid in found.reservation.pod_uids[:-1]:
            detail = f"pod {command.pod_ref} was re-created since: uid {command.pod_uid} is not its newest"
            return Refused(Code.LATE, detail, found.pool.name)
    return None


def _refuse_contested(draft: Draft, command: Add, founds: list[_Found]) -> Refused | None:
    for found in founds:
        if found.mine is not None:
            own = (*found.held.values(), *found.spare)
            refused = refuse_doubtful(draft, command, found.pool, found.mine, own)
            if refused is not None:
                return refused
    if command.owner is None:
        return None
    for found in founds:
        if found.reservation is not None and found.mine is not None:
            refused = refuse_contested(draft, command.owner, found.pool, found.reservation, found.mine)
            if refused is not None:
                return refused
    return None


def _plan(draft: Draft, command: Add, founds: list[_Found]) -> list[_Plan] | Refused:
    placed = place_requested([found.asked for found in founds], [found.held for found in founds], command.addresses)
    if isinstance(placed, Refused):
        return placed
    plans = [_Plan(found) for found in founds]
    # What is asked for by name goes first, or the free choice of an overlapping pool could take it away.
    for by_name in (True, False):
        for number, plan in enumerate(plans):
            for position in range(len(plan.found.pool.sets)):
                if position in plan.found.held or ((number, position) in placed) != by_name:
                    continue
                choice = _choose(draft, command, plans, (number, position), placed.get((number, position)))
                if isinstance(choice, Refused):
                    return choice
                plan.chosen[position] = choice
    return plans


def _choose(draft: Draft, command: Add, plans: list[_Plan], place: Place, wanted: Address | None) -> Choice | Refused:
    number, position = place
    asked = plans[number].found.asked
    pool = asked.pool
    chosen = tuple(
        choice.address for plan in plans if plan.found.pool.space == pool.space for choice in plan.chosen.values()
    )
    wish = Wish(asked, position, command.pod_ref, command.ifname, draft.stamp.log_ms, draft.last_id, chosen)
    if wanted is not None:
        return check_requested(draft.view, wish, wanted)
    choice = choose(draft.view, wish)
    if choice is None:
        detail = f"pool {pool.name} has no free address"
        return Refused(Code.POOL_EXHAUSTED, detail, pool.name, position, request=number)
    return choice


def _write(draft: Draft, command: Add, start: Start | None, plan: _Plan) -> Grant:
    found = plan.found
    reservation = _write_reservation(draft, command, start, found)
    others = _others(draft, reservation, found)
    attachment = _bind(draft, command, start, found, reservation)
    if attachment != found.mine:
        draft.put(attachment)
    addresses = dict(found.held)
    for position, choice in plan.chosen.items():
        addresses[position] = _assign(draft, found.pool, position, choice, attachment)
    held = [Held(one, tuple(draft.view.assigned(one.id))) for one in others]
    own = tuple(sorted((*addresses.values(), *found.spare), key=lambda one: (one.position, one.address)))
    held.append(Held(attachment, own))
    _tell(draft, command, attachment, plan)
    return grant_of(
        command, found.asked, reservation, addresses, tuple(sorted(held, key=lambda one: one.attachment.ifname))
    )


def _write_reservation(draft: Draft, command: Add, start: Start | None, found: _Found) -> Reservation:
    old = found.reservation
    if old is None:
        old = Reservation(draft.new_id(), found.pool.id, command.pod_ref, created_ms=draft.stamp.wall_ms)
    uids = _with_uid(old.pod_uids, command.pod_uid, newest=not _is_overtaken(start, command.owner, found))
    new = replace(old, pod_uids=uids, pinned=old.pinned or command.pin, note=command.note or old.note)
    if new is not found.reservation and new != found.reservation:
        draft.put(new)
    return new


def _with_uid(uids: tuple[str, ...], uid: str | None, *, newest: bool) -> tuple[str, ...]:
    """The uids with one more. One that comes late goes before the newest, or the living pod would count as earlier."""
    if uid is None or uid in uids[-1:]:
        return uids
    return ((*uids, uid) if newest else (*uids[:-1], uid, *uids[-1:]))[-MAX_POD_UIDS:]


def _others(draft: Draft, reservation: Reservation, found: _Found) -> list[Attachment]:
    """The reservation's attachments on other interfaces. A pin keeps those that are held, too."""
    others: list[Attachment] = []
    for one in found.attachments:
        if found.mine is not None and one.id == found.mine.id:
            continue
        kept = replace(one, hold_until_log_ms=FOREVER) if reservation.pinned and one.owner is None else one
        if kept != one:
            draft.put(kept)
        others.append(kept)
    return others


def _bind(draft: Draft, command: Add, start: Start | None, found: _Found, reservation: Reservation) -> Attachment:
    """The attachment as it is after the ADD."""
    mine, owner, now_ms = found.mine, command.owner, draft.stamp.wall_ms
    if owner is None:
        if mine is not None and mine.owner is not None:
            return replace(mine, generation=mine.generation + 1)  # a reservation made ahead finds its pod there
        until = _hold_until(draft, command, reservation)
        if mine is not None:
            return replace(mine, generation=mine.generation + 1, hold_until_log_ms=until)
        return _new(draft, command, reservation, None, until)
    if mine is None:
        return _new(draft, command, reservation, start, None)
    if _started_before(start, owner, mine):
        return replace(mine, generation=mine.generation + 1, bound_index=draft.stamp.log_index)
    since_ms = mine.since_ms if mine.owner is not None else now_ms
    return replace(
        mine,
        owner=owner,
        start=start or OLDEST,
        generation=mine.generation + 1,
        since_ms=since_ms if _same_place(mine.owner, owner) else now_ms,
        hold_until_log_ms=None,
        suspect=False,
        bound_index=draft.stamp.log_index,
    )


def _new(
    draft: Draft, command: Add, reservation: Reservation, start: Start | None, hold_until_log_ms: int | None
) -> Attachment:
    return Attachment(
        draft.new_id(),
        reservation.id,
        reservation.pool_id,
        command.ifname,
        command.owner,
        start or OLDEST,
        draft.view.generation_floor(reservation.pool_id) + 1,
        draft.stamp.wall_ms,
        hold_until_log_ms,
        bound_index=draft.stamp.log_index,
    )


def _started_before(start: Start | None, owner: Owner, mine: Attachment) -> bool:
    """Whether this ADD is older than the binding that is there. Starts compare on one node only."""
    return start is not None and mine.owner is not None and mine.owner.node == owner.node and start < mine.start


def _is_overtaken(start: Start | None, owner: Owner | None, found: _Found) -> bool:
    """Whether an ADD is older than a binding of the same pod, on whatever interface: it is of an earlier pod."""
    return owner is not None and any(_started_before(start, owner, one) for one in found.attachments)


def _same_place(old: Owner | None, new: Owner) -> bool:
    return old is not None and (old.node, old.container_id) == (new.node, new.container_id)


def _hold_until(draft: Draft, command: Add, reservation: Reservation) -> int:
    if reservation.pinned or command.ttl_s is None:
        return FOREVER
    return draft.stamp.log_ms + command.ttl_s * 1000


def _assign(draft: Draft, pool: Pool, position: int, choice: Choice, attachment: Attachment) -> AssignedAddress:
    subnet = pool.sets[position][choice.order].subnet
    assigned = AssignedAddress(pool.space, choice.address, attachment.id, pool.id, position, subnet.prefix)
    if choice.cooling is not None:
        draft.drop(choice.cooling)
    else:
        draft.occupy(pool.space, choice.address)
    draft.put(assigned)
    if pool.definition.strategy is Strategy.ROUND_ROBIN:
        draft.put(Cursor(pool.id, position, choice.order, choice.address))
    return assigned


def _tell(draft: Draft, command: Add, attachment: Attachment, plan: _Plan) -> None:
    """The events: one for each address, of what became of it."""
    found = plan.found
    owner, old = attachment.owner, found.mine.owner if found.mine else None
    node = owner.node if owner else None
    new_kind = EventKind.BOUND if owner else EventKind.HELD
    kind, detail = _change_of_owner(old, owner) if found.mine else (None, "")
    if found.was_open and old and owner and old.container_id == owner.container_id:
        kind, detail = EventKind.CLAIMED, ""
    about = {"space": found.pool.space, "pool": found.pool.name, "pod_ref": command.pod_ref, "ifname": command.ifname}
    if kind is not None:
        for assigned in (*found.held.values(), *found.spare):
            draft.event(kind, **about, address=assigned.address, node=node, detail=detail, begins=False)
    for choice in plan.chosen.values():
        draft.event(new_kind, **about, address=choice.address, node=node, begins=True)


def _change_of_owner(old: Owner | None, new: Owner | None) -> tuple[EventKind | None, str]:
    """What a new binding means to those who follow the events."""
    if new is None or new == old:
        return None, ""
    if old is None:
        return EventKind.BOUND, ""
    if old.node not in (None, new.node):
        return EventKind.MOVED, f"from node {old.node} container {old.container_id}"
    if (old.node, old.container_id) != (new.node, new.container_id):
        return EventKind.REBOUND, f"from container {old.container_id}"
    return None, ""
