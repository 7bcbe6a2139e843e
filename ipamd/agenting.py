"""Owns putting the agent together: from its spool up to the node socket, and down again in the other order."""

from __future__ import annotations

import logging
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from ipamd import __version__, sockets, system
from ipamd.agent import Agent, Servers, Upstream
from ipamd.agent.authority import AuthorityWatch
from ipamd.agent.enrolling import Enrolling
from ipamd.agent.learning import Keep, Learning
from ipamd.agentdir import AgentDirectory, Kept
from ipamd.api.agent import build_agent
from ipamd.api.server import Listener
from ipamd.api.upstream import HttpTransport
from ipamd.core.ports import Unavailable
from ipamd.credentials import TokenPurse, Trust, days_of, token_in, trust_in
from ipamd.datadir import DataDirError
from ipamd.metrics import AgentMetrics
from ipamd.notify import notify
from ipamd.service.background import Background
from ipamd.service.hostfiles import HostFiles
from ipamd.service.ports import Facts
from ipamd.service.recorded import read_recorded
from ipamd.service.reporting import Reporting
from ipamd.service.sandboxes import Sandboxes
from ipamd.service.spooling import Spooling
from ipamd.service.tokens import new_secret
from ipamd.service.wire import Asked
from ipamd.settings import AgentConfig
from ipamd.spool import DirectorySpool

logger = logging.getLogger("ipamd")

GRACE_S = 8.0
"""How long calls that are under way may still take after SIGTERM."""

RENAME_S = 5.0


@dataclass
class RunningAgent:
    """What a running agent can be told."""

    def reload(self) -> None:
        """Its files are followed: there is nothing to read again."""


@asynccontextmanager
async def attending(config: AgentConfig) -> AsyncIterator[RunningAgent]:
    """The whole agent; what was opened last is closed first."""
    async with AsyncExitStack() as stack:
        trust = trust_in(config.tls_ca)
        purse = _purse(config)
        transport = HttpTransport(purse or token_in(config.token_file), trust)
        stack.push_async_callback(transport.close)
        spool = DirectorySpool(config.spool_dir)
        stack.push_async_callback(spool.close)
        if system.is_forgetful(config.spool_dir):
            logger.warning("the spool %s is in memory: a reboot loses the DELs that wait there", config.spool_dir)
        directory = AgentDirectory(config.spool_dir)
        kept = directory.read() or Kept(config.node_name)
        clock = system.SystemClock()
        servers = Servers(config.server, kept.servers, zlib.crc32(config.full_name.encode()))
        upstream = Upstream(transport, servers, clock=clock, random=system.random_bytes)
        if purse is not None and purse.is_empty:
            await _enrol(config, purse, trust, servers, stack)
        await _claim(config, directory, kept, upstream)
        facts = Facts("agent", config.node_name, config.cluster)
        sandboxes = Sandboxes(
            system.Namespaces(),
            system.CniRecords(config.cni_cache_dir),
            lambda data: read_recorded(data, facts.node, facts.cluster),
        )
        agent = Agent(
            upstream,
            facts=facts,
            clock=clock,
            random=system.random_bytes,
            sandboxes=sandboxes,
            files=HostFiles(system.read_text),
        )
        agent.spooling = Spooling(
            spool, agent.deliver, clock=clock, now=system.call_start, is_on=config.del_policy == "spool"
        )
        agent.exposition = AgentMetrics(
            agent, __version__, servers=lambda: len(servers.order()), heard_s=lambda: upstream.heard_s
        )
        _begin(agent.spooling, stack)
        _begin(Learning(upstream, clock, _keeper(directory), kept.cluster_id), stack)
        _begin(AuthorityWatch(days_of(trust, clock.wall_ms), clock), stack)
        await _listen(config, agent, stack)
        reporting = Reporting(
            agent.reach,
            sandboxes,
            clock,
            boot_id=system.boot_id(),
            spooled=lambda: agent.spooled,
            in_order=agent.spooling.clear,
            heartbeat_every_s=config.heartbeat_every_s,
            report_every_s=config.report_every_s,
        )
        _begin(reporting, stack)
        yield RunningAgent()


def _begin(work: Background | Spooling, stack: AsyncExitStack) -> None:
    """Have something go on beside the calls until the agent ends."""
    stack.push_async_callback(work.stop)
    work.start()


def _purse(config: AgentConfig) -> TokenPurse | None:
    """Where the token goes that this node fetches; None: it is given one. Raises CredentialsError."""
    if config.enrol_file is None or config.token_file is None:
        return None
    return TokenPurse(config.token_file, lambda: new_secret(system.random_bytes))


async def _enrol(config: AgentConfig, purse: TokenPurse, trust: Trust, servers: Servers, stack: AsyncExitStack) -> None:
    """Have this node's token fetched: at once if that can be, or beside what the agent does. Raises CredentialsError.

    Without a token no call is taken, but a DEL can be put aside, so the agent serves.
    """
    transport = HttpTransport(token_in(config.enrol_file), trust)
    stack.push_async_callback(transport.close)
    clock = system.SystemClock()
    upstream = Upstream(transport, servers, clock=clock, random=system.random_bytes)
    enrolling = Enrolling(upstream, purse, config.full_name, clock)
    if await enrolling.enrol() is not None:
        _begin(enrolling, stack)


async def _claim(config: AgentConfig, directory: AgentDirectory, kept: Kept, upstream: Upstream) -> None:
    """The node's name must be the one that its pods are known under. Raises DataDirError."""
    old, new = kept.node_name, config.node_name
    whole = replace(config, node_name=old).full_name
    if old != new and not await _was_renamed(config, whole, upstream):
        raise DataDirError(
            f"this host is node {old}, not {new}: start it with --node-name {old}, or, to take its pods along to the"
            f" new name, first run: ipamctl node rename {whole} {config.full_name}"
        )
    directory.write(replace(kept, node_name=new))


async def _was_renamed(config: AgentConfig, old: str, upstream: Upstream) -> bool:
    """Whether the cluster knows this node under its new name, and nobody under the old one; both are whole names."""
    try:
        statuses = [await _status_of(upstream, name) for name in (config.full_name, old)]
    except Unavailable as error:
        logger.warning("it cannot be asked whether this node has another name now: %s", error.detail)
        return False
    return statuses == [200, 404]


async def _status_of(upstream: Upstream, node: str) -> int:
    asked = Asked("GET", f"/v1/nodes/{node}", {"Accept": "application/json"})
    said = await upstream.ask(asked, system.SystemClock().monotonic_s() + RENAME_S)
    return said.status


def _keeper(directory: AgentDirectory) -> Keep:
    def keep(cluster_id: str, servers: Sequence[str]) -> None:
        try:
            directory.keep_cluster(cluster_id, servers)
        except DataDirError as error:
            logger.error("the next start will not know where the cluster is: %s", error)  # noqa: TRY400 - a sentence

    return keep


async def _listen(config: AgentConfig, agent: Agent, stack: AsyncExitStack) -> None:
    """Open the node socket, or take the supervisor's. Raises SocketError."""
    sock = sockets.inherited_unix()
    if sock is None:
        sock = sockets.listen_unix(config.socket)
        stack.callback(sockets.remove_unix, config.socket)
    listener = Listener(build_agent(agent), sock)
    stack.push_async_callback(listener.stop, GRACE_S)
    where = {"socket": str(sock.getsockname()), "node": config.full_name, "servers": list(config.server)}
    await listener.start()
    logger.info("ready", extra={**where, "spooled": agent.spooled, "version": __version__})
    notify("READY=1")
