"""Owns what happens to nodes: a new name, and being forgotten."""

from __future__ import annotations

from collections.abc import Iterator

from ipamd.core.commands import ForgetNode, RenameNode
from ipamd.core.draft import Draft
from ipamd.core.imports import pod_ref_of
from ipamd.core.model import Attachment, EventKind
from ipamd.core.outcomes import Code, Done, Outcome, Refused
from ipamd.core.values import replace

_PAGE = 500


def rename_node(draft: Draft, command: RenameNode) -> Outcome:
    """Give a node another name: its attachments, boots and tombstones go along, and so do pods named after it."""
    view = draft.view
    node = view.node(command.node)
    if node is None:
        return Refused(Code.NOT_FOUND, f"there is no node {command.node}")
    if view.node(command.to) is not None:
        return Refused(Code.INVALID_REQUEST, f"there is a node {command.to} already")
    moved: dict[int, None] = {}
    for attachment in _bound_on(draft, command.node):
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
    """Forget a node that has nothing bound."""
    view = draft.view
    node = view.node(command.node)
    if node is None:
        return Refused(Code.NOT_FOUND, f"there is no node {command.node}")
    if view.attachments_of_node(command.node, 0, 1):
        detail = f"node {command.node} still holds addresses; ipamctl node release {command.node} frees them"
        return Refused(Code.BOUND, detail)
    for boot in view.boots(command.node):
        draft.drop(boot)
    for tombstone in view.tombstones_of_node(command.node):
        draft.drop(tombstone)
    draft.drop(node)
    draft.event(EventKind.NODE_FORGOTTEN, node=command.node)
    return Done()


def _bound_on(draft: Draft, node: str) -> Iterator[Attachment]:
    after = 0
    while page := draft.view.attachments_of_node(node, after, _PAGE):
        yield from page
        after = page[-1].id


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
