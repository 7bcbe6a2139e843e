"""Owns freeing in bulk what nobody uses any more: CNI's GC, and the release of a whole node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ipamd.core import values
from ipamd.core.commands import Binding, CallStart, Reclaim, ReclaimCause
from ipamd.core.imports import is_open_ifname
from ipamd.core.model import Attachment, Owner
from ipamd.core.outcomes import LetGo, Released
from ipamd.core.ports import Snapshot
from ipamd.service.ports import Namespaces
from ipamd.service.proposer import Proposer
from ipamd.service.reader import Reader
from ipamd.service.request import At, Request

CHUNK = 500
"""Bindings in one command: a few dozen KiB of log entry."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A GC call. `valid` are the (container id, ifname) that live; `local`: this host is the node and can look.

    `looked`: somebody there has looked already, at what was bound up to this log index; of the rest nobody knows.
    """

    node: str
    cni_network: str
    valid: frozenset[tuple[str, str]]
    call: CallStart | None
    local: bool
    looked: int | None = None


class Collection:
    """Frees bindings of a node, some hundreds at a time."""

    def __init__(self, proposer: Proposer, reader: Reader, namespaces: Namespaces) -> None:
        self._proposer, self._reader, self._namespaces = proposer, reader, namespaces

    async def gc(self, sweep: Sweep, request: Request) -> At[tuple[LetGo, ...]]:
        """Free what the list does not name, unless its namespace is seen alive.

        What is pinned becomes held: it keeps its address and its pod, and loses the dead container.
        Raises ApiError, Unavailable.
        """
        reclaim = Reclaim(request.origin, ReclaimCause.GC, sweep.node, (), sweep.call)
        return await self._reclaim(
            reclaim, lambda snapshot: attachments_of_node(snapshot, sweep.node, self._dead(sweep)), request
        )

    async def release_node(self, node: str, request: Request, *, suspect: bool = False) -> At[tuple[LetGo, ...]]:
        """Free all that is bound on a node, or all that is suspect. Raises ApiError, Unavailable."""
        cause = ReclaimCause.SUSPECT_RELEASE if suspect else ReclaimCause.NODE_RELEASE
        reclaim = Reclaim(request.origin, cause, node, ())
        return await self._reclaim(
            reclaim,
            lambda snapshot: attachments_of_node(snapshot, node, lambda one: one.suspect or not suspect),
            request,
        )

    async def reclaim_lost(self, node: str, bindings: tuple[Binding, ...], request: Request) -> At[Released]:
        """Free what a lost node holds, if the log finds its time over too. Raises ApiError, Unavailable."""
        reclaim = Reclaim(request.origin, ReclaimCause.LOST, node, bindings)
        return await self._proposer.carry_out(reclaim, request, Released)

    async def release_unclaimed(self, request: Request) -> At[tuple[LetGo, ...]]:
        """Free what an import brought and no node has claimed. Raises ApiError, Unavailable."""
        return await self._reclaim(Reclaim(request.origin, ReclaimCause.UNCLAIMED, None, ()), _unclaimed, request)

    async def empty_pool(self, name: str, request: Request) -> At[tuple[LetGo, ...]]:
        """Free all that a pool gave, what is held or pinned too. Raises ApiError, Unavailable."""

        def look(snapshot: Snapshot) -> Iterable[Attachment]:
            pool = snapshot.pool(name)
            return () if pool is None else snapshot.attachments_of_pool(pool.id)

        return await self._reclaim(Reclaim(request.origin, ReclaimCause.POOL_DELETE, None, ()), look, request)

    def _dead(self, sweep: Sweep) -> Callable[[Attachment], bool]:
        return lambda attachment: self._unnamed(sweep, attachment)

    def _unnamed(self, sweep: Sweep, attachment: Attachment) -> bool:
        owner = attachment.owner
        if owner is None or owner.cni_network != sweep.cni_network:
            return False
        if _names(sweep, owner.container_id, attachment.ifname):
            return False
        if sweep.looked is not None and attachment.bound_index > sweep.looked:
            return False
        return not (sweep.local and self._seen_alive(owner))

    def _seen_alive(self, owner: Owner) -> bool:
        if owner.netns is None or owner.netns_inode is None:
            return False
        return self._namespaces.alive(owner.netns, owner.netns_inode) is True

    async def _reclaim(
        self, reclaim: Reclaim, look: Callable[[Snapshot], Iterable[Attachment]], request: Request
    ) -> At[tuple[LetGo, ...]]:
        """Read who is concerned, then free them chunk by chunk.

        A keyed request is closed by an empty chunk, so that its repetition, which finds nobody left, still goes
        through the stored outcomes of the chunks that the first one had.
        """
        found = await self._reader.read(lambda snapshot: _bindings(look(snapshot)), request)
        index, freed, number = found.index, list[LetGo](), 0
        chunks = iter(_chunks(found.value))
        while True:
            chunk = next(chunks, ())
            if not chunk and request.key is None:
                break
            part = request if request.key is None else replace(request, key=request.key.part(number))
            done = await self._proposer.carry_out(values.replace(reclaim, bindings=chunk), part, Released)
            index, number = done.index, number + 1
            freed += done.value.items
            if not chunk and not done.value.items:
                break
        return At(index, tuple(freed))


def _names(sweep: Sweep, container_id: str | None, ifname: str) -> bool:
    """Whether a GC names an attachment; one whose interface an import did not know, by its container."""
    if is_open_ifname(ifname):
        return any(container_id == one for one, _ in sweep.valid)
    return (container_id, ifname) in sweep.valid


def _chunks(bindings: Sequence[Binding]) -> Iterator[tuple[Binding, ...]]:
    for at in range(0, len(bindings), CHUNK):
        yield tuple(bindings[at : at + CHUNK])


def _bindings(attachments: Iterable[Attachment]) -> list[Binding]:
    return [Binding(one.id, one.generation) for one in attachments]


def _unclaimed(snapshot: Snapshot) -> Iterator[Attachment]:
    """All attachments that are bound on no node that is known, by id."""
    after = 0
    while batch := snapshot.unclaimed(after, CHUNK):
        yield from batch
        after = batch[-1].id


def attachments_of_node(
    snapshot: Snapshot, node: str, wanted: Callable[[Attachment], bool] = lambda _: True
) -> Iterator[Attachment]:
    """The wanted ones of all attachments bound on a node, by id."""
    after = 0
    while batch := snapshot.attachments_of_node(node, after, CHUNK):
        yield from (one for one in batch if wanted(one))
        after = batch[-1].id
