"""Owns what the cluster looks like from here, and whether this process can serve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ipamd.core.model import Member
from ipamd.core.ports import Log, LogStatus, Snapshot, Unavailable
from ipamd.service.ports import Clock, Facts
from ipamd.service.reader import Reader
from ipamd.service.request import At, Request

_READY_WITHIN_S = 1.0


class ShownCluster(NamedTuple):
    """The cluster, its members, and the log as this member knows it."""

    cluster_id: str | None
    members: Sequence[Member]
    status: LogStatus


class Cluster:
    """The use cases of the cluster."""

    def __init__(self, reader: Reader, log: Log, clock: Clock, facts: Facts) -> None:
        self._reader, self._log, self._clock, self._facts = reader, log, clock, facts

    @property
    def member(self) -> str:
        """The name of the member that answers."""
        return self._facts.member

    async def get(self, request: Request) -> At[ShownCluster]:
        """The cluster as this member knows it. Raises Unavailable."""

        def look(snapshot: Snapshot) -> ShownCluster:
            return ShownCluster(snapshot.cluster_id(), snapshot.members(), self._log.status())

        return await self._reader.read(look, request)

    async def unready(self, space: str | None) -> str | None:
        """Why this process cannot serve (or no ADD in a space could be proposed); None: it can."""
        request = Request("system", "readyz", self._clock.monotonic_s() + _READY_WITHIN_S)
        try:
            found = await self._reader.read(lambda snapshot: _why_unready(snapshot, space), request)
        except Unavailable as error:
            return error.detail
        return found.value


def _why_unready(snapshot: Snapshot, space: str | None) -> str | None:
    if snapshot.cluster_id() is None:
        return "the cluster is not founded yet"
    if space is not None and not snapshot.pools_of_space(space):
        return f"there is no pool in space {space}"
    return None
