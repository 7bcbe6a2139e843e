"""Owns the JSON of nodes."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from ipamd.api.schema.common import Given, Items, LetGoShown, Shown, maybe_when, when
from ipamd.api.schema.reservations import read_address
from ipamd.core.addresses import Address
from ipamd.core.imports import known_ifname
from ipamd.core.inventory import Inventory, Listed
from ipamd.core.model import MassSilence, Node
from ipamd.core.ports import NodeRow
from ipamd.errors import ApiError
from ipamd.service.nodes import Conflict, NodeAttachment, ShownNode

MAX_LISTED = 10_000
"""More lines than any host has interfaces."""

_Name = Annotated[str, msgspec.Meta(max_length=256)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**31)]


class RenameBody(Given):
    """The new name of a node."""

    to: str


class ReleaseNodeQuery(Given):
    """`only=suspect`: what was bound before the node's newest boot and not seen since."""

    only: Literal["suspect"] | None = None


class ListedBody(Given):
    """An interface of a container that was looked at. `alive` null: it cannot be told."""

    container_id: _Name
    ifname: _Name
    alive: bool | None
    cni_network: _Name | None = None
    pod_ref: Annotated[str, msgspec.Meta(max_length=512)] | None = None
    addresses: Annotated[tuple[str, ...], msgspec.Meta(max_length=64)] = ()
    pool: _Name | None = None
    netns: Annotated[str, msgspec.Meta(max_length=4096)] | None = None
    netns_inode: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None


class InventoryBody(Given):
    """What was found on a node; what is bound there and not listed counts as `alive: null`.

    `index`: the Ipamd-Index seen before looking. `boot_id` null: somebody else than the node itself says so.
    """

    boot_id: _Name | None
    index: Annotated[int, msgspec.Meta(ge=0, le=2**62)]
    attachments: Annotated[tuple[ListedBody, ...], msgspec.Meta(max_length=MAX_LISTED)]
    cluster_id: str | None = None
    spooled: _Count = 0


class ConflictShown(Shown):
    """An address that a living container there still uses, and who has it now; null: nobody yet."""

    pool: str | None
    pod_ref: str | None
    ifname: str | None
    address: str


class ReportedShown(Shown):
    """The answer to an inventory."""

    conflicts: tuple[ConflictShown, ...]


class NodeShown(Shown):
    """A host that runs pods. `boots`: how many of it are known, `bound`: how many interfaces.

    `state`: `alive`, `lost`, `clash` (two hosts have the name), or `unknown`, where it never reported.
    """

    name: str
    state: str
    since: str
    boots: int
    bound: int
    reported: str | None
    silent_since: str | None
    silent_s: int | None
    spooled: int
    conflicts: int


class SilenceShown(Shown):
    """Many nodes fell silent at once: nothing of lost nodes is reclaimed until that is confirmed."""

    since: str


class NodesShown(Shown):
    """The list of nodes, and the mass silence that stands.

    `unclaimed`: how many interfaces an import brought that no node has claimed yet.
    """

    items: tuple[NodeShown, ...]
    mass_silence: SilenceShown | None
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
    netns_inode: int | None
    state: str
    alive: bool | None
    generation: int
    since: str
    addresses: tuple[str, ...]


class NodeDetailShown(Shown):
    """A node with its boots and all that is bound on it; `state` as in the list. `cluster_id`: who says so.

    `restored`: the cluster was restored from a backup, and wants to hear of what it does not know.
    """

    name: str
    state: str
    since: str
    bound: int
    reported: str | None
    silent_since: str | None
    silent_s: int | None
    spooled: int
    conflicts: int
    cluster_id: str | None
    restored: bool
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


def read_inventory(node: str, body: InventoryBody) -> Inventory:
    """An inventory as it was sent. Raises ApiError for an address that is none."""
    listed = tuple(
        Listed(
            one.cni_network,
            one.container_id,
            one.ifname,
            one.alive,
            one.pod_ref,
            tuple(map(_address, one.addresses)),
            one.pool,
            one.netns,
            one.netns_inode,
        )
        for one in body.attachments
    )
    return Inventory(node, body.boot_id, body.index, listed, body.spooled)


def _address(text: str) -> Address:
    """An address, with or without the length of its prefix."""
    address, _, prefix = text.partition("/")
    if prefix and not (prefix.isascii() and prefix.isdigit()):
        raise ApiError("invalid_request", f"attachments: {text!r} is not an address")
    return read_address(address, "attachments")


def show_conflict(one: Conflict) -> ConflictShown:
    """A conflict."""
    return ConflictShown(pool=one.pool, pod_ref=one.pod_ref, ifname=one.ifname, address=one.address)


def show_silence(silence: MassSilence | None) -> SilenceShown | None:
    """A mass silence, if one stands."""
    return None if silence is None else SilenceShown(since=when(silence.since_ms))


def _silent_s(node: Node, now_ms: int) -> int | None:
    return None if node.silent_since_ms is None else max(0, now_ms - node.silent_since_ms) // 1000


def show(row: NodeRow, now_ms: int) -> NodeShown:
    """A node in a list."""
    node = row.node
    return NodeShown(
        name=node.name,
        state=node.state,
        since=when(node.since_ms),
        boots=len(row.boots),
        bound=row.bound,
        reported=maybe_when(node.reported_ms),
        silent_since=maybe_when(node.silent_since_ms),
        silent_s=_silent_s(node, now_ms),
        spooled=node.spooled,
        conflicts=node.conflicts,
    )


def show_list(items: Items[NodeShown], silence: MassSilence | None, unclaimed: int) -> NodesShown:
    """A part of the list."""
    return NodesShown(items=items.items, mass_silence=show_silence(silence), next=items.next, unclaimed=unclaimed)


def show_detail(shown: ShownNode, now_ms: int) -> NodeDetailShown:
    """One node."""
    node = shown.node
    return NodeDetailShown(
        name=node.name,
        state=node.state,
        since=when(node.since_ms),
        bound=len(shown.attachments),
        reported=maybe_when(node.reported_ms),
        silent_since=maybe_when(node.silent_since_ms),
        silent_s=_silent_s(node, now_ms),
        spooled=node.spooled,
        conflicts=node.conflicts,
        cluster_id=shown.cluster_id,
        restored=shown.restored,
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
        netns_inode=owner.netns_inode if owner else None,
        alive=one.sighting.alive if one.sighting else None,
        state=attachment.state.value,
        generation=attachment.generation,
        since=when(attachment.since_ms),
        addresses=one.addresses,
    )
