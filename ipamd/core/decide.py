"""Owns the table from command to decision. A decision is a pure function of the view, the command and the stamp."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ipamd.core import (
    admin,
    claim,
    confirming,
    levels,
    living,
    lost,
    members,
    nodes,
    pools,
    release,
    reports,
    staging,
    tokens,
)
from ipamd.core.add import add
from ipamd.core.boots import suspect_older
from ipamd.core.changes import Change
from ipamd.core.commands import (
    Add,
    AddMember,
    BindMember,
    ChangeSettings,
    Claim,
    ClaimLiving,
    Command,
    ConfirmPool,
    ConfirmSilence,
    CreatePool,
    Del,
    DropPool,
    DropToken,
    Expire,
    FindNodes,
    FinishImport,
    ForgetNode,
    Found,
    LiftQuarantine,
    LoseNodes,
    Note,
    NoteRefused,
    NoteUses,
    Origin,
    PromoteMember,
    PutToken,
    Reclaim,
    Release,
    RemoveMember,
    RenameNode,
    ReplacePool,
    Report,
    SetQuarantine,
    StageImport,
    TakeDigest,
)
from ipamd.core.draft import Draft
from ipamd.core.entries import Stamp
from ipamd.core.outcomes import Done, Outcome, Refused
from ipamd.core.ports import View
from ipamd.core.values import Value

EXPIRE_LIMIT = 256
"""How many of each kind one entry ends at most: an entry's work stays bounded, the rest comes with the next."""

EXPIRE_PARTS = 8
"""The same for parts of imports that nobody finished: each is as large as an entry."""

SYSTEM = Origin("system", "expiry")
"""Who asks for what time brings about."""


class Decision(Value):
    """What a command answers and what it wants written, in order.

    Refused: nothing, but for what was found out on the way and is told (a contested takeover), and a higher level.
    """

    outcome: Outcome
    changes: tuple[Change, ...]
    last_id: int
    last_event: int


_DECIDERS: Mapping[type[Command], Callable[[Draft, Any], Outcome]] = {
    Add: add,
    Del: release.delete,
    Release: release.release,
    Reclaim: release.reclaim,
    CreatePool: pools.create_pool,
    ReplacePool: pools.replace_pool,
    DropPool: pools.drop_pool,
    SetQuarantine: admin.set_quarantine,
    LiftQuarantine: admin.lift_quarantine,
    Note: admin.note,
    RenameNode: nodes.rename_node,
    ForgetNode: nodes.forget_node,
    ChangeSettings: admin.change_settings,
    PutToken: tokens.put_token,
    DropToken: tokens.drop_token,
    NoteUses: tokens.note_uses,
    Found: admin.found,
    AddMember: members.add_member,
    PromoteMember: members.promote_member,
    RemoveMember: members.remove_member,
    BindMember: members.bind_member,
    StageImport: staging.stage,
    FinishImport: staging.finish,
    Claim: claim.claim,
    NoteRefused: nodes.note_refused,
    TakeDigest: lambda _draft, _command: Done(),  # the state machine looks at what is behind it
    Report: reports.report,
    LoseNodes: lost.lose_nodes,
    FindNodes: lost.find_nodes,
    ConfirmSilence: lost.confirm_silence,
    ConfirmPool: confirming.confirm_pool,
    ClaimLiving: living.claim_living,
    Expire: lambda _draft, _command: Done(),  # what is due ends before the first command of every entry
}


def decide(view: View, command: Command, stamp: Stamp) -> Decision:
    """What a command does to the state that a view shows."""
    draft = Draft(view, stamp, command.origin)
    outcome, raised = _DECIDERS[type(command)](draft, command), levels.raised(view, command)
    if isinstance(outcome, Refused) and not draft.stands:
        return Decision(outcome, raised, view.last_id, view.last_event)
    suspect_older(draft)
    return Decision(outcome, (*draft.changes, *raised), draft.last_id, draft.last_event)


def expire(view: View, stamp: Stamp, limit: int = EXPIRE_LIMIT) -> Decision:
    """End up to `limit` holds, cooldowns, quarantines and tombstones, and few parts of imports, that are due."""
    draft, now = Draft(view, stamp, SYSTEM), stamp.log_ms
    for quarantine in view.due_quarantines(now, limit):  # first: what else ends may wait for this alone
        admin.end_quarantine(draft, quarantine, "ended")
    release.free(draft, view.due_holds(now, limit), "hold ended")
    for cooling in view.due_cooling(now, limit):
        draft.drop(cooling)
        if not draft.in_quarantine(cooling.space, cooling.address):
            draft.vacate(cooling.space, cooling.address)
    for tombstone in view.due_tombstones(now, limit):
        draft.drop(tombstone)
    for part in view.due_parts(now, min(limit, EXPIRE_PARTS)):
        draft.drop(part)
    return Decision(Done(), tuple(draft.changes), draft.last_id, draft.last_event)
