"""Owns what becomes of the state of a backup when a new cluster begins with it.

It gets a new identity and no members: the first to start with it is the only one. What was free is withheld, what
cooled too; what was seen of pods, and which commands were answered how, is of another time.
"""

from __future__ import annotations

from ipamd.core.commands import Origin
from ipamd.core.decide import Decision
from ipamd.core.draft import Draft
from ipamd.core.entries import Stamp
from ipamd.core.invariants import Records
from ipamd.core.model import Cluster, Cooling, EventKind, Pool, Sighting
from ipamd.core.outcomes import Done
from ipamd.core.ports import View
from ipamd.core.restored import Restored, Unconfirmed
from ipamd.core.values import Value, replace

RESTORE = Origin("system", "restore")
"""Who asks for what a restore changes."""


class Backup(Value):
    """Where a backup stands in its log, and the identity that the cluster which begins with it gets."""

    index: int
    log_ms: int
    wall_ms: int
    cluster_id: str
    """The new one."""

    now_ms: int
    """The wall clock at the restore."""


def restore(view: View, records: Records, backup: Backup) -> Decision:
    """What a restore writes, in order; both show the same state. Raises LookupError: it was never a cluster's."""
    old = view.cluster()
    if old is None:
        raise LookupError("the state is of no cluster: none was founded")
    wall_ms = max(backup.wall_ms, backup.now_ms)
    draft = Draft(view, Stamp(backup.log_ms, wall_ms, backup.index), RESTORE)
    _begin_anew(draft, old, backup)
    _withhold(draft, records)
    for seen in records.all(Sighting):  # who was seen alive was so before the backup
        draft.put(Sighting(seen.attachment_id, seen.generation, None))
    detail = f"epoch {old.epoch + 1}, from log index {backup.index} of cluster {old.id}"
    draft.event(EventKind.RESTORED, detail=detail)
    return Decision(Done(), tuple(draft.changes), draft.last_id, draft.last_event)


def _begin_anew(draft: Draft, old: Cluster, backup: Backup) -> None:
    view = draft.view
    draft.put(replace(old, id=backup.cluster_id, founded_ms=backup.now_ms, epoch=old.epoch + 1))
    for member in view.members():
        draft.drop(member)
    for disputed in view.disputes():
        draft.drop(disputed)
    draft.put(Restored(backup.index, backup.log_ms, backup.now_ms, backup.wall_ms, old.id))


def _withhold(draft: Draft, records: Records) -> None:
    for cooling in records.all(Cooling):
        draft.drop(cooling)
        if not draft.in_quarantine(cooling.space, cooling.address):
            draft.vacate(cooling.space, cooling.address)
    for pool in records.all(Pool):
        draft.put(Unconfirmed(pool.id))
