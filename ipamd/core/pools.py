"""Owns making, changing and deleting pools: nobody who holds an address loses it because a definition changed."""

from __future__ import annotations

from collections.abc import Iterable

from ipamd.core.addresses import Address
from ipamd.core.commands import CreatePool, DropPool, ReplacePool
from ipamd.core.draft import Draft
from ipamd.core.intervals import Spans, intersect, normalise, subtract
from ipamd.core.model import AssignedAddress, EventKind, Pool, PoolDefinition, Settings
from ipamd.core.outcomes import Code, Outcome, PoolDropped, PoolStored, Refused, Stranded
from ipamd.core.ports import View
from ipamd.core.release import free
from ipamd.core.values import replace
from ipamd.core.withheld import put_pool, widen

MAX_STRANDED = 10_000
"""How many stranded holders an answer lists at most; an entry of the log and its outcome stay bounded."""


def create_pool(draft: Draft, command: CreatePool) -> Outcome:
    """Make a pool; an equal one under the name is no error."""
    definition, settings = command.definition, draft.view.settings()
    old = draft.view.pool(definition.name)
    if old is not None:
        asked = replace(definition, inline=old.definition.inline)  # who made it makes no other pool of it
        if resolved(old.definition, settings) == resolved(asked, settings):
            return stored(old, settings, created=False)
        detail = f"a different pool {definition.name} exists; ipamctl pool show {definition.name} shows it"
        return Refused(Code.POOL_EXISTS, detail, definition.name)
    clash = _overlap(draft.view, definition, None)
    if clash is not None:
        return clash
    pool = Pool(draft.new_id(), definition, draft.stamp.wall_ms)
    put_pool(draft, pool)
    draft.event(EventKind.POOL_CREATED, space=pool.space, pool=pool.name)
    return stored(pool, settings, created=True)


def replace_pool(draft: Draft, command: ReplacePool) -> Outcome:
    """Replace a definition. Holders outside the new ranges keep what they have; nobody else gets it."""
    definition, settings = command.definition, draft.view.settings()
    old = draft.view.pool(definition.name)
    if old is None:
        return Refused(Code.POOL_NOT_FOUND, f"there is no pool {definition.name}", definition.name)
    if old.space != definition.space:
        detail = f"pool {old.name} is in space {old.space}; a pool does not change its space"
        return Refused(Code.INVALID_REQUEST, detail, old.name)
    new = replace(old, definition=replace(definition, inline=old.definition.inline))
    clash = _overlap(draft.view, new.definition, old.definition)
    if clash is not None:
        return clash
    stranded, outside = _settle(draft, old, new)
    if outside and not command.force:
        detail = f"{outside} addresses of pool {new.name} lie outside every new subnet; force leaves them stranded"
        return Refused(Code.POOL_IN_USE, detail, new.name, stranded=stranded)
    if new != old:
        _forget_cursors(draft, old, new)
        draft.put(new)
        widen(draft, old, new)
        draft.event(EventKind.POOL_UPDATED, space=new.space, pool=new.name)
    return stored(new, settings, created=False, stranded=stranded)


def drop_pool(draft: Draft, command: DropPool) -> Outcome:
    """Delete a pool; by force with all that its pods hold."""
    view = draft.view
    pool = view.pool(command.name)
    if pool is None:
        return Refused(Code.POOL_NOT_FOUND, f"there is no pool {command.name}", command.name)
    stranded = _list_holders(draft, view.assigned_of_pool(pool.id))
    if stranded and not command.force:
        others = len({one.pod_ref for one in stranded}) - 1
        who = stranded[0].pod_ref + (f" and {others} other pod{'s' * (others > 1)}" if others else "")
        detail = f"pool {pool.name} is in use by {who}; force frees its addresses"
        return Refused(Code.POOL_IN_USE, detail, pool.name, stranded=stranded)
    free(draft, list(view.attachments_of_pool(pool.id)), "pool deleted")
    draft.drop(pool)
    draft.event(EventKind.POOL_DELETED, space=pool.space, pool=pool.name)
    return PoolDropped(stranded)


