"""Owns what a node's report of its own attachments changes.

Unknown means keep. An attachment is freed when two reports, `evidence_grace_s` apart, both say that its namespace is
gone, none between them says otherwise, it was bound before the first one looked, and it is bound still as it was then.
"""

from __future__ import annotations

from collections.abc import Iterable

from ipamd.core.commands import CallStart, Report, Seen
from ipamd.core.draft import Draft
from ipamd.core.filling import Filling
from ipamd.core.model import Attachment, Node, Sighting
from ipamd.core.outcomes import Code, Outcome, Refused, Released
from ipamd.core.release import let_go
from ipamd.core.values import replace


def report(draft: Draft, command: Report) -> Outcome:
    """Carry out a report: what it frees; `stale`: it counts for nothing."""
    if command.index >= draft.stamp.log_index:
        detail = f"the report looked at log index {command.index}, which this cluster has not reached"
        return Refused(Code.INVALID_REQUEST, detail)
    host = _meet(draft, command)
    if host.clash:
        return Released((), stale=True)
    gone: list[Attachment] = []
    filling = Filling(draft, command.node)
    for seen in _each_once(command.seen):
        attachment = draft.view.attachment_by_id(seen.attachment_id)
        if attachment is None or not _is_meant(attachment, seen, command):
            continue
        if command.boot_id is None and seen.alive is not True:
            continue
        if _is_twice_gone(draft, attachment, seen, command):
            gone.append(attachment)
        else:
            _note(draft, attachment, seen, filling)
    grace_s = draft.view.settings().evidence_grace_s
    detail = f"two reports of node {command.node}, {grace_s} s apart or more, found its namespace gone"
    return Released(let_go(draft, gone, detail))


def _meet(draft: Draft, command: Report) -> Node:
    """The node, with what its report says of itself."""
    if command.boot_id is None:
        return draft.meet_node(command.node)
    draft.start(command.node, CallStart(command.boot_id, 0))
    host = draft.meet_node(command.node)
    if host.clash:
        return host
    now = draft.stamp
    return draft.put_node(
        replace(
            host,
            reported_log_ms=now.log_ms,
            reported_ms=now.wall_ms,
            spooled=command.spooled,
            conflicts=command.conflicts,
        )
    )


WEIGHT = {True: 0, None: 1, False: 2}
"""Of several sightings of one binding: life counts first, then doubt."""


def _each_once(seen: Iterable[Seen]) -> Iterable[Seen]:
    """One for each binding, by WEIGHT where several disagree."""
    chosen: dict[tuple[int, int], Seen] = {}
    for one in sorted(seen, key=lambda one: WEIGHT[one.alive]):
        chosen.setdefault((one.attachment_id, one.generation), one)
    return chosen.values()


def _is_meant(attachment: Attachment, seen: Seen, command: Report) -> bool:
    """Whether an attachment is bound as it was seen, on this node (an import may not know where), before the look."""
    owner = attachment.owner
    return (
        owner is not None
        and owner.node in (None, command.node)
        and attachment.generation == seen.generation
        and attachment.bound_index <= command.index
    )


def current(sighting: Sighting | None, attachment: Attachment) -> Sighting | None:
    """A sighting, if it is of the attachment as it is bound now."""
    return sighting if sighting is not None and sighting.generation == attachment.generation else None


def _is_twice_gone(draft: Draft, attachment: Attachment, seen: Seen, command: Report) -> bool:
    old = current(draft.view.sighting(attachment.id), attachment)
    if seen.alive is not False or old is None or old.gone_log_ms is None:
        return False
    waited_ms = draft.stamp.log_ms - old.gone_log_ms
    return waited_ms >= draft.view.settings().evidence_grace_s * 1000 and command.index >= old.gone_index


def _note(draft: Draft, attachment: Attachment, seen: Seen, filling: Filling) -> None:
    """Keep what was seen, and what an import did not know."""
    old = current(draft.view.sighting(attachment.id), attachment)
    new = Sighting(attachment.id, attachment.generation, seen.alive)
    if seen.alive is False:
        first = (draft.stamp.log_ms, draft.stamp.log_index)
        if old is not None and old.gone_log_ms is not None:
            first = (old.gone_log_ms, old.gone_index)
        new = replace(new, gone_log_ms=first[0], gone_index=first[1])
    elif seen.alive and old is not None:
        new = replace(new, contested=old.contested)
    if new != old:
        draft.put(new)
    known = replace(attachment, suspect=attachment.suspect and seen.alive is not True)
    known = filling.fill(known, seen.ifname, seen.cni_network)
    if known != attachment:
        draft.put(known)
