"""Owns keeping the list of servers up to date: the cluster says who its members are, and that is remembered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from ipamd.agent.upstream import Upstream
from ipamd.core.ports import Unavailable
from ipamd.service.background import Background
from ipamd.service.ports import Clock
from ipamd.service.wire import Asked, Said

EVERY_S: Final = 20.0
AGAIN_S: Final = 2.0
"""How soon it is asked again where nobody answered."""

_PATIENCE_S: Final = 5.0
_GREET_S: Final = 2.0
_ASKED: Final = Asked("GET", "/v1/cluster?stale=ok", {"Accept": "application/json"})

_log = logging.getLogger("ipamd.agent")

Keep = Callable[[str, Sequence[str]], None]
"""Remembers the cluster's id and its members' URLs for the next start."""


class _Member(msgspec.Struct):
    api: str = ""


class _Cluster(msgspec.Struct):
    cluster_id: str | None = None
    members: tuple[_Member, ...] = ()


class Learning(Background):
    """Asks every twenty seconds who the members are; that also keeps a connection to each of them."""

    def __init__(self, upstream: Upstream, clock: Clock, keep: Keep, cluster_id: str | None = None) -> None:
        """`cluster_id`: that of the last start."""
        super().__init__()
        self._upstream, self._clock, self._keep = upstream, clock, keep
        self.cluster_id = cluster_id
        self._said: str | None = None
        self._foreign: dict[str, str | None] = {}
        """The servers of other clusters, and of which."""

    async def _run(self) -> None:
        while True:
            is_answered = await self.look()
            if is_answered:
                await self._upstream.greet(_GREET_S)
            await asyncio.sleep(EVERY_S if is_answered else AGAIN_S)

    async def look(self) -> bool:
        """Ask once; whether somebody answered."""
        try:
            said = await self._upstream.ask(_ASKED, self._clock.monotonic_s() + _PATIENCE_S)
        except Unavailable as error:
            return self._in_vain(error.detail)
        if said.status != 200:
            return self._in_vain(f"a server answered with status {said.status}: is the token that of this node?")
        cluster = _read(said)
        if cluster is None:
            return self._in_vain("what answers is no server that this program knows")
        if self._said is not None:
            _log.info("the cluster answers again")
            self._said = None
        if cluster.cluster_id is not None:
            self._take(await self._of_before(cluster))
            await self._shun_others()
        return True

    async def _of_before(self, cluster: _Cluster) -> _Cluster:
        """What the cluster of before says, if another one answered first and that one is there too."""
        if self.cluster_id in (None, cluster.cluster_id):
            return cluster
        for _, found in await self._ask_each(self._upstream.servers.order()):
            if found.cluster_id == self.cluster_id:
                return found
        return cluster

    async def _shun_others(self) -> None:
        """What was put into the list of servers by mistake must not answer in the cluster's place."""
        servers = self._upstream.servers
        found = {url: one.cluster_id for url, one in await self._ask_each(servers.strangers)}
        known = self._foreign | found  # one that is silent may come back as what it was
        self._foreign = {url: known[url] for url in servers.strangers if known.get(url) not in (None, self.cluster_id)}
        for url in servers.shun(self._foreign):
            _log.error(
                "%s is of another cluster, %s, and is not asked: take it out of --server", url, self._foreign[url]
            )

    async def _ask_each(self, urls: Sequence[str]) -> list[tuple[str, _Cluster]]:
        """What each server says of its cluster; those that say nothing are left out."""

        async def ask(url: str) -> _Cluster | None:
            try:
                return _read(await self._upstream.ask_at(url, _ASKED, _GREET_S))
            except Unavailable:
                return None

        found = await asyncio.gather(*(ask(url) for url in urls))
        return [(url, one) for url, one in zip(urls, found, strict=True) if one is not None]

    def _take(self, cluster: _Cluster) -> None:
        is_new = cluster.cluster_id != self.cluster_id
        if is_new and self.cluster_id is not None:
            _log.warning(
                "the servers are of another cluster than before: %s, not %s", cluster.cluster_id, self.cluster_id
            )
        self.cluster_id = cluster.cluster_id
        is_other = self._upstream.servers.learn(member.api for member in cluster.members)
        if self.cluster_id is not None and (is_other or is_new):
            servers = self._upstream.servers.told
            _log.info("the cluster has %s members", len(servers), extra={"servers": list(servers)})
            self._keep(self.cluster_id, servers)

    def _in_vain(self, why: str) -> bool:
        if self._said is None:
            _log.warning("the cluster does not answer: %s", why)
            self._said = why
        return False


def _read(said: Said) -> _Cluster | None:
    try:
        return msgspec.json.decode(said.body, type=_Cluster) if said.status == 200 else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
