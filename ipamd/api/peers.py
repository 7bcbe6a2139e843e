"""Owns asking other members over HTTP: connections that are kept, and certificates that name who answers."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Literal, NamedTuple

import aiohttp
import msgspec

from ipamd.api.between import BYTES, PREFIX, Result, decode_results, encode_items
from ipamd.api.client import CONNECT_S, UNREACHED, Sent, open_session, why
from ipamd.api.forwarding import Forwarder
from ipamd.core.codec import CodecError
from ipamd.core.entries import Item
from ipamd.core.model import Member
from ipamd.core.ports import Answer, Unavailable
from ipamd.errors import ERRORS, ApiError
from ipamd.service.ports import Glimpse

_DEFINITE = range(400, 500)

Trust = Callable[[str | None], ssl.SSLContext | None]
"""The context for connections to a member by its name (None: to any member); None: plain HTTP."""


class _Asked(NamedTuple):
    member: Member
    method: str
    path: str
    body: bytes | None = None


class _Got(NamedTuple):
    status: int
    applied: str
    body: bytes


class _ProblemSaid(msgspec.Struct):
    detail: str = "it gave no reason"
    outcome: Literal["none", "unknown"] = "unknown"
    code: str = "internal"


class _GlimpseSaid(msgspec.Struct):
    """A Glimpse by the names of its fields: what a newer member says besides is left out."""

    name: str
    member_id: str
    cluster_id: str | None
    leader: str | None
    term: int
    applied: int
    committed: int
    certificate_days: int | None
    digests: dict[int, str]
    version: str = ""
    wall_ms: int | None = None


class _MemberSaid(msgspec.Struct):
    name: str
    member_id: str
    raft: str
    api: str
    voter: bool
    level: int = 1


class _ClusterSaid(msgspec.Struct):
    cluster_id: str | None
    members: tuple[_MemberSaid, ...]


class Cluster(NamedTuple):
    """A cluster as one of its members describes it to one that wants to join."""

    cluster_id: str | None
    members: tuple[Member, ...]


class HttpPeers:
    """The other members: service.ports.Peers. Used in one loop."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._session: aiohttp.ClientSession | None = None
        self._forwarders: dict[Member, Forwarder] = {}

    async def close(self) -> None:
        """Close all connections."""
        for forwarder in self._forwarders.values():
            await forwarder.close()
        if self._session is not None:
            await self._session.close()

    async def propose(self, member: Member, item: Item, timeout_s: float) -> Answer:
        """Have a member put a command into the log, if it leads. Raises Unavailable."""
        forwarder = self._forwarders.get(member)
        if forwarder is None:
            forwarder = self._forwarders[member] = Forwarder(partial(self._send, member))
        return await forwarder.propose(item, timeout_s)

    async def _send(self, member: Member, items: Sequence[Item], timeout_s: float) -> Sequence[Result]:
        got = await self._ask(_Asked(member, "POST", "/propose", encode_items(items)), timeout_s)
        try:
            results = decode_results(got.body)
        except CodecError as error:
            raise Unavailable(f"{member.name} answered what this member cannot read: {error}", "unknown") from None
        if len(results) != len(items):
            raise Unavailable(f"{member.name} answered {len(results)} of {len(items)} proposals", "unknown")
        return results

    async def barrier(self, member: Member, timeout_s: float) -> int:
        """The index of a barrier that a member passed, if it leads. Raises Unavailable."""
        got = await self._ask(_Asked(member, "POST", "/barrier"), timeout_s)
        return int(got.applied or 0)

    async def look(self, member: Member, timeout_s: float) -> Glimpse:
        """What a member says of itself. Raises Unavailable."""
        got = await self._ask(_Asked(member, "GET", "/member"), timeout_s)
        try:
            return Glimpse(*msgspec.structs.astuple(msgspec.json.decode(got.body, type=_GlimpseSaid)))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unavailable(f"{member.name} answered what this member cannot read: {error}", "none") from None

    async def cluster_at(self, url: str, token: str | None, timeout_s: float) -> Cluster:
        """The cluster that the member at a URL belongs to. Raises Unavailable, ApiError where that is refused."""
        got = await self._ask_api("GET", f"{url}/v1/cluster?stale=ok", token, timeout_s)
        return _cluster(got)

    async def join(self, url: str, token: str | None, own: Member, timeout_s: float) -> tuple[int, Cluster]:
        """Have the cluster of the member at a URL take this one in; the entry's index, and all members.

        Raises Unavailable, ApiError where it is refused.
        """
        body = {"name": own.name, "raft": own.raft, "api": own.api, "member_id": own.member_id, "level": own.level}
        got = await self._ask_api("POST", f"{url}/v1/cluster/members", token, timeout_s, msgspec.json.encode(body))
        return int(got.applied), _cluster(got)

    async def _ask_api(
        self, method: str, url: str, token: str | None, timeout_s: float, body: bytes | None = None
    ) -> _Got:
        """A request of the public API, with a token. Raises Unavailable, ApiError."""
        headers = {"Content-Type": "application/json", "Ipamd-Deadline-Ms": str(int(timeout_s * 1000))}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        limit = aiohttp.ClientTimeout(total=timeout_s, sock_connect=min(CONNECT_S, timeout_s))
        try:
            async with self._opened().request(
                method, url, data=body, headers=headers, timeout=limit, ssl=self._trust(None) or True,
                allow_redirects=False, trace_request_ctx=Sent(),
            ) as answer:  # fmt: skip
                got = _Got(answer.status, answer.headers.get("Ipamd-Index", ""), await answer.read())
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            raise Unavailable(f"{url} gave no answer: {why(error)}", "unknown") from None
        if got.status in _DEFINITE:
            said = _problem(got)
            raise ApiError(said.code if said.code in ERRORS else "internal", said.detail)
        if got.status >= 300:
            raise Unavailable(f"{url}: {_problem(got).detail}", "unknown")
        return got

    async def hand_over(self, member: Member, to: str | None, timeout_s: float) -> None:
        """Have a member that leads hand over to another. Raises Unavailable."""
        await self._ask(_Asked(member, "POST", "/hand-over", (to or "").encode()), timeout_s)

    async def heartbeat(self, member: Member, node: str, timeout_s: float) -> None:
        """Tell a member that leads that a node was heard. Raises Unavailable."""
        await self._ask(_Asked(member, "POST", "/heartbeat", node.encode()), timeout_s)

    async def _ask(self, asked: _Asked, timeout_s: float) -> _Got:
        """One exchange. Raises Unavailable, which says whether the other one may have acted on it."""
        member, sent = asked.member, Sent()
        try:
            got = await self._exchange(asked, timeout_s, sent)
        except UNREACHED as error:
            raise Unavailable(f"{member.name} at {member.api} is not reached: {why(error)}", "none") from None
        except (aiohttp.ClientError, OSError) as error:
            outcome: Literal["none", "unknown"] = "unknown" if sent.head else "none"
            raise Unavailable(f"{member.name} gave no answer: {why(error)}", outcome) from None
        if got.status != 200:
            raise _refusal(member, got)
        return got

    async def _exchange(self, asked: _Asked, timeout_s: float, sent: Sent) -> _Got:
        limit = aiohttp.ClientTimeout(total=timeout_s, sock_connect=min(CONNECT_S, timeout_s))
        async with self.open(asked.member, asked.method, asked.path, limit, body=asked.body, sent=sent) as answer:
            return _Got(answer.status, answer.headers.get("Ipamd-Index", ""), await answer.read())

    @asynccontextmanager
    async def open(
        self,
        member: Member,
        method: str,
        path: str,
        limit: aiohttp.ClientTimeout,
        *,
        body: bytes | None = None,
        sent: Sent | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A request between members, until its body is read. Raises what aiohttp raises."""
        headers = {"Content-Type": BYTES}
        if limit.total is not None:
            headers["Ipamd-Deadline-Ms"] = str(max(1, int(limit.total * 1000)))
        async with self._opened().request(
            method,
            f"{member.api}{PREFIX}{path}",
            data=body,
            headers=headers,
            timeout=limit,
            ssl=self._trust(member.name) or True,
            allow_redirects=False,
            trace_request_ctx=sent or Sent(),
        ) as answer:
            yield answer

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = open_session()
        return self._session


def _refusal(member: Member, got: _Got) -> Unavailable:
    """An error of the other side's; a definite one (4xx) means that it did nothing."""
    said = _problem(got)
    return Unavailable(f"{member.name}: {said.detail}", "none" if got.status in _DEFINITE else said.outcome)


def _problem(got: _Got) -> _ProblemSaid:
    try:
        return msgspec.json.decode(got.body, type=_ProblemSaid)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _ProblemSaid()


def _cluster(got: _Got) -> Cluster:
    try:
        said = msgspec.json.decode(got.body, type=_ClusterSaid)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unavailable(f"what answers is no member that this program knows: {error}", "unknown") from None
    members = (Member(*msgspec.structs.astuple(one)) for one in said.members)
    return Cluster(said.cluster_id, tuple(members))
