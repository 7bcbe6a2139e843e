"""Owns the order of the server's life: from the data directory up to the ports, and down again in the other order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from ipamd import __version__
from ipamd.beginning import beginning_of, found
from ipamd.consensus.node import RaftNode
from ipamd.consensus.peers import Alone
from ipamd.core.ports import Unavailable
from ipamd.datadir import DataDirError
from ipamd.notify import notify
from ipamd.service import Services
from ipamd.service.reporting import Reporting
from ipamd.serving.certificates import follow, refresh
from ipamd.serving.listening import listen
from ipamd.serving.member import raft_node
from ipamd.serving.own import Ends, Own, open_own
from ipamd.serving.usecases import reporting_of, serve_use_cases
from ipamd.settings import Config, Endpoint
from ipamd.tls import Tls

logger = logging.getLogger("ipamd")

HAND_OVER_S = 1.0
RETRY_S = 0.2


@dataclass
class Server:
    """What a running server can be told."""

    tls: Tls | None

    def reload(self) -> None:
        """Read the certificates again."""
        if self.tls is not None:
            refresh(self.tls)


@asynccontextmanager
async def running(config: Config, ends: Ends) -> AsyncIterator[Server]:
    """The whole server; what was opened last is closed first."""
    async with AsyncExitStack() as stack:
        own = open_own(config, ends, stack)
        stack.push_async_callback(own.peers.close)
        beginning = await beginning_of(config, own.identity, own.state, own.peers)
        node = raft_node(own, beginning, ends)
        stack.push_async_callback(node.stop)
        await node.start()
        is_alone = isinstance(beginning, Alone) and len(node.members) == 1
        if is_alone:
            await found(config, node, own.state)
        services = await serve_use_cases(own, node, ends, stack)
        listening = await listen(own, services, stack)
        stack.push_async_callback(_hand_over, node)
        if not is_alone:
            _in_background(_found(own, node, ends), stack)
        if services.backups is not None:
            stack.push_async_callback(services.backups.stop)
            services.backups.start()
        reporting = reporting_of(config, services)
        stack.push_async_callback(reporting.stop)
        _in_background(_announce(config, services, listening, reporting), stack)
        if own.tls is not None:
            _in_background(follow(own.tls), stack)
        yield Server(own.tls)


async def _hand_over(node: RaftNode) -> None:
    """Before the ports close: whoever asks this member meanwhile is passed on to the next leader."""
    if node.status().is_leader and len(node.members) > 1:
        try:
            await node.transfer(None, HAND_OVER_S)
        except Unavailable as error:
            logger.info("stopping as the leader: %s", error.detail)


async def _found(own: Own, node: RaftNode, ends: Ends) -> None:
    try:
        await found(own.config, node, own.state)
    except DataDirError as error:
        ends.fatal(str(error))


async def _announce(config: Config, services: Services, listening: Endpoint, reporting: Reporting) -> None:
    """Say once that the server can serve, and what it waits for until then; then report of its own node.

    After a restore the report comes first: pods that the backup knows wait for it.
    """
    waits_for = None
    reports_first = services.first_report.is_awaited
    if reports_first:
        reporting.start()
    while True:
        detail = await services.cluster.unready(None)
        if detail is None:
            break
        if detail != waits_for:
            logger.info("not ready: %s", detail)
        waits_for = detail
        await asyncio.sleep(RETRY_S)
    where = {"listen": str(listening), "socket": str(config.socket), "data_dir": str(config.data_dir)}
    who = {"member": config.member_name, "node": config.node_name}
    index = services.log.status().applied
    logger.info("ready", extra={**where, **who, "index": index, "version": __version__})
    notify("READY=1")
    if not reports_first:
        reporting.start()


def _in_background(work: Coroutine[None, None, None], stack: AsyncExitStack) -> None:
    stack.callback(asyncio.create_task(work).cancel)
