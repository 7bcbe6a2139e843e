"""Owns lost nodes: who counts as lost and as back, when many at once are rather the network's fault, what is reclaimed.

The leader counts heartbeats in its memory and proposes; what the log knows itself is checked here once more, so that
nothing of a node that gave a sign of life in between is ever freed.
"""

from __future__ import annotations

from ipamd.core.commands import ConfirmSilence, FindNodes, LoseNodes
from ipamd.core.draft import Draft
from ipamd.core.model import Attachment, EventKind, MassSilence, Node, Pool, Settings
from ipamd.core.outcomes import Code, Done, Outcome, Refused
from ipamd.core.ports import View
from ipamd.core.values import replace

MASS_NODES = 2
"""More than so many nodes that hold addresses, and ..."""

MASS_SHARE = 4
"""... more than one in so many of them: mass silence."""


def lose_nodes(draft: Draft, command: LoseNodes) -> Outcome:
    """Count those of the nodes as lost that the log has not heard of for long enough either.

    Without any it only tells who is silent by now: maybe so many that those who were lost before are not reclaimed.
    """
    lost = [node for silent in command.silent if (node := draft.view.node(silent.node)) and _may_be_lost(draft, node)]
    since_ms = {silent.node: silent.since_ms for silent in command.silent}
    for node in lost:
        draft.put_node(replace(node, lost_log_ms=draft.stamp.log_ms, silent_since_ms=since_ms[node.name]))
        draft.event(EventKind.NODE_LOST, node=node.name)
    _look_for_mass_silence(draft, {node.name for node in lost}, set(command.doubtful))
    return Done()


def find_nodes(draft: Draft, command: FindNodes) -> Outcome:
    """Lost nodes are back."""
    for name in command.nodes:
        if draft.view.node(name) is not None:
            draft.hear_node(name)
    return Done()


def confirm_silence(draft: Draft, _command: ConfirmSilence) -> Outcome:
    """End a mass silence: those who are lost by now are lost."""
    silence = draft.view.mass_silence()
    if silence is None or not silence.stands:
        return Refused(Code.NOT_FOUND, "there is no mass silence to confirm")
    draft.put(MassSilence(stands=False, since_log_ms=draft.stamp.log_ms, since_ms=draft.stamp.wall_ms))
    draft.event(EventKind.MASS_SILENCE_CONFIRMED)
    return Done()


def is_reclaimable(view: View, attachment: Attachment, now_log_ms: int) -> bool:
    """Whether an attachment may be freed because its node is lost: `reclaim` says so, and its time has passed."""
    owner = attachment.owner
    node = view.node(owner.node) if owner is not None and owner.node is not None else None
    pool = view.pool_by_id(attachment.pool_id)
    if node is None or pool is None or node.lost_log_ms is None or node.clash or is_silenced(view):
        return False
    after_s = reclaim_after_s(pool, view.settings())
    return after_s is not None and now_log_ms - node.lost_log_ms >= after_s * 1000


def reclaim_after_s(pool: Pool, settings: Settings) -> int | None:
    """How long after its node was lost an address of a pool is freed; None: never."""
    kind, _, seconds = (pool.definition.reclaim or settings.reclaim).partition(":")
    return int(seconds) if kind == "after" else None


def is_silenced(view: View) -> bool:
    """Whether a mass silence stands."""
    silence = view.mass_silence()
    return silence is not None and silence.stands


def _may_be_lost(draft: Draft, node: Node) -> bool:
    """Whether a node reports, is not lost yet, and gave no sign of life that the log knows within `node_lost_s`."""
    if node.reported_log_ms is None or node.lost_log_ms is not None or node.clash:
        return False
    heard_log_ms = max(node.reported_log_ms, node.back_log_ms)
    return draft.stamp.log_ms - heard_log_ms >= draft.view.settings().node_lost_s * 1000


def _look_for_mass_silence(draft: Draft, lost: set[str], doubtful: set[str]) -> None:
    silence = draft.view.mass_silence()
    if silence is not None and silence.stands:
        return
    since_log_ms = draft.stamp.log_ms - draft.view.settings().node_lost_s * 1000
    if silence is not None:
        since_log_ms = max(since_log_ms, silence.since_log_ms)
    holders = [node for node in draft.view.known_nodes() if node.reported_log_ms is not None and _holds(draft, node)]
    fallen = [
        node
        for node in holders
        if node.name in lost or (node.lost_log_ms is not None and node.lost_log_ms > since_log_ms)
    ]
    falling = [node for node in holders if node.lost_log_ms is None and node.name in doubtful - lost]
    silent = [*fallen, *falling]
    if fallen and len(silent) > MASS_NODES and len(silent) * MASS_SHARE > len(holders):
        draft.put(MassSilence(stands=True, since_log_ms=draft.stamp.log_ms, since_ms=draft.stamp.wall_ms))
        draft.event(
            EventKind.MASS_SILENCE,
            detail=f"{len(silent)} of the {len(holders)} nodes that hold addresses fell silent:"
            " nothing is reclaimed until ipamctl node confirm",
        )


def _holds(draft: Draft, node: Node) -> bool:
    return bool(draft.view.attachments_of_node(node.name, 0, 1))
