"""Owns what the cluster looks like from here, the changes of its members, and whether this process can serve."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from ipamd.core.commands import AddMember, Command, RemoveMember, TakeDigest
from ipamd.core.model import Member
from ipamd.core.outcomes import Done
from ipamd.core.ports import Log, LogStatus, Snapshot, Unavailable
from ipamd.errors import ApiError
from ipamd.service.firstreport import FirstReport
from ipamd.service.inside import Inside
from ipamd.service.ports import Clock, Facts, Glimpse, Peers
from ipamd.service.proposer import Proposer
from ipamd.service.reader import Reader
from ipamd.service.request import At, Request

_READY_WITHIN_S = 1.0
_LOOK_WITHIN_S = 1.0
"""How long a member may take to say how it is; who takes longer counts as away."""

MOST_NAMED = 100
"""So many pools that wait to be confirmed are named."""

_AGAIN_S = 0.2
_MARGIN_S = 0.05


class ShownMember(NamedTuple):
    """A member, and what it says of itself; `glimpse` None: it does not answer, or somebody else does there."""

    member: Member
    glimpse: Glimpse | None


class ShownCluster(NamedTuple):
    """The cluster, its members, and the log as this member knows it."""

    cluster_id: str | None
    members: Sequence[ShownMember]
    status: LogStatus
    epoch: int = 0
    """How often the state was restored from a backup."""

    unconfirmed: tuple[str, ...] = ()
    """The first of the pools that wait since for an operator to confirm them."""

    @property
    def committed(self) -> int:
        """How far the log is known to be committed, by whoever knows most."""
        said = [one.glimpse.committed for one in self.members if one.glimpse is not None]
        return max([self.status.committed, *said])


class _Known(NamedTuple):
    cluster_id: str | None
    members: Sequence[Member]
    epoch: int = 0
    unconfirmed: tuple[str, ...] = ()


class Cluster:
    """The use cases of the cluster. `inside` None: this member meets no others."""

    def __init__(
        self,
        proposer: Proposer,
        reader: Reader,
        first_report: FirstReport,
        *,
        log: Log,
        clock: Clock,
        facts: Facts,
        peers: Peers,
        inside: Inside | None,
    ) -> None:
        self._proposer, self._reader = proposer, reader
        self._log, self._clock, self._facts, self._peers, self._inside = log, clock, facts, peers, inside
        self._first_report = first_report

    @property
    def member(self) -> str:
        """The name of the member that answers."""
        return self._facts.member

    async def get(self, request: Request) -> At[ShownCluster]:
        """The cluster, each member asked how it is. Raises Unavailable."""
        found = await self._reader.read(_known, request)
        members = await asyncio.gather(*(self._shown(member) for member in found.value.members))
        return At(found.index, ShownCluster(found.value.cluster_id, members, self._log.status(), *found.value[2:]))

    async def add(self, member: Member, request: Request) -> At[ShownCluster]:
        """Take a member in; it gets a vote once it is level with the leader. Raises ApiError, Unavailable."""
        own = await self._reader.read(_known, request)
        self._refuse_unreachable(own.value, member)
        await self._refuse_foreign(own.value, member)
        return await self._changed(AddMember(request.origin, member), request)

    async def remove(self, name: str, request: Request) -> At[ShownCluster]:
        """Take a member out. Raises ApiError, Unavailable."""
        return await self._changed(RemoveMember(request.origin, name), request)

    async def transfer(self, to: str | None, request: Request) -> At[ShownCluster]:
        """Have another member lead (None: the most advanced one). Raises ApiError, Unavailable."""
        known = (await self._reader.read(_known, request)).value
        if to is not None and not any(member.name == to and member.voter for member in known.members):
            raise ApiError("not_found", f"there is no member {to} with a vote")
        before = self._log.status().leader
        if to is None or to != before:
            await self._hand_over(known, before, to, request)
        return await self.get(request)

    async def verify(self, request: Request) -> At[ShownCluster]:
        """The cluster as all members' states are behind one entry: each answer has a digest at its index.

        Who is away, or does not come so far while the request has time, has none. Raises Unavailable.
        """
        done = await self._proposer.carry_out(TakeDigest(request.origin), request, Done)
        known = (await self._reader.read(_known, request)).value
        while True:
            members = await asyncio.gather(*(self._shown(member) for member in known.members))
            late = [one for one in members if one.glimpse is not None and done.index not in one.glimpse.digests]
            if not late or self._left_s(request) < _AGAIN_S + _LOOK_WITHIN_S + _MARGIN_S:
                return At(done.index, ShownCluster(known.cluster_id, members, self._log.status(), *known[2:]))
            await asyncio.sleep(_AGAIN_S)

    async def unready(self, space: str | None) -> str | None:
        """Why this process cannot serve (or no ADD in a space could be proposed); None: it can."""
        request = Request("system", "readyz", self._clock.monotonic_s() + _READY_WITHIN_S)
        try:
            found = await self._reader.read(lambda snapshot: _why_unready(snapshot, space), request)
        except Unavailable as error:
            return error.detail
        if found.value is None and self._first_report.is_pending:
            return "this host's own node has not reported since the restore"
        return found.value

    async def _shown(self, member: Member) -> ShownMember:
        if member.name == self._facts.member:
            return ShownMember(member, None if self._inside is None else self._inside.glimpse())
        try:
            glimpse = await self._peers.look(member, _LOOK_WITHIN_S)
        except Unavailable:
            return ShownMember(member, None)
        is_it = glimpse.name == member.name and member.member_id in ("", glimpse.member_id)
        return ShownMember(member, glimpse if is_it else None)

    async def _changed(self, command: Command, request: Request) -> At[ShownCluster]:
        """Carry out a change of members; while another one is under way, wait for its end."""
        while True:
            try:
                done = await self._proposer.carry_out(command, request, Done)
                break
            except Unavailable as error:
                if error.outcome == "unknown" or self._left_s(request) < _AGAIN_S + _MARGIN_S:
                    raise
            await asyncio.sleep(_AGAIN_S)
        known = self._reader.glance(_known).value if self._log.status().applied >= done.index else None
        found = known or (await self._reader.read(_known, request)).value
        members = [ShownMember(member, None) for member in found.members]
        return At(done.index, ShownCluster(found.cluster_id, members, self._log.status(), *found[2:]))

    def _refuse_unreachable(self, own: _Known, member: Member) -> None:
        """Raises ApiError where members could not talk to each other."""
        if self._inside is None:
            raise ApiError(
                "invalid_request",
                "this server was started without certificates and meets no others: start it again with --tls-cert,"
                " --tls-key and --tls-ca (on loopback --insecure will do)",
            )
        hidden = [one for one in (*own.members, member) if _is_loopback(one.raft)]
        if 0 < len(hidden) <= len(own.members):
            raise ApiError(
                "invalid_request",
                f"member {hidden[0].name} is at {hidden[0].raft}, where others cannot reach it: start it with"
                " --advertise-raft and --advertise-url",
            )

    async def _refuse_foreign(self, own: _Known, member: Member) -> None:
        """Raises ApiError where the new member has data of its own."""
        with contextlib.suppress(Unavailable):  # it does not run yet, which is as it should be
            glimpse = await self._peers.look(member, _LOOK_WITHIN_S)
            if glimpse.cluster_id not in (None, own.cluster_id):
                raise ApiError(
                    "member_exists",
                    f"{member.name} has data of another cluster, {glimpse.cluster_id}: stop it, empty its data"
                    " directory, and start it with --join",
                )

    async def _hand_over(self, known: _Known, leader: str | None, to: str | None, request: Request) -> None:
        if leader is None:
            raise Unavailable("there is no leader at the moment", "none")
        if leader == self._facts.member:
            if self._inside is None:
                raise ApiError("invalid_request", "there is no other member that could lead")
            await self._inside.hand_over(to, self._left_s(request))
            return
        member = next((one for one in known.members if one.name == leader), None)
        if member is None:
            raise Unavailable(f"{leader} leads, and this member has not heard yet where that is", "none")
        await self._peers.hand_over(member, to, self._left_s(request))

    def _left_s(self, request: Request) -> float:
        return request.deadline_s - self._clock.monotonic_s()


def _known(snapshot: Snapshot) -> _Known:
    cluster = snapshot.cluster()
    unconfirmed = tuple(pool.name for pool in snapshot.unconfirmed()) if snapshot.restored() else ()
    return _Known(
        snapshot.cluster_id(), snapshot.members(), 0 if cluster is None else cluster.epoch, unconfirmed[:MOST_NAMED]
    )


def _is_loopback(endpoint: str) -> bool:
    host = endpoint.rpartition(":")[0].strip("[]")
    return host in {"localhost", "::1"} or host.startswith("127.")


def _why_unready(snapshot: Snapshot, space: str | None) -> str | None:
    if snapshot.cluster_id() is None:
        return "the cluster is not founded yet"
    if space is not None and not snapshot.pools_of_space(space):
        return f"there is no pool in space {space}"
    return None
