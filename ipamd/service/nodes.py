"""Owns the use cases of nodes: listing them, giving back what one holds, renaming and forgetting."""

from __future__ import annotations

from typing import NamedTuple

from ipamd.core.commands import ForgetNode, RenameNode
from ipamd.core.model import Attachment, Boot, Node
from ipamd.core.outcomes import Done, LetGo
from ipamd.core.ports import NodeRow, Snapshot
from ipamd.errors import ApiError
from ipamd.service.collection import Collection, attachments_of_node
from ipamd.service.ports import Facts
from ipamd.service.proposer import Proposer
from ipamd.service.reader import Reader
from ipamd.service.request import At, Page, Request, page_of


class NodeAttachment(NamedTuple):
    """An attachment bound on a node, with whose it is."""

    pool: str
    pod_ref: str
    attachment: Attachment
    addresses: tuple[str, ...]


class ShownNode(NamedTuple):
    """A node with its boots and all that is bound on it."""

    node: Node
    boots: tuple[Boot, ...]
    attachments: tuple[NodeAttachment, ...]


class NodesPage(NamedTuple):
    """Part of the list of nodes, and how many interfaces of the whole cluster are bound on none that is known."""

    page: Page[NodeRow]
    unclaimed: int


class Nodes:
    """The use cases of nodes."""

    def __init__(self, proposer: Proposer, reader: Reader, collection: Collection, facts: Facts) -> None:
        self._proposer, self._reader, self._collection, self._facts = proposer, reader, collection, facts

    async def page(self, after: str, limit: int, request: Request) -> At[NodesPage]:
        """Up to `limit` nodes with names above `after`, by name. Raises Unavailable."""

        def look(snapshot: Snapshot) -> NodesPage:
            return NodesPage(page_of(list(snapshot.nodes(after, limit + 1)), limit), snapshot.unclaimed_count())

        return await self._reader.read(look, request)

    async def get(self, name: str, request: Request) -> At[ShownNode]:
        """One node. Raises ApiError, Unavailable."""
        return await self._reader.read(lambda snapshot: _shown(snapshot, name), request)

    async def release(self, name: str, request: Request) -> At[tuple[LetGo, ...]]:
        """Free all that is bound on a node; nothing is no error, an unknown name is. Raises ApiError, Unavailable."""
        await self.get(name, request)
        return await self._collection.release_node(name, request)

    async def release_unclaimed(self, request: Request) -> At[tuple[LetGo, ...]]:
        """Free what an import brought and no node has claimed. Raises ApiError, Unavailable."""
        return await self._collection.release_unclaimed(request)

    async def rename(self, name: str, to: str, request: Request) -> At[Done]:
        """Give a node another name, with all that it holds. Raises ApiError, Unavailable.

        The node of this host may be one that no call has named yet: then only its name here changes.
        """
        try:
            done = await self._proposer.carry_out(RenameNode(request.origin, name, to), request, Done)
        except ApiError as error:
            if error.row.code != "not_found" or not self._facts.is_own(name):
                raise
            done = await self._reader.read(lambda snapshot: _free_name(snapshot, to), request)
        self._facts.follow(name, to)
        return done

    async def forget(self, name: str, request: Request) -> At[Done]:
        """Forget a node that holds nothing. Raises ApiError, Unavailable."""
        return await self._proposer.carry_out(ForgetNode(request.origin, name), request, Done)


def _free_name(snapshot: Snapshot, name: str) -> Done:
    if snapshot.node(name) is not None:
        raise ApiError("invalid_request", f"there is a node {name} already")
    return Done()


def _shown(snapshot: Snapshot, name: str) -> ShownNode:
    node = snapshot.node(name)
    if node is None:
        raise ApiError("not_found", f"there is no node {name}")
    attachments = tuple(_told(snapshot, one) for one in attachments_of_node(snapshot, name))
    return ShownNode(node, tuple(snapshot.boots(name)), attachments)


def _told(snapshot: Snapshot, attachment: Attachment) -> NodeAttachment:
    pool = snapshot.pool_by_id(attachment.pool_id)
    reservation = snapshot.reservation_by_id(attachment.reservation_id)
    if pool is None or reservation is None:  # the schema's foreign keys see to both
        raise LookupError(f"attachment {attachment.id} has no pool or no reservation")
    addresses = tuple(f"{one.address}/{one.prefix}" for one in snapshot.assigned(attachment.id))
    return NodeAttachment(pool.name, reservation.pod_ref, attachment, addresses)
