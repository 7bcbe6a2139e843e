"""Owns the use cases of nodes: listing them, giving back what one holds, renaming, forgetting, and what they report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ipamd.core.addresses import Address
from ipamd.core.commands import ClaimLiving, ConfirmSilence, ForgetNode, RenameNode, Report, Seen
from ipamd.core.imports import is_open_ifname, known_ifname
from ipamd.core.inventory import Inventory, Listed, seen_of, strangers
from ipamd.core.living import Claims, claims_of
from ipamd.core.model import Attachment, Boot, Held, MassSilence, Node, Sighting
from ipamd.core.outcomes import Done, LetGo, Released
from ipamd.core.ports import Log, NodeRow, ReservationFilter, ReservationRow, Snapshot, Unavailable
from ipamd.core.reports import current
from ipamd.errors import ApiError
from ipamd.service.collection import Collection, attachments_of_node
from ipamd.service.heartbeats import Heartbeats
from ipamd.service.ports import Facts, Peers
from ipamd.service.proposer import Proposer
from ipamd.service.reader import Reader
from ipamd.service.request import At, Page, Request, page_of

CHUNK = 250
"""Bindings in one report's entry: what it frees is bounded by that."""

REFRESH_MS = 45_000
"""A report that says nothing new is an entry all the same after so long: takeovers ask how fresh the last one is."""


class NodeAttachment(NamedTuple):
    """An attachment bound on a node, with whose it is, and what its node saw of it last."""

    pool: str
    pod_ref: str
    attachment: Attachment
    addresses: tuple[str, ...]
    sighting: Sighting | None = None


class ShownNode(NamedTuple):
    """A node with its boots and all that is bound on it. `cluster_id`: the cluster that says so."""

    node: Node
    boots: tuple[Boot, ...]
    attachments: tuple[NodeAttachment, ...]
    cluster_id: str | None = None
    restored: bool = False


class NodesPage(NamedTuple):
    """Part of the list of nodes, the mass silence that stands, and how many interfaces no known node has."""

    page: Page[NodeRow]
    silence: MassSilence | None
    unclaimed: int


class Conflict(NamedTuple):
    """An address that a living container of a node still uses, and who has it now.

    `pod_ref` None: nobody yet; `ifname` None: nobody, or an interface that an import left open.
    """

    pool: str | None
    pod_ref: str | None
    ifname: str | None
    address: str


class _Taken(NamedTuple):
    """An inventory against the state: what is new, whether the node has to be heard in the log, who is in conflict."""

    seen: Sequence[Seen]
    is_due: bool
    conflicts: tuple[Conflict, ...]
    claims: Claims


class Nodes:
    """The use cases of nodes."""

    def __init__(
        self,
        proposer: Proposer,
        reader: Reader,
        collection: Collection,
        facts: Facts,
        *,
        log: Log,
        peers: Peers,
        heartbeats: Heartbeats,
    ) -> None:
        self._proposer, self._reader, self._collection, self._facts = proposer, reader, collection, facts
        self._log, self._peers, self._heartbeats = log, peers, heartbeats

    async def page(self, after: str, limit: int, request: Request) -> At[NodesPage]:
        """Up to `limit` nodes with names above `after`, by name. Raises Unavailable."""
        return await self._reader.read(lambda snapshot: _page(snapshot, after, limit), request)

    async def get(self, name: str, request: Request) -> At[ShownNode]:
        """One node. Raises ApiError, Unavailable."""
        return await self._reader.read(lambda snapshot: _shown(snapshot, name), request)

    async def release(self, name: str, request: Request, *, suspect: bool = False) -> At[tuple[LetGo, ...]]:
        """Free all that is bound on a node, or all that is suspect; nothing is no error, an unknown name is.

        Raises ApiError, Unavailable.
        """
        await self.get(name, request)
        return await self._collection.release_node(name, request, suspect=suspect)

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
        """Forget a node that holds nothing, or that two hosts had its name. Raises ApiError, Unavailable."""
        return await self._proposer.carry_out(ForgetNode(request.origin, name), request, Done)

    async def confirm(self, request: Request) -> At[Done]:
        """Confirm a mass silence: nodes that are lost are lost. Raises ApiError, Unavailable."""
        return await self._proposer.carry_out(ConfirmSilence(request.origin), request, Done)

    async def heartbeat(self, name: str, request: Request) -> int:
        """A node was heard: tell the member that leads, which alone counts. The index here. Raises Unavailable."""
        status = self._log.status()
        if status.is_leader:
            self._heartbeats.note(name)
            return status.applied
        members = self._reader.glance(lambda snapshot: snapshot.members()).value
        leader = next((member for member in members if member.name == status.leader), None)
        if leader is None:
            raise Unavailable("there is no leader at the moment", "none")
        await self._peers.heartbeat(leader, name, max(0.0, request.deadline_s - self._reader.now_s()))
        return status.applied

    async def report(self, inventory: Inventory, cluster_id: str | None, request: Request) -> At[tuple[Conflict, ...]]:
        """Take in what was found on a node; who lost addresses meanwhile that are in use there still.

        What is known already makes no entry. Nothing is kept under an idempotency key: the same report again does
        nothing again. Raises ApiError, Unavailable.
        """
        request = replace(request, key=None)
        if inventory.boot_id is not None:
            await self.heartbeat(inventory.node, request)
        now_log_ms = self._log.status().log_ms
        found = await self._reader.read(lambda snapshot: _take(snapshot, inventory, cluster_id, now_log_ms), request)
        if not found.value.claims.is_empty:
            await self._claim(inventory.node, found.value.claims, request)
            found = await self._reader.read(
                lambda snapshot: _take(snapshot, inventory, cluster_id, now_log_ms), request
            )
        seen, is_due, conflicts, _ = found.value
        index = found.index
        for number, chunk in enumerate(_chunks(seen)):
            if chunk or (number == 0 and is_due):
                command = Report(
                    request.origin,
                    inventory.node,
                    inventory.boot_id,
                    inventory.index,
                    chunk,
                    inventory.spooled,
                    len(conflicts),
                )
                index = (await self._proposer.carry_out(command, request, Released)).index
        return At(index, conflicts)

    async def _claim(self, node: str, claims: Claims, request: Request) -> None:
        """After a restore: record what the pods of a node have, before anything is judged by it."""
        for part in claims.parts(CHUNK):
            command = ClaimLiving(request.origin, node, part.living, part.settled)
            await self._proposer.carry_out(command, request, Done)