def resolved(definition: PoolDefinition, settings: Settings) -> PoolDefinition:
    """A definition with what it leaves open filled in from the settings."""
    cooldown_s = settings.cooldown_s if definition.cooldown_s is None else definition.cooldown_s
    return replace(definition, cooldown_s=cooldown_s, reclaim=definition.reclaim or settings.reclaim)


def stored(pool: Pool, settings: Settings, *, created: bool, stranded: tuple[Stranded, ...] = ()) -> PoolStored:
    """The outcome that tells a pool as it is."""
    full = resolved(pool.definition, settings)
    return PoolStored(created, pool, full.cooldown_s or 0, full.reclaim or settings.reclaim, stranded)


def usable_of(definition: PoolDefinition, family: int) -> Spans:
    """All addresses of a family that a pool may hand out."""
    ranges = [one for ranges in definition.sets for one in ranges if one.family == family]
    return normalise(span for one in ranges for span in one.usable)


def _overlap(view: View, definition: PoolDefinition, old: PoolDefinition | None) -> Refused | None:
    """The refusal of a definition that meets another pool. What `old` had met already, an inline pool, is no reason."""
    if definition.allow_overlap or definition.inline:
        return None
    for other in view.pools_of_space(definition.space):
        if other.name == definition.name:
            continue
        for family in (4, 6):
            had = usable_of(old, family) if old and not old.allow_overlap else ()
            common = intersect(subtract(usable_of(definition, family), had), usable_of(other.definition, family))
            if common:
                first, last = Address(family, common[0].first), Address(family, common[0].last)
                detail = (
                    f"pool {definition.name} overlaps pool {other.name} in {first}-{last}; allow_overlap permits it"
                )
                return Refused(Code.POOL_OVERLAPS, detail, definition.name)
    return None


def _settle(draft: Draft, old: Pool, new: Pool) -> tuple[tuple[Stranded, ...], int]:
    """Fit the held addresses into the new sets. Who is stranded, and how many lie outside every new subnet."""
    if old.sets == new.sets:
        return _list_holders(draft, (one for one in draft.view.assigned_of_pool(old.id) if not _gives(new, one))), 0
    outside = 0
    stranded: list[AssignedAddress] = []
    for assigned in draft.view.assigned_of_pool(old.id):
        place = place_in(new, assigned.address)
        if place is None:
            outside += 1
        elif place != (assigned.position, assigned.prefix):
            draft.put(replace(assigned, position=place[0], prefix=place[1]))
        if not _gives(new, assigned) and len(stranded) < MAX_STRANDED:
            stranded.append(assigned)
    return _list_holders(draft, stranded), outside


def _gives(pool: Pool, assigned: AssignedAddress) -> bool:
    return any(one.gives(assigned.address) for ranges in pool.sets for one in ranges)


def place_in(pool: Pool, address: Address) -> tuple[int, int] | None:
    """Position and prefix length of the set whose subnet an address lies in; one that gives it comes first."""
    around: tuple[int, int] | None = None
    for position, ranges in enumerate(pool.sets):
        for one in ranges:
            if one.subnet.covers(address):
                if one.gives(address):
                    return position, one.subnet.prefix
                around = around or (position, one.subnet.prefix)
    return around


def _forget_cursors(draft: Draft, old: Pool, new: Pool) -> None:
    """A cursor names a range by its number, which says nothing any more once the ranges change."""
    if old.sets == new.sets:
        return
    for position in range(len(old.sets)):
        cursor = draft.view.cursor(old.id, position)
        if cursor is not None:
            draft.drop(cursor)


def _list_holders(draft: Draft, holders: Iterable[AssignedAddress]) -> tuple[Stranded, ...]:
    listed: list[Stranded] = []
    for assigned in holders:
        if len(listed) == MAX_STRANDED:
            break
        attachment = draft.view.attachment_by_id(assigned.attachment_id)
        reservation = draft.view.reservation_by_id(attachment.reservation_id) if attachment else None
        if attachment is None or reservation is None:
            raise LookupError(f"{assigned.address} in space {assigned.space} is held by nobody")
        listed.append(Stranded(reservation.pod_ref, attachment.ifname, assigned.address))
    return tuple(listed)
