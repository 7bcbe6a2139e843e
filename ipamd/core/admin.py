"""Owns the small commands of operators: quarantine, settings, tokens, and the founding of the cluster."""

from __future__ import annotations

from ipamd.core.commands import ChangeSettings, DropToken, Found, LiftQuarantine, PutToken, SetQuarantine
from ipamd.core.draft import Draft
from ipamd.core.model import Cluster, EventKind, Quarantine, Settings
from ipamd.core.outcomes import Code, Done, Outcome, Quarantined, Refused, SettingsStored
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
        draft.event(EventKind.SETTINGS_CHANGED)
    return SettingsStored(new)


def put_token(draft: Draft, command: PutToken) -> Outcome:
    """Keep a token's digest."""
    token = command.token
    draft.put(token)
    draft.event(EventKind.TOKEN_CREATED, node=token.node, detail=f"{token.id} {token.role} {token.name}")
    return Done()


def drop_token(draft: Draft, command: DropToken) -> Outcome:
    """Revoke a token."""
    token = draft.view.token(command.token_id)
    if token is None:
        return Refused(Code.NOT_FOUND, f"there is no token {command.token_id}")
    draft.drop(token)
    draft.event(EventKind.TOKEN_REVOKED, node=token.node, detail=f"{token.id} {token.role} {token.name}")
    return Done()


def found(draft: Draft, command: Found) -> Outcome:
    """Found the cluster, once. Later tries change nothing: the first one in the log counts."""
    if draft.view.cluster_id() is not None:
        return Done()
    draft.put(Cluster(command.cluster_id, draft.stamp.wall_ms))
    draft.put(command.settings)
    for member in command.members:
        draft.put(member)
    if command.token is not None:
        draft.put(command.token)
    return Done()
