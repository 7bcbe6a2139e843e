"""Owns what becomes of a call on an agent's socket: what is kept, what waits, what is looked up, what goes on as it is.

Two calls are two calls to the cluster: an ADD that is repeated has another start, and order depends on that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ipamd.agent.freshness import FreshAnswers
from ipamd.agent.reach import NodeReach
from ipamd.agent.slots import Slots
from ipamd.agent.upstream import NoAnswer, Upstream
from ipamd.cni import config, environment
from ipamd.cni.answer import read_error
from ipamd.cni.attachments import read_valid, with_valid
from ipamd.cni.call import AddCall, parse
from ipamd.cni.errors import NOT_AVAILABLE, CniError
from ipamd.cni.resolv import dns_header, parse_resolv_conf
from ipamd.core.names import with_cluster
from ipamd.core.ports import Unavailable
from ipamd.core.spooled import CARRIED, SpooledCall
from ipamd.service.answers import Answers
from ipamd.service.calls import Calls
from ipamd.service.hostfiles import HostFiles
from ipamd.service.ports import Clock, Exposition, Facts, NoExposition, Random
from ipamd.service.sandboxes import Sandboxes
from ipamd.service.spooling import Faulty, Spooling, Undeliverable
from ipamd.service.wire import Asked, Said

CNI_ANSWER: Final = "application/cni+json"
STATUS_S: Final = 4.0
"""How long the cluster may be without a quorum before STATUS says that no ADD could be served."""

_PASSED_ON: Final = (*CARRIED, "CNI-Path", "Content-Type")
_AGENT: Final = "agent"


class Agent:
    """The calls of this node. Used in one loop."""

    def __init__(
        self,
        upstream: Upstream,
        *,
        facts: Facts,
        clock: Clock,
        random: Random,
        sandboxes: Sandboxes,
        files: HostFiles,
    ) -> None:
        self.upstream, self.facts, self.clock, self.random = upstream, facts, clock, random
        self.calls, self.answers = Calls(), Answers()
        self.exposition: Exposition = NoExposition()
        self.spooling: Spooling | None = None
        """Set before the socket opens; it delivers by `deliver`."""

        self._sandboxes, self._files = sandboxes, files
        self._slots, self._fresh = Slots(clock), FreshAnswers(clock)
        self._reach = NodeReach(upstream, lambda: self.node)

    def applied(self) -> int:
        """The highest log index that a server has named."""
        return self.upstream.index

    @property
    def spooled(self) -> int:
        """How many DELs wait for the cluster."""
        return 0 if self.spooling is None else self.spooling.length

    @property
    def reach(self) -> NodeReach:
        """How this node reports."""
        return self._reach

    @property
    def node(self) -> str:
        """The whole name of this node."""
        return with_cluster(self.facts.cluster, self.facts.node)

    async def cni(
        self, verb: str, headers: Mapping[str, str], body: bytes, request_id: str, deadline_s: float
    ) -> Said | None:
        """Carry out a CNI call; None: a DEL that is put aside, which must be valid.

        Raises CniError, ApiError, Unavailable.
        """
        asked = self._asked(verb, headers, body, request_id)
        self._hear_boot(asked)
        match verb:
            case "del":
                return await self._delete(asked, headers, request_id, deadline_s)
            case "status":
                return await self._status(asked, deadline_s)
            case "add":
                await self._in_order(deadline_s)
                asked = await self._seen(await self._resolved(asked))
            case "gc":
                await self._in_order(deadline_s)
                asked = await self._sparing(asked, deadline_s)
        return await self._ask(asked, deadline_s)

    async def api(self, asked: Asked, deadline_s: float) -> Said:
        """Carry out another request, with the rights of this node's token. Raises Unavailable."""
        return await self._ask(asked, deadline_s)

    async def deliver(self, spooled: SpooledCall, deadline_s: float) -> None:
        """Give the cluster a DEL that was put aside. Raises Unavailable, Undeliverable."""
        asked = self._asked("del", spooled.headers, spooled.body, spooled.request_id).saying(Ipamd_Spooled="true")
        said = await self.upstream.ask(asked, deadline_s)
        if said.status in (401, 403) and asked_node(asked) == self.node:
            raise Unavailable(f"the servers do not let this node: {_sentence(said)}", "none")
        if said.status >= 500:
            raise Faulty(_sentence(said), "unknown")
        if said.status != 200:
            raise Undeliverable(_sentence(said))

    async def _delete(
        self, asked: Asked, headers: Mapping[str, str], request_id: str, deadline_s: float
    ) -> Said | None:
        if self.spooling is None or not self.spooling.is_on:
            done = await self._ask(asked, deadline_s)
            if done.status == 200:
                self._forget(asked)
            return done

        async def attempt(until_s: float) -> Said:
            said = await self._ask(asked, until_s)
            if said.status in (401, 403) or said.status >= 500:
                raise Unavailable(_sentence(said), "unknown")
            return said

        aside = SpooledCall.of(headers, asked.body, request_id, self.clock.wall_ms())
        said = await self.spooling.take(aside, attempt, deadline_s)
        self._forget(asked)
        return said

    def _hear_boot(self, asked: Asked) -> None:
        """Remember the boot that the plugins here run in, if it is one that servers take: reports are made from it."""
        try:
            caller = environment.read_caller(asked.headers, self.facts.node, self.facts.cluster)
        except CniError:
            return  # the server says what is wrong with it
        if caller.start is not None and caller.node == self.node:
            self._sandboxes.boot_id = caller.start.boot_id

    def _forget(self, asked: Asked) -> None:
        """Of what a DEL let go, this host does not claim that it lives."""
        container_id = environment.variable(asked.headers, environment.CONTAINER_ID)
        ifname = environment.variable(asked.headers, environment.IFNAME)
        self._sandboxes.forget(container_id or "", ifname or "")

    async def _status(self, asked: Asked, deadline_s: float) -> Said:
        fresh = self._fresh.find(asked)
        if fresh is not None:
            return fresh
        began_s = self.clock.monotonic_s()
        until_s = min(deadline_s, began_s + STATUS_S)
        try:
            async with self._slots.one(until_s):
                said = await self.upstream.ask(asked, until_s, wanted=lambda said: said.status == 200, once=True)
        except NoAnswer as error:
            if error.said is not None and error.said.headers.get("Content-Type") == CNI_ANSWER:
                return error.said
            raise CniError(NOT_AVAILABLE, f"no ADD could be served: {error.detail}") from error
        self._fresh.keep(asked, said, began_s)
        return said

    async def _in_order(self, deadline_s: float) -> None:
        if self.spooling is not None:
            await self.spooling.clear(deadline_s)

    async def _ask(self, asked: Asked, deadline_s: float) -> Said:
        async with self._slots.one(deadline_s):
            return await self.upstream.ask(asked, deadline_s)

    async def _seen(self, asked: Asked) -> Asked:
        """With what only this host can see of the pod's namespace."""
        netns = environment.variable(asked.headers, environment.NETNS)
        inode = await self._sandboxes.inode(netns) if netns else None
        return asked if inode is None else asked.saying(Ipamd_Netns_Inode=str(inode))

    async def _resolved(self, asked: Asked) -> Asked:
        """With what stands in the file of `resolvConf`, which is one of this host. Raises ApiError, CniError."""
        try:
            call = parse("add", asked.headers, asked.body, node=self.facts.node, cluster=self.facts.cluster)
        except CniError:
            return asked  # the server says what is wrong with it
        if not isinstance(call, AddCall) or call.resolv_conf is None:
            return asked
        text = await self._files.text(call.resolv_conf, "ipam.resolvConf")
        return asked.saying(Ipamd_Dns=dns_header(parse_resolv_conf(text)))

    async def _sparing(self, asked: Asked, deadline_s: float) -> Asked:
        """With what its list does not name although its namespace lives: only this host can see that."""
        try:
            conf = config.decode(asked.body, strict=True)
            network, named = config.read_network(conf), read_valid(conf)
        except CniError:
            return asked  # the server says what is wrong with it
        known = await self._reach.known_of(asked_node(asked), deadline_s)
        mine = [one for one in known.sandboxes if one.cni_network == network]
        unnamed = [one for one in mine if (one.container_id, one.ifname) not in named]
        try:
            seen = await self._sandboxes.look(unnamed, with_records=False)
        except TimeoutError:
            raise Unavailable("this host could not look at its namespaces in time", "none") from None
        keys = {(one.container_id, one.ifname) for one in unnamed}
        living = [key for one in seen if one.alive is True and (key := (one.container_id, one.ifname)) in keys]
        asked = asked.saying(Ipamd_Looked=str(known.index))
        return replace(asked, body=with_valid(asked.body, living)) if living else asked

    def _asked(self, verb: str, headers: Mapping[str, str], body: bytes, request_id: str) -> Asked:
        """A call as it goes to a server: what the plugin said, and this node's name where it named none."""
        said = {name: headers[name] for name in _PASSED_ON if name in headers}
        said.setdefault("Ipamd-Node", self.facts.node)
        if self.facts.cluster is not None:
            said.setdefault("Ipamd-Cluster", self.facts.cluster)
        said |= {"X-Request-Id": request_id, "Ipamd-Agent": _AGENT}
        return Asked("POST", f"/cni/v1/{verb}", said, body, CNI_ANSWER)


def asked_node(asked: Asked) -> str:
    """The whole name of the node that a call is of."""
    return with_cluster(asked.headers.get("Ipamd-Cluster"), asked.headers["Ipamd-Node"])


def _sentence(said: Said) -> str:
    return read_error(said.body).msg or f"a server answered with status {said.status}"