def _chunks(seen: Sequence[Seen]) -> Iterator[tuple[Seen, ...]]:
    for at in range(0, max(1, len(seen)), CHUNK):
        yield tuple(seen[at : at + CHUNK])


def _take(snapshot: Snapshot, inventory: Inventory, cluster_id: str | None, now_log_ms: int) -> _Taken:
    own = snapshot.cluster_id()
    if cluster_id is not None and cluster_id != own:
        raise ApiError("other_cluster", f"this is cluster {own}, the report is for cluster {cluster_id}")
    if inventory.index > snapshot.applied_index:
        detail = f"the report looked at log index {inventory.index}, which this cluster has not reached"
        raise ApiError("invalid_request", detail)
    conflicts = tuple(_conflicts(snapshot, strangers(snapshot, inventory)))
    is_due = _is_due(snapshot, inventory, len(conflicts), now_log_ms)
    claims = claims_of(snapshot, inventory)
    return _Taken(seen_of(snapshot, inventory, now_log_ms), is_due, conflicts, claims)


def _is_due(snapshot: Snapshot, inventory: Inventory, conflicts: int, now_log_ms: int) -> bool:
    """Whether the log has to hear of a node although none of its bindings is new."""
    if inventory.boot_id is None:
        return False
    node = snapshot.node(inventory.node)
    if node is None or node.reported_log_ms is None or node.lost_log_ms is not None:
        return True
    boot = snapshot.boot(node.name, inventory.boot_id)
    if boot is None or (boot.order < node.newest_boot and not node.clash):
        return True
    if node.clash:
        return False
    restored = snapshot.restored()
    if restored is not None and node.reported_log_ms <= restored.log_ms:
        return True
    if (node.spooled, node.conflicts) != (inventory.spooled, conflicts):
        return True
    holds = bool(snapshot.attachments_of_node(node.name, 0, 1))
    return holds and now_log_ms - node.reported_log_ms >= REFRESH_MS


def _conflicts(snapshot: Snapshot, lines: Sequence[Listed]) -> Iterator[Conflict]:
    """Who has what living containers still use. What nobody has yet is a conflict too: it may be given any moment."""
    for line in lines:
        for address in line.addresses:
            rows = snapshot.reservations(ReservationFilter(address=address), None, CHUNK)
            holders = [(row, held.attachment) for row in rows for held in row.held if _has(held, address)]
            if not holders:
                yield Conflict(None, None, None, str(address))
            for row, attachment in holders:
                if not _is_their_own(row, attachment, line):
                    yield Conflict(
                        row.pool.name, row.reservation.pod_ref, known_ifname(attachment.ifname), str(address)
                    )


def _has(held: Held, address: Address) -> bool:
    return any(one.address == address for one in held.addresses)


def _is_their_own(row: ReservationRow, attachment: Attachment, line: Listed) -> bool:
    """Whether an address is held for the very pod that uses it."""
    is_its = attachment.ifname == line.ifname or is_open_ifname(attachment.ifname)
    return attachment.owner is None and row.reservation.pod_ref == line.pod_ref and is_its


def _page(snapshot: Snapshot, after: str, limit: int) -> NodesPage:
    silence = snapshot.mass_silence()
    page = page_of(list(snapshot.nodes(after, limit + 1)), limit)
    stands = silence is not None and silence.stands
    return NodesPage(page, silence if stands else None, snapshot.unclaimed_count())


def _free_name(snapshot: Snapshot, name: str) -> Done:
    if snapshot.node(name) is not None:
        raise ApiError("invalid_request", f"there is a node {name} already")
    return Done()


def _shown(snapshot: Snapshot, name: str) -> ShownNode:
    node = snapshot.node(name)
    if node is None:
        raise ApiError("not_found", f"there is no node {name}")
    attachments = tuple(_told(snapshot, one) for one in attachments_of_node(snapshot, name))
    is_restored = snapshot.restored() is not None
    return ShownNode(node, tuple(snapshot.boots(name)), attachments, snapshot.cluster_id(), is_restored)


def _told(snapshot: Snapshot, attachment: Attachment) -> NodeAttachment:
    pool = snapshot.pool_by_id(attachment.pool_id)
    reservation = snapshot.reservation_by_id(attachment.reservation_id)
    if pool is None or reservation is None:  # the schema's foreign keys see to both
        raise LookupError(f"attachment {attachment.id} has no pool or no reservation")
    addresses = tuple(f"{one.address}/{one.prefix}" for one in snapshot.assigned(attachment.id))
    sighting = current(snapshot.sighting(attachment.id), attachment)
    return NodeAttachment(pool.name, reservation.pod_ref, attachment, addresses, sighting)
