"""Owns the refusal of a takeover: a pod whose namespace a reporting node still sees alive is not bound elsewhere."""

from __future__ import annotations

from ipamd.core.draft import Draft
from ipamd.core.model import Attachment, EventKind, Owner, Pool, Reservation, Sighting
from ipamd.core.outcomes import Code, Refused
from ipamd.core.ports import View
from ipamd.core.reports import current
from ipamd.core.values import replace

FRESH_MS = 90_000
"""A report that is older says nothing of what lives now."""


def refuse_contested(
    draft: Draft, owner: Owner, pool: Pool, reservation: Reservation, mine: Attachment
) -> Refused | None:
    """Refuse to bind an attachment on another node than the one that has it alive; that is told once a binding."""
    if mine.owner is None or mine.owner.node in (None, owner.node):
        return None
    if not _is_alive(draft.view, mine, mine.owner, draft.stamp.log_ms):
        return None
    _tell(draft, owner, pool, reservation, mine)
    detail = (
        f"pod {reservation.pod_ref} is alive on node {mine.owner.node} (container {mine.owner.container_id}), which"
        f" reports; node {owner.node or 'none'} gets it once that one is deleted there, or after: ipamctl reservation"
        f" release {pool.name} {reservation.pod_ref} --force"
    )
    return Refused(Code.CONTESTED, detail, pool.name)


def _is_alive(view: View, mine: Attachment, owner: Owner, now_log_ms: int) -> bool:
    """Whether the node reports and saw it alive.

    Until its next report, what was bound with a namespace that was seen at the ADD counts as seen alive.
    """
    node = view.node(owner.node) if owner.node is not None else None
    if node is None or node.clash or node.reported_log_ms is None or now_log_ms - node.reported_log_ms > FRESH_MS:
        return False
    sighting = current(view.sighting(mine.id), mine)
    return owner.netns_inode is not None if sighting is None else sighting.alive is True


def _tell(draft: Draft, owner: Owner, pool: Pool, reservation: Reservation, mine: Attachment) -> None:
    old = current(draft.view.sighting(mine.id), mine) or Sighting(mine.id, mine.generation, alive=True)
    if old.contested or mine.owner is None:
        return
    draft.only_tell()
    draft.put(replace(old, contested=True))
    for one in draft.view.assigned(mine.id):
        draft.event(
            EventKind.CONTESTED,
            space=pool.space,
            pool=pool.name,
            pod_ref=reservation.pod_ref,
            ifname=mine.ifname,
            address=one.address,
            node=owner.node,
            detail=f"alive on node {mine.owner.node} container {mine.owner.container_id},"
            f" wanted by container {owner.container_id}",
        )
