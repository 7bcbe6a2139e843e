"""Owns an agent as it is wired, in the test's own process, with a client on its socket; and what the cluster shows of it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp

from ipamd import system
from ipamd.agenting import attending
from ipamd.settings import AgentConfig
from tests.support.eventually import PATIENCE_S, until
from tests.support.stack import Got, Stack, ask, conf

NETNS = f"/proc/{os.getpid()}/ns/net"


@dataclass
class Node:
    """An agent, and a client on its socket."""

    config: AgentConfig
    session: aiohttp.ClientSession

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Got:
        return await ask(self.session, "http://node", method, path, body, **more)

    async def cni(self, verb: str, config: Any = None, **env: str | None) -> Got:
        headers = {
            "CNI-ContainerID": "c1",
            "CNI-IfName": "eth0",
            "CNI-Netns": NETNS,
            "CNI-Args": "K8S_POD_NAMESPACE=t;K8S_POD_NAME=a",
            "Ipamd-Boot-Id": system.boot_id(),
            "Ipamd-Started": "1000",
            **{name.replace("_", "-"): value for name, value in env.items()},
        }
        sent = {name: value for name, value in headers.items() if value is not None}
        body = config if isinstance(config, bytes) else json.dumps(config or conf()).encode()
        return await self.ask("POST", f"/cni/v1/{verb}", body, headers=sent)

    @property
    def spooled(self) -> list[str]:
        return sorted(path.name for path in self.config.spool_dir.glob("*.del"))

    @property
    def refused(self) -> list[str]:
        return sorted(path.name for path in (self.config.spool_dir / "refused").glob("*.del"))


@asynccontextmanager
async def attended(config: AgentConfig) -> AsyncIterator[Node]:
    connector = aiohttp.UnixConnector(str(config.socket), limit=0)
    async with attending(config), aiohttp.ClientSession(connector=connector) as session:
        yield Node(config, session)


async def token_for(stack: Stack, node: str) -> str:
    made = await stack.ask("POST", "/v1/tokens", {"name": "of-" + node.replace(":", "-"), "role": "node", "node": node})
    return str(made.json["secret"])


async def config_for(stack: Stack, directory: Path, node: str = "w1", **changes: Any) -> AgentConfig:
    secret = await token_for(stack, node)
    return config_in(directory, secret, stack.port, node, **changes)


def config_in(directory: Path, secret: str, port: int, node: str, **changes: Any) -> AgentConfig:
    directory.mkdir(exist_ok=True)
    (directory / "token").write_text(secret)
    made = AgentConfig(
        config=None,
        server=(f"http://127.0.0.1:{port}",),
        token_file=directory / "token",
        enrol_file=None,
        tls_ca=None,
        socket=directory / "cni.sock",
        spool_dir=directory / "spool",
        node_name=node,
        cluster=None,
        del_policy="spool",
        cni_cache_dir=(),
        heartbeat_every_s=10,
        report_every_s=30,
        log_format="json",
        log_level="info",
    )
    return replace(made, **changes)


async def bound_on(stack: Stack, name: str = "w1") -> list[Any]:
    found = await stack.ask("GET", f"/v1/nodes/{name}")
    return list(found.json["attachments"]) if found.status == 200 else []


async def until_empty(node: Node) -> None:
    """Wait until the cluster has each DEL: on a machine that is busy enough any may be put aside first."""
    await until(lambda: not node.spooled)


async def until_shown(stack: Stack, is_so: Callable[[dict[str, Any]], bool]) -> None:
    """Wait until the cluster shows the node so."""
    async with asyncio.timeout(PATIENCE_S):
        while not is_so((await stack.ask("GET", "/v1/nodes/w1")).json):  # noqa: ASYNC110 - it is asked for
            await asyncio.sleep(0.1)
