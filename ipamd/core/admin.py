"""Owns the small commands of operators: quarantine, settings, notes, and the founding of the cluster."""

from __future__ import annotations

from ipamd.core.commands import ChangeSettings, Found, LiftQuarantine, Note, SetQuarantine
from ipamd.core.draft import Draft
from ipamd.core.model import Cluster, EventKind, Quarantine, Settings
from ipamd.core.outcomes import Code, Done, Outcome, Quarantined, Refused, SettingsStored
from ipamd.core.tokens import born
from ipamd.core.values import replace

_SETTINGS = Settings.__struct_fields__


def set_quarantine(draft: Draft, command: SetQuarantine) -> Outcome:
    """Take an address out of use. Who holds it keeps it until it lets go; what cools goes on cooling meanwhile."""
    view, space, address = draft.view, command.space, command.address
    pools = view.pools_of_space(space)
    if not any(one.subnet.covers(address) for pool in pools for ranges in pool.sets for one in ranges):
        return Refused(Code.NOT_FOUND, f"no pool of space {space} has {address} in its subnets")
    now = draft.stamp
    until = None if command.for_s is None else now.log_ms + command.for_s * 1000
    new = Quarantine(space, address, until, command.note, now.wall_ms, draft.origin.by)
    there = (view.holder(space, address), view.cooling(space, address), view.quarantine(space, address))
    if not any(there):
        draft.occupy(space, address)
    draft.put(new)
    draft.event(EventKind.QUARANTINED, space=space, address=address, detail=command.note)
    return Quarantined(new)


def lift_quarantine(draft: Draft, command: LiftQuarantine) -> Outcome:
    """Put an address back into use."""
    old = draft.view.quarantine(command.space, command.address)
    if old is None:
        return Refused(Code.NOT_FOUND, f"{command.address} of space {command.space} is not in quarantine")
    end_quarantine(draft, old, "lifted")
    return Done()


def end_quarantine(draft: Draft, old: Quarantine, detail: str) -> None:
    """Drop a quarantine; the address is free unless somebody holds it still, or it cools."""
    draft.lift(old)
    if not (draft.view.holder(old.space, old.address) or draft.view.cooling(old.space, old.address)):
        draft.vacate(old.space, old.address)
    draft.event(EventKind.UNQUARANTINED, space=old.space, address=old.address, detail=detail)


def change_settings(draft: Draft, command: ChangeSettings) -> Outcome:
    """Change the settings that are given."""
    old = draft.view.settings()
    given = {name: value for name in _SETTINGS if (value := getattr(command, name)) is not None}
    new = replace(old, **given)
    if new != old:
        draft.put(new)
        changed = (f"{name} {value}" for name, value in given.items() if value != getattr(old, name))
        draft.event(EventKind.SETTINGS_CHANGED, detail=", ".join(changed))
    return SettingsStored(new)


def note(draft: Draft, command: Note) -> Outcome:
    """Put a note among the events."""
    pool = None if command.pool is None else draft.view.pool(command.pool)
    if command.pool is not None and pool is None:
        return Refused(Code.POOL_NOT_FOUND, f"there is no pool {command.pool}", command.pool)
    if command.node is not None and draft.view.node(command.node) is None:
        return Refused(Code.NOT_FOUND, f"there is no node {command.node}")
    space = None if pool is None else pool.space
    draft.event(EventKind.NOTE, space=space, pool=command.pool, node=command.node, detail=command.text)
    return Done()


def found(draft: Draft, command: Found) -> Outcome:
    """Found the cluster, once. Later tries change nothing: the first one in the log counts."""
    view = draft.view
    if view.cluster_id() is not None and (view.members() or view.restored() is None):
        return Done()
    if view.cluster_id() is None:  # a restored state has its id and settings, and wants its first member
        draft.put(Cluster(command.cluster_id, draft.stamp.wall_ms))
        draft.put(command.settings)
    for member in command.members:
        draft.put(member)
    if command.token is not None and draft.view.token_of_digest(command.token.digest) is None:
        draft.put(born(draft, command.token, command.token_ttl_s))
    return Done()
