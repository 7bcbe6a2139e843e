"""Owns what happens to nodes: a new name, and being forgotten."""

from __future__ import annotations

from ipamd.core.boots import attachments_on
from ipamd.core.commands import ForgetNode, NoteRefused, RenameNode
from ipamd.core.draft import Draft
from ipamd.core.imports import pod_ref_of
from ipamd.core.model import EventKind, Node
from ipamd.core.outcomes import Code, Done, Outcome, Refused
from ipamd.core.tokens import move_tokens, revoke_tokens
from ipamd.core.values import replace
from ipamd.core.withheld import end_disputes_of, move_disputes


def rename_node(draft: Draft, command: RenameNode) -> Outcome:
    """Give a node another name: its attachments, boots, marks and tokens go along, and so do pods named after it."""
    view = draft.view
    node = view.node(command.node)
    if node is None:
        return Refused(Code.NOT_FOUND, f"there is no node {command.node}")
    if view.node(command.to) is not None:
        return Refused(Code.INVALID_REQUEST, f"there is a node {command.to} already")
    if node.clash:
        detail = (
            f"two hosts have the name {node.name}, and nobody can tell whose pods would go along: give one of them"
            f" another --node-name and an empty data or spool directory, then: ipamctl node forget {node.name}"
        )
        return Refused(Code.INVALID_REQUEST, detail)
    for attachment in attachments_on(draft, command.node):
        if attachment.owner is not None:
            draft.put(replace(attachment, owner=replace(attachment.owner, node=command.to)))
    refused = _rename_pods(draft, command)
    if refused is not None:
        return refused
    for boot in view.boots(command.node):
        draft.drop(boot)
        draft.put(replace(boot, node=command.to))
    for tombstone in view.tombstones_of_node(command.node):
        draft.drop(tombstone)
        draft.put(replace(tombstone, node=command.to))
    move_tokens(draft, command.node, command.to)
    move_disputes(draft, command.node, command.to)
    draft.drop(node)
    draft.put(replace(node, name=command.to))
    draft.event(EventKind.NODE_RENAMED, node=command.to, detail=f"from {command.node}")
    return Done()


def forget_node(draft: Draft, command: ForgetNode) -> Outcome:
    """Forget a node that has nothing bound; of one whose name two hosts had, forget that while it holds something."""
    view = draft.view
    node = view.node(command.node)
    if node is None:
        if revoke_tokens(draft, command.node):  # it has fetched its token, and was not heard since
            return Done()
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
    end_disputes_of(draft, command.node)
    revoke_tokens(draft, command.node)
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


def _rename_pods(draft: Draft, command: RenameNode) -> Refused | None:
    """Containers without pod data are named after their node (`_/NODE/CONTAINERID`): they get the new name.

    So do those that are gone: what is held for them, or cools, is theirs when they start again.
    """
    view, prefix = draft.view, pod_ref_of(command.node, "")
    for reservation in view.reservations_named(prefix):
        pod_ref = pod_ref_of(command.to, reservation.pod_ref.removeprefix(prefix))
        if view.reservation(reservation.pool_id, pod_ref) is not None:
            return Refused(Code.INVALID_REQUEST, f"there is a reservation for {pod_ref} already")
        draft.put(replace(reservation, pod_ref=pod_ref))
    for cooling in view.cooling_named(prefix):
        draft.put(replace(cooling, pod_ref=pod_ref_of(command.to, cooling.pod_ref.removeprefix(prefix))))
    return None


def note_refused(draft: Draft, command: NoteRefused) -> Outcome:
    """Tell of a DEL that will never be carried out."""
    draft.event(EventKind.DEL_REFUSED, node=command.node, detail=command.detail)
    return Done()
