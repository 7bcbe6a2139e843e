"""Owns what happens to nodes: a new name, and being forgotten."""

from __future__ import annotations

from ipamd.core.boots import attachments_on
from ipamd.core.commands import ForgetNode, NoteRefused, RenameNode
from ipamd.core.draft import Draft
from ipamd.core.imports import pod_ref_of
from ipamd.core.model import EventKind, Node
from ipamd.core.outcomes import Code, Done, Outcome, Refused
from ipamd.core.values import replace


def rename_node(draft: Draft, command: RenameNode) -> Outcome:
    """Give a node another name: its attachments, boots and tombstones go along, and so do pods named after it."""
    view = draft.view
    node = view.node(command.node)
    if node is None:
        return Refused(Code.NOT_FOUND, f"there is no node {command.node}")
    if view.node(command.to) is not None:
        return Refused(Code.INVALID_REQUEST, f"there is a node {command.to} already")
    moved: dict[int, None] = {}
    for attachment in attachments_on(draft, command.node):
        if attachment.owner is not None:
            draft.put(replace(attachment, owner=replace(attachment.owner, node=command.to)))
            moved[attachment.reservation_id] = None
    refused = _rename_pods(draft, command, list(moved))
    if refused is not None:
        return refused
    for boot in view.boots(command.node):
        draft.drop(boot)
        draft.put(replace(boot, node=command.to))
    for tombstone in view.tombstones_of_node(command.node):
        draft.drop(tombstone)
        draft.put(replace(tombstone, node=command.to))
    draft.drop(node)
    draft.put(replace(node, name=command.to))
    draft.event(EventKind.NODE_RENAMED, node=command.to, detail=f"from {command.node}")
    return Done()


def forget_node(draft: Draft, command: ForgetNode) -> Outcome:
    """Forget a node that has nothing bound; of one whose name two hosts had, forget that while it holds something."""
    view = draft.view
    node = view.node(command.node)
    if node is None:
        return Refused(Code.NOT_FOUND, f"there is no node {command.node}")
    if view.attachments_of_node(command.node, 0, 1):
        if node.clash:
            return _forget_boots(draft, node)
        detail = f"node {command.node} still holds addresses; ipamctl node release {command.node} frees them"
        return Refused(Code.BOUND, detail)
    for boot in view.boots(command.node):
        draft.drop(boot)
    for tombstone in view.tombstones_of_node(command.node):
        draft.drop(tombstone)
    draft.drop(node)
    draft.event(EventKind.NODE_FORGOTTEN, node=command.node)
    return Done()


def _forget_boots(draft: Draft, node: Node) -> Outcome:
    """Whoever calls next under the name is its host: with a boot that counts as its newest, whichever of the two it is.

    What was bound before keeps its addresses, and is suspect until it is seen alive or bound anew.
    """
    for boot in draft.view.boots(node.name):
        draft.drop(boot)
    draft.put_node(
        replace(node, clash=False, reported_log_ms=None, reported_ms=None, lost_log_ms=None, silent_since_ms=None)
    )
    draft.event(EventKind.NODE_FORGOTTEN, node=node.name, detail="its boots, since two hosts had the name")
    return Done()


def _rename_pods(draft: Draft, command: RenameNode, reservation_ids: list[int]) -> Refused | None:
    """Containers without pod data are named after their node (`_/NODE/CONTAINERID`): they get the new name."""
    for reservation_id in reservation_ids:
        reservation = draft.view.reservation_by_id(reservation_id)
        prefix = pod_ref_of(command.node, "")
        if reservation is None or not reservation.pod_ref.startswith(prefix):
            continue
        pod_ref = pod_ref_of(command.to, reservation.pod_ref.removeprefix(prefix))
        if draft.view.reservation(reservation.pool_id, pod_ref) is not None:
            return Refused(Code.INVALID_REQUEST, f"there is a reservation for {pod_ref} already")
        draft.put(replace(reservation, pod_ref=pod_ref))
    return None


def note_refused(draft: Draft, command: NoteRefused) -> Outcome:
    """Tell of a DEL that will never be carried out."""
    draft.event(EventKind.DEL_REFUSED, node=command.node, detail=command.detail)
    return Done()
