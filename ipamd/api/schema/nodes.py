"""Owns the JSON of nodes."""

from __future__ import annotations

from ipamd.api.schema.common import Given, Items, LetGoShown, Shown, when
from ipamd.core.imports import known_ifname
from ipamd.core.ports import NodeRow
from ipamd.service.nodes import NodeAttachment, ShownNode


class RenameBody(Given):
    """The new name of a node."""

    to: str


class NodeShown(Shown):
    """A host that runs pods: since when it is known, how many boots of it are, and how much is bound on it."""

    name: str
    since: str
    boots: int
    bound: int


class NodesShown(Shown):
    """The list of nodes. `unclaimed`: how many interfaces an import brought that no node has claimed yet."""

    items: tuple[NodeShown, ...]
    next: str | None
    unclaimed: int


class BootShown(Shown):
    """A boot of a node, in the order first seen."""

    boot_id: str
    order: int
    since: str


class NodeAttachmentShown(Shown):
    """An interface that is bound on a node."""

    pool: str
    pod_ref: str
    ifname: str | None
    cni_network: str | None
    container_id: str | None
    netns: str | None
    state: str
    generation: int
    since: str
    addresses: tuple[str, ...]


class NodeDetailShown(Shown):
    """A node with its boots and all that is bound on it."""

    name: str
    since: str
    bound: int
    boots: tuple[BootShown, ...]
    attachments: tuple[NodeAttachmentShown, ...]


class NodeReleasedShown(Shown):
    """What a node held and has let go; `released` counts the interfaces. `node` null: what no node had claimed."""

    node: str | None
    released: int
    items: tuple[LetGoShown, ...]


class RenamedShown(Shown):
    """The node's name from now on."""

    name: str


def show(row: NodeRow) -> NodeShown:
    """A node in a list."""
    return NodeShown(name=row.node.name, since=when(row.node.since_ms), boots=len(row.boots), bound=row.bound)


def show_list(items: Items[NodeShown], unclaimed: int) -> NodesShown:
    """A part of the list."""
    return NodesShown(items=items.items, next=items.next, unclaimed=unclaimed)


def show_detail(shown: ShownNode) -> NodeDetailShown:
    """One node."""
    return NodeDetailShown(
        name=shown.node.name,
        since=when(shown.node.since_ms),
        bound=len(shown.attachments),
        boots=tuple(BootShown(boot_id=one.boot_id, order=one.order, since=when(one.since_ms)) for one in shown.boots),
        attachments=tuple(_attachment(one) for one in shown.attachments),
    )


def _attachment(one: NodeAttachment) -> NodeAttachmentShown:
    attachment, owner = one.attachment, one.attachment.owner
    return NodeAttachmentShown(
        pool=one.pool,
        pod_ref=one.pod_ref,
        ifname=known_ifname(attachment.ifname),
        cni_network=owner.cni_network if owner else None,
        container_id=owner.container_id if owner else None,
        netns=owner.netns if owner else None,
        state=attachment.state.value,
        generation=attachment.generation,
        since=when(attachment.since_ms),
        addresses=one.addresses,
    )
