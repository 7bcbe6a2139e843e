"""Owns the ports that callers come through: opened together, closed together."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

from ipamd import sockets, system
from ipamd.api.app import Access, build
from ipamd.api.server import Listener
from ipamd.service import Services
from ipamd.serving.own import Own
from ipamd.settings import Config, Endpoint

logger = logging.getLogger("ipamd")

GRACE_S = 4.0


async def listen(own: Own, services: Services, stack: AsyncExitStack) -> Endpoint:
    """Open the node socket and the TCP port; both stop at the same time. Where TCP listens. Raises SocketError."""
    config = own.config
    if config.insecure:
        logger.warning("--insecure: whoever can connect to %s is an administrator, tokens are off", config.listen)
    unix = sockets.listen_unix(config.socket)
    stack.callback(sockets.remove_unix, config.socket)
    tcp = sockets.listen_tcp(config.listen)
    access = Access.OPEN if config.insecure else Access.TOKENS
    tls = None if own.tls is None else own.tls.open_server
    listeners = [
        Listener(build(services, Access.SOCKET), unix),
        Listener(build(services, access, services.inside, hosts=_own_names(config)), tcp, tls=tls),
    ]

    async def stop() -> None:
        await asyncio.gather(*(listener.stop(GRACE_S) for listener in listeners))

    stack.push_async_callback(stop)
    for listener in listeners:
        await listener.start()
    return Endpoint(*tcp.getsockname()[:2])


def _own_names(config: Config) -> set[str]:
    """Under which names this server is known."""
    told = urlsplit(config.advertise_url).hostname
    return {name for name in (told, config.listen.host, system.host().name) if name}
