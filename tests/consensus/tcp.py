"""Owns real members on loopback: threads, sockets and files, with or without TLS."""

from __future__ import annotations

import asyncio
import random
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

from ipamd.consensus.files import OsFiles
from ipamd.consensus.limits import Limits
from ipamd.consensus.node import RaftNode
from ipamd.consensus.peers import ALONE, Beginning
from ipamd.consensus.wire import MemberTls, TcpWire
from ipamd.core.levels import LEVEL
from ipamd.core.model import Member
from ipamd.core.ports import Unavailable
from ipamd.system import SystemClock
from tests.consensus.listmachine import SNAPSHOTS, Full, ListMachine
from tests.consensus.members import PATIENCE_S

FAST = Limits(
    election_min_s=0.5,
    election_max_s=1.0,
    leader_fallback_s=1.0,
    heartbeat_s=0.05,
    connection_s=1.0,
    handshake_s=1.0,
    segment_bytes=1 << 16,
    fetch_pause_s=0.1,
    leave_s=0.1,
)


def listener(port: int = 0) -> socket.socket:
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind(("127.0.0.1", port))
    found.listen(100)
    found.setblocking(False)
    return found


class Host:
    """A member with its directory; started again it keeps its port, and its machine begins anew."""

    def __init__(self, lab: Lab, name: str, member_id: str | None = None) -> None:
        self.lab, self.name = lab, name
        self.directory = lab.directory / name
        self.directory.mkdir(exist_ok=True)
        self.port = 0
        self.member_id = member_id or f"id-{name}"
        self.machine = ListMachine()
        self.fatal: list[str] = []
        self.removed: list[str] = []
        self.wire: TcpWire
        self.node: RaftNode
        self.is_running = False
        self.bind()

    def bind(self, *, other_port: bool = False) -> None:
        self.socket = listener(0 if other_port else self.port)
        self.port = self.socket.getsockname()[1]

    @property
    def me(self) -> Member:
        return Member(self.name, self.member_id, f"127.0.0.1:{self.port}", f"http://{self.name}", level=LEVEL)

    async def start(self, beginning: Beginning = ALONE) -> RaftNode:
        limits = self.lab.limits
        clock, chance = SystemClock(), random.Random(self.name)
        tls = self.lab.tls(self.name) if self.lab.tls else None
        self.wire = TcpWire(self.socket, tls, clock=clock, chance=chance, limits=limits)
        self.node = RaftNode(
            name=self.name,
            directory=self.directory / "journal",
            machine=self.machine,
            files=OsFiles(),
            clock=clock,
            chance=chance,
            fatal=self.fatal.append,
            limits=limits,
            retryable=(Full,),
            me=self.me,
            beginning=beginning,
            wire=self.wire,
            source=self.lab,
            removed=self.removed.append,
        )
        self.is_running = True
        await self.node.start()
        return self.node

    async def stop(self) -> None:
        if self.is_running:
            self.is_running = False
            await self.node.stop()

    async def restart(self, beginning: Beginning = ALONE, *, other_port: bool = False) -> RaftNode:
        await self.stop()
        self.machine = ListMachine()
        self.bind(other_port=other_port)
        return await self.start(beginning)

    async def lose_everything(self, beginning: Beginning) -> RaftNode:
        await self.stop()
        shutil.rmtree(self.directory)
        self.directory.mkdir()
        self.member_id += "-new"
        return await self.restart(beginning)


class Lab:
    """The members, and where they get snapshots from: each other's machines."""

    def __init__(
        self, directory: Path, *, limits: Limits = FAST, tls: Callable[[str], MemberTls] | None = None
    ) -> None:
        self.directory, self.limits, self.tls = directory, limits, tls
        self.hosts: dict[str, Host] = {}
        self.fetched = 0

    def host(self, name: str) -> Host:
        if name not in self.hosts:
            self.hosts[name] = Host(self, name)
        return self.hosts[name]

    async def fetch(self, member: Member, path: Path) -> None:
        """core's SnapshotSource: a copy of the other's list, taken in its own thread's pause."""
        host = self.hosts[member.name]
        if not host.is_running:
            raise Unavailable(f"{member.name} is down", "none")
        await asyncio.to_thread(path.write_bytes, b"a snapshot")
        host.machine.save(str(path))
        self.fetched += 1

    async def stop(self) -> None:
        await asyncio.gather(*(host.stop() for host in self.hosts.values()))
        SNAPSHOTS.clear()

    @property
    def running(self) -> list[Host]:
        return [host for host in self.hosts.values() if host.is_running]

    async def leader(self) -> Host:
        """The one leader that all who run agree on."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                told = {host.node.status().leader for host in self.running}
                leads = [host for host in self.running if host.node.status().is_leader]
                if len(told) == 1 and len(leads) == 1 and told == {leads[0].name}:
                    return leads[0]
                await asyncio.sleep(0.01)

    async def until(self, done: Callable[[], bool], what: str = "") -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not done():  # noqa: ASYNC110 - other threads make it true
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(what or "it did not come to that") from None
