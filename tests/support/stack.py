"""Owns the whole server in the test's own process: real log, real database, real sockets, on a directory of its own."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
from yarl import URL

from ipamd import system
from ipamd.api.app import Access, build
from ipamd.api.limits import Rates
from ipamd.api.server import Limits, Listener
from ipamd.consensus.files import OsFiles
from ipamd.consensus.node import RaftNode
from ipamd.core.commands import Found, Origin, encode_command
from ipamd.core.entries import OP_BYTES, Item
from ipamd.core.evidence import Look
from ipamd.core.levels import LEVEL
from ipamd.core.model import Member, Role, Settings, Token
from ipamd.metrics import ServerMetrics, Watched
from ipamd.service import Services
from ipamd.service.ports import Facts
from ipamd.service.tokens import digest_of
from ipamd.sockets import listen_unix
from ipamd.storage.machine import SqliteMachine
from ipamd.storage.opening import open_database
from ipamd.storage.snapshot import SqliteState
from tests.support.canary import SECRET as SECRET  # noqa: PLC0414 - the administrator's of this server
from tests.support.canary import check_answer

SAID = {"content-type": "application/json"}


@dataclass
class FakeNamespaces:
    """Namespaces that a test says there are: inode by path."""

    inodes: dict[str, int] = field(default_factory=dict)

    def inode(self, path: str) -> int | None:
        return self.inodes.get(path)

    def alive(self, path: str, inode: int | None) -> bool | None:
        return self.inodes.get(path) == inode

    def look(self, path: str) -> Look:
        return Look((1, 1), self.inodes.get(path), is_namespace=True)


@dataclass(frozen=True)
class Got:
    """An answer, read to its end."""

    status: int
    headers: Any
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


@dataclass
class Stack:
    """A running server, and a client on each of its listeners."""

    services: Services
    namespaces: FakeNamespaces
    port: int
    path: Path
    over_tcp: aiohttp.ClientSession
    over_socket: aiohttp.ClientSession
    listeners: list[Listener]

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Got:
        """One request over the node socket."""
        return await ask(self.over_socket, "http://node", method, path, body, **more)

    async def ask_tcp(
        self, method: str, path: str, body: Any = None, *, token: str | None = SECRET, **more: Any
    ) -> Got:
        """One request over TCP."""
        headers = {**more.pop("headers", {}), **({"Authorization": f"Bearer {token}"} if token else {})}
        return await ask(self.over_tcp, f"http://127.0.0.1:{self.port}", method, path, body, headers=headers, **more)

    async def pool(self, name: str = "p", subnet: str = "192.0.2.0/24", **more: Any) -> None:
        """Make a pool, unless an equal one is there."""
        made = await self.ask("POST", "/v1/pools", {"name": name, "subnet": subnet, **more})
        assert made.status in (200, 201), made.raw

    async def cni(self, verb: str, conf: Any, *, tcp: bool = False, token: str = SECRET, **env: Any) -> Got:
        """A call as the plugin makes it."""
        headers = {"CNI-ContainerID": "c1", "CNI-IfName": "eth0", "CNI-Netns": "/run/netns/x", **env}
        headers = {name.replace("_", "-"): value for name, value in headers.items() if value}
        body = conf if isinstance(conf, bytes) else json.dumps(conf).encode()
        if tcp:
            return await self.ask_tcp("POST", f"/cni/v1/{verb}", body, token=token, headers=headers)
        return await self.ask("POST", f"/cni/v1/{verb}", body, headers=headers)


async def ask(session: aiohttp.ClientSession, base: str, method: str, path: str, body: Any = None, **more: Any) -> Got:
    """One request; `body` is sent as it is if it is bytes, else as JSON."""
    raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    data = None if raw is None else BytesIO(raw)
    headers = {**({} if data is None else SAID), **more.pop("headers", {})}
    url = URL(base + path, encoded=True)
    async with session.request(method, url, data=data, headers=headers, **more) as answer:
        got = Got(answer.status, answer.headers, await answer.read())
    check_answer(method, path, got.raw)
    return got


def conf(pool: Any = "p", version: Any = "1.1.0", network: Any = "net", **more: Any) -> dict[str, Any]:
    """A network configuration of the native dialect."""
    return {"cniVersion": version, "name": network, "type": "bridge", "ipam": {"type": "ipamd", "pool": pool}, **more}


@asynccontextmanager
async def running(
    directory: Path, limits: Limits | None = None, *, rates: Rates | None = None, hosts: Collection[str] = ()
) -> AsyncIterator[Stack]:
    """A founded cluster of one, serving; with `hosts`, its names, without tokens."""
    database = open_database(directory)
    state = SqliteState(database)
    node = RaftNode(
        name="n1",
        directory=directory / "journal",
        machine=SqliteMachine(database),
        files=OsFiles(),
        clock=system.SystemClock(),
        chance=random.Random(1),
        fatal=_fail,
    )
    await node.start()
    await node.wait_ready(10)
    await _found(node)
    namespaces = FakeNamespaces()
    services = Services.assemble(
        node,
        state,
        clock=system.SystemClock(),
        random=system.random_bytes,
        namespaces=namespaces,
        texts=system.read_text,
        facts=Facts("n1", "node-1"),
    )
    watched = Watched(node, "0", is_halted=lambda: False, differs=lambda: False)
    metrics = ServerMetrics(services, watched)
    services = replace(services, exposition=metrics)
    await services.start()
    tcp = socket.create_server(("127.0.0.1", 0))
    path = directory / "node.sock"
    listeners = [
        Listener(build(services, Access.SOCKET), listen_unix(path), limits),
        Listener(build(services, Access.OPEN if hosts else Access.TOKENS, rates=rates, hosts=hosts), tcp, limits),
    ]
    for listener in listeners:
        await listener.start()
    try:
        async with (
            aiohttp.ClientSession() as over_tcp,
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path), limit=64)) as over_socket,
        ):
            yield Stack(services, namespaces, tcp.getsockname()[1], path, over_tcp, over_socket, listeners)
    finally:
        for listener in listeners:
            await listener.stop(1)
        await metrics.stop()
        await services.stop()
        await node.stop()
        state.close()


async def _found(node: RaftNode) -> None:
    token = Token("t0", "admin", Role.ADMIN, digest_of(SECRET), 1)
    member = Member("n1", "m1", "127.0.0.1:7481", "http://127.0.0.1:7480", level=LEVEL)
    found = Found(Origin("system", "found"), "cluster-1", Settings(), (member,), token)
    await node.propose(Item(system.random_bytes(OP_BYTES), encode_command(found)), 10)


def _fail(sentence: str) -> None:
    raise AssertionError(sentence)
