"""Owns the end of a restore: an operator confirms a pool, and what was withheld in it may be given again."""

from __future__ import annotations

from ipamd.core.commands import ConfirmPool
from ipamd.core.draft import Draft
from ipamd.core.model import EventKind, Pool
from ipamd.core.outcomes import Code, Confirmed, Outcome, Refused
from ipamd.core.ports import View
from ipamd.core.restored import Disputed, Unconfirmed
from ipamd.core.withheld import end_dispute, silent_since

MAX_NAMED = 1_000
"""How many nodes, pools and conflicts an answer names at most."""


def confirm_pool(draft: Draft, command: ConfirmPool) -> Outcome:
    """Confirm a pool; one that is confirmed is no error. What is in conflict has to be settled first, or `force`d."""
    view = draft.view
    pool = view.pool(command.pool)
    if pool is None:
        return Refused(Code.POOL_NOT_FOUND, f"there is no pool {command.pool}", command.pool)
    found = findings(view, pool)
    if not found.changed:
        return found
    if found.disputed and not command.force:
        return Refused(Code.IN_CONFLICT, _unsettled(pool, found), pool.name)
    for one in found.disputed:
        end_dispute(draft, one, "confirmed")
    draft.drop(Unconfirmed(pool.id))
    draft.event(EventKind.POOL_CONFIRMED, space=pool.space, pool=pool.name)
    if not found.left:
        _end(draft, found)
    return found


def findings(view: View, pool: Pool) -> Confirmed:
    """What an operator has to know before a pool is confirmed, and what confirming it does."""
    restored = view.restored()
    if restored is None or not view.is_unconfirmed(pool.id):
        return Confirmed(pool.name, changed=False)
    left = tuple(one.name for one in view.unconfirmed() if one.id != pool.id)
    disputed = tuple(one for one in view.disputes() if _is_of(one, pool))
    silent = silent_since(view, restored)
    return Confirmed(pool.name, True, silent[:MAX_NAMED], disputed[:MAX_NAMED], left[:MAX_NAMED])


def _end(draft: Draft, found: Confirmed) -> None:
    """The last pool is confirmed: the restore is over."""
    restored = draft.view.restored()
    if restored is None:
        return
    for one in draft.view.disputes():
        if one not in found.disputed:
            end_dispute(draft, one, "confirmed")
    draft.drop(restored)


def _is_of(disputed: Disputed, pool: Pool) -> bool:
    covered = (one.subnet.covers(disputed.address) for inner in pool.sets for one in inner)
    return disputed.space == pool.space and any(covered)


def _unsettled(pool: Pool, found: Confirmed) -> str:
    first = found.disputed[0]
    others = len(found.disputed) - 1
    more = f" and {others} other{'s' * (others > 1)}" if others else ""
    return (
        f"pool {pool.name} has addresses that two pods use: {first.address} (by {first.pod_ref} on node {first.node})"
        f"{more}; delete one pod of each two, or confirm by force: the record stands then"
    )
