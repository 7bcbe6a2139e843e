"""Owns the leader's watch over the nodes: who is lost, who is back, and what is freed of the lost ones.

Silence counts from the later of a node's last heartbeat and the moment this leader began to serve, and only while this
process ran: a leader that was stopped knows nothing of what it missed. Nor does one that has just begun: before it
frees anything of a lost node, that node has had the time to say that it is back.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from ipamd.core.commands import Binding, FindNodes, LoseNodes, Origin, SilentNode
from ipamd.core.lost import is_reclaimable, is_silenced
from ipamd.core.model import Node
from ipamd.core.outcomes import Done
from ipamd.core.ports import Log, Snapshot, Unavailable
from ipamd.errors import ApiError
from ipamd.service.background import Background
from ipamd.service.collection import CHUNK, Collection
from ipamd.service.heartbeats import Heartbeats
from ipamd.service.ports import Clock
from ipamd.service.proposer import Proposer
from ipamd.service.reader import Reader
from ipamd.service.request import Request

EVERY_S = 1.0
GAP_S = 5.0
"""If the last look is longer ago, this process stood still, and begins to count anew."""

DOUBT_BEATS = 3
"""Who has missed so many heartbeats may be falling silent together with those that count as lost; who has missed fewer
is not lost, however small `node_lost_s` is."""

_PATIENCE_S = 5.0
_WHO = "watch"


class _Known(NamedTuple):
    lost_s: int
    nodes: Sequence[Node]

    @property
    def watched(self) -> Sequence[Node]:
        """Those that are not lost."""
        return [node for node in self.nodes if node.lost_log_ms is None]


class Watch(Background):
    """Looks once a second, on the member that leads."""

    def __init__(
        self,
        log: Log,
        proposer: Proposer,
        reader: Reader,
        collection: Collection,
        *,
        heartbeats: Heartbeats,
        clock: Clock,
    ) -> None:
        super().__init__()
        self._log, self._proposer, self._reader, self._collection = log, proposer, reader, collection
        self._heartbeats, self._clock = heartbeats, clock
        self._term: int | None = None
        self._began_s = self._looked_s = clock.monotonic_s()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            with contextlib.suppress(Unavailable, ApiError):  # the next second has another look
                await self.look()

    async def look(self) -> None:
        """Look once. Raises Unavailable, ApiError."""
        if not self._serves():
            return
        known = (await self._reader.peek(_known, _PATIENCE_S)).value
        self._heartbeats.keep({node.name for node in known.nodes})
        lost = [node for node in known.nodes if node.lost_log_ms is not None]
        back = [node.name for node in lost if self._is_heard(node)]
        await self._find(back)
        await self._lose(known)
        if self._looked_s - self._began_s < self._doubt_s:
            return
        for node in lost:
            if node.name not in back:
                await self._reclaim(known, node.name)

    def _serves(self) -> bool:
        """Whether this member leads; since when is kept."""
        status, now_s = self._log.status(), self._clock.monotonic_s()
        stood_still, self._looked_s = now_s - self._looked_s > GAP_S, now_s
        if not status.is_leader:
            self._term = None
            return False
        if stood_still or status.term != self._term:
            self._term, self._began_s = status.term, now_s
        return True

    @property
    def _doubt_s(self) -> float:
        return DOUBT_BEATS * self._heartbeats.every_s

    def _silent_s(self, node: Node) -> float:
        """As of the beginning of this look: if the process stood still since, that says nothing of the node."""
        heard_s = self._heartbeats.heard_s(node.name)
        since_s = self._began_s if heard_s is None else max(heard_s, self._began_s)
        return self._looked_s - since_s

    def _is_heard(self, node: Node) -> bool:
        """Whether a node was heard lately, by this leader, and since it was lost."""
        heard_s = self._heartbeats.heard_s(node.name)
        return heard_s is not None and self._looked_s - heard_s < self._doubt_s

    async def _find(self, names: Sequence[str]) -> None:
        if names:
            await self._proposer.carry_out(FindNodes(Origin("system", _WHO), tuple(names)), self._request(), Done)

    async def _lose(self, known: _Known) -> None:
        silent = [node for node in known.watched if self._silent_s(node) >= max(known.lost_s, self._doubt_s)]
        if silent:
            wall_ms = self._clock.wall_ms()
            lost = tuple(SilentNode(node.name, wall_ms - round(self._silent_s(node) * 1000)) for node in silent)
            await self._tell_silent(known, lost)

    async def _tell_silent(self, known: _Known, lost: tuple[SilentNode, ...] = ()) -> None:
        doubtful = tuple(node.name for node in known.watched if self._silent_s(node) >= self._doubt_s)
        if lost or doubtful:
            command = LoseNodes(Origin("system", _WHO), lost, doubtful)
            await self._proposer.carry_out(command, self._request(), Done)

    async def _reclaim(self, known: _Known, name: str) -> None:
        now_log_ms = self._log.status().log_ms
        found = await self._reader.peek(lambda snapshot: _due(snapshot, name, now_log_ms), _PATIENCE_S)
        if found.value:
            await self._tell_silent(known)  # others may have fallen silent since: then the log frees nothing
            await self._collection.reclaim_lost(name, found.value, self._request())

    def _request(self) -> Request:
        return Request("system", _WHO, self._clock.monotonic_s() + _PATIENCE_S)


def _known(snapshot: Snapshot) -> _Known:
    """The nodes that report: the others' silence means nothing."""
    nodes = [node for node in snapshot.known_nodes() if node.reported_log_ms is not None]
    return _Known(snapshot.settings().node_lost_s, nodes)


def _due(snapshot: Snapshot, name: str, now_log_ms: int) -> tuple[Binding, ...]:
    """Some of what may be freed of a lost node."""
    if is_silenced(snapshot):
        return ()
    found: list[Binding] = []
    after = 0
    while len(found) < CHUNK and (page := snapshot.attachments_of_node(name, after, CHUNK)):
        found += [Binding(one.id, one.generation) for one in page if is_reclaimable(snapshot, one, now_log_ms)]
        after = page[-1].id
    return tuple(found[:CHUNK])
