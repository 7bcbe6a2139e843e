"""Owns a real cluster for tests: several `ipamd serve` on loopback, with certificates, that can be killed and stopped."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from ipamctl.tls.authority import Wanted
from tests.support.canary import check_answer
from tests.support.certificates import Shop
from tests.support.server import READY_ANSWER_S, Server, ServerError
from tests.support.wire import cni_conf, cni_headers

BIN = Path(sys.executable).parent
LEADER_S = 60.0
LEVEL_S = 60.0
SAME_S = 60.0
"""These only guard against a hang: a busy machine is slow."""

LATE_S = 5.0
"""An answer that comes so long after its deadline is still looked at; whoever promises that it comes sooner measures it."""


Row = tuple[str, str, str, str | None]
"""Address, pod, interface, container."""


class Got(NamedTuple):
    """An answer over the node socket."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body or b"null")

    @property
    def code(self) -> int:
        """The code of a CNI answer; 0: a result."""
        return 0 if self.status == 200 else int(self.json["code"])

    @property
    def address(self) -> str:
        """The address of an ADD, without its prefix."""
        return str(self.json["ips"][0]["address"].split("/")[0])


class Away(Exception):  # noqa: N818 - what the member is
    """Nobody answers there, or not in time."""


class MemberServer(Server):
    """One server of a cluster."""

    def __init__(self, directory: Path, *flags: str, name: str, shop: Shop, host: str = "127.0.0.1") -> None:
        super().__init__(directory, *flags, name=name, host=host)
        self.shop = shop
        files = shop.files(name, Wanted(name, ("localhost",), ("127.0.0.1", "::1", host)))
        self.tls: tuple[str, ...] = (
            "--tls-cert",
            str(files.certificate),
            "--tls-key",
            str(files.key),
            "--tls-ca",
            str(files.authority),
        )

    @property
    def url(self) -> str:
        """Base URL of its HTTP API."""
        return f"https://{self.host}:{self.port}"

    @property
    def peer(self) -> str:
        """How the others are told of it."""
        return f"{self.name}={self.host}:{self.raft_port},{self.url}"

    @property
    def visitor(self) -> ssl.SSLContext:
        """Trusts the cluster's certificates."""
        return self.shop.visitor()

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        return self.process is not None and self.process.poll() is None

    def command(self) -> list[str]:
        """The command line that starts it."""
        return [*super().command(), *self.tls]

    def is_ready(self) -> bool:
        """Whether `/readyz` answers 200 now, over HTTPS."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=READY_ANSWER_S, context=self.visitor) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def pause(self) -> None:
        """SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def ask(self, method: str, path: str, body: Any = None, timeout_s: float = 10.0, **headers: str) -> Got:
        """A request over the node socket. Raises Away."""
        return ask_socket(self.socket, method, path, body, timeout_s, **headers)

    def cni(
        self, verb: str, container: str, pod: str = "t/a", *, pool: str = "p", timeout_s: float = 10.0, **headers: str
    ) -> Got:
        """A CNI call over the node socket, as the plugin makes it. Raises Away."""
        own = {**cni_headers(container, pod), "Ipamd-Deadline-Ms": str(int(timeout_s * 1000)), **headers}
        return self.ask("POST", f"/cni/v1/{verb}", cni_conf(pool, version="1.1.0"), timeout_s, **own)

    def add(self, container: str, pod: str, **more: Any) -> Got:
        """An ADD."""
        return self.cni("add", container, pod, **more)

    def status(self) -> Any:
        """`GET /v1/cluster`, this member's own view. Raises Away."""
        return self.ask("GET", "/v1/cluster?stale=ok").json

    def listed(self, pool: str | None = None, *, stale: bool = True) -> list[Row]:
        """All reservations (of one pool) as (address, pod, interface, container). Raises Away."""
        items, cursor = [], ""
        while True:
            query = {"limit": "5000", "pool": pool, "stale": "ok" if stale else None, "cursor": cursor or None}
            given = urllib.parse.urlencode({key: value for key, value in query.items() if value is not None})
            got = self.ask("GET", f"/v1/reservations?{given}")
            if got.status != 200:
                raise Away(f"{self.name}: {got.body!r}")
            page = got.json
            items += page["items"]
            cursor = page["next"]
            if not cursor:
                break
        return sorted(
            (address, item["pod_ref"], attachment["ifname"], attachment["container_id"])
            for item in items
            for attachment in item["attachments"]
            for address in attachment["addresses"]
        )


class Cluster:
    """Members n1, n2, ... that were founded together. `with` starts and ends them."""

    def __init__(self, directory: Path, size: int = 3, *flags: str) -> None:
        self.directory, self.flags = directory, flags
        self.shop = Shop(directory / "tls")
        self.members: dict[str, MemberServer] = {}
        for number in range(1, size + 1):
            self.make(f"n{number}", *flags)
        peers = [flag for member in self.members.values() for flag in ("--peer", member.peer)]
        for member in self.members.values():
            member.flags = (*member.flags, *peers)

    def __getitem__(self, name: str) -> MemberServer:
        return self.members[name]

    def __iter__(self) -> Iterator[MemberServer]:
        return iter(self.members.values())

    def make(self, name: str, *flags: str) -> MemberServer:
        """One more server, that is not started and in no cluster yet."""
        directory = self.directory / name
        directory.mkdir(exist_ok=True)
        self.members[name] = self.build(directory, *flags, name=name)
        return self.members[name]

    def build(self, directory: Path, *flags: str, name: str) -> MemberServer:
        """A server for a directory."""
        return MemberServer(directory, *flags, name=name, shop=self.shop)

    def start(self) -> Self:
        """Start all at once and wait until all are ready."""
        for member in self:
            member.spawn()
        for member in self:
            member.wait_ready()
        return self

    def revive(self) -> None:
        """Have all run, and wait until all are ready."""
        for member in self:
            if member.is_running:
                member.go_on()
            else:
                member.spawn()
        for member in self:
            member.wait_ready()

    def ctl(self, *args: str, server: str | None = None, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run ipamctl on the node socket of a member (by default of one that runs)."""
        target = self[server] if server is not None else self.any()
        command = [str(BIN / "ipamctl"), "--server", f"unix:{target.socket}", *args]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout_s)

    @property
    def admin_token(self) -> Path:
        """The file of the first admin token: the first leader has it."""
        return next(member.token_file for member in self if member.token_file.exists())

    def leader(self, among: Iterable[MemberServer] | None = None, timeout_s: float = LEADER_S) -> MemberServer:
        """The one leader that all who run (or those given) name, once they do. Raises ServerError."""
        asked = [member for member in among or self if member.is_running]
        deadline = time.monotonic() + timeout_s
        said: list[str | None] = []
        while time.monotonic() < deadline:
            with suppress(Away):
                said = [member.status()["leader"] for member in asked]
                if len(set(said)) == 1 and said[0] is not None and self.members[said[0]].is_running:
                    return self.members[said[0]]
            time.sleep(0.05)
        raise ServerError(f"no one leader within {timeout_s} s: {said}")

    def followers(self) -> list[MemberServer]:
        """All who run but the leader."""
        leader = self.leader()
        return [member for member in self if member.is_running and member is not leader]

    def pool(self, name: str = "p", subnet: str = "10.1.0.0/16") -> None:
        """Make a pool through the first member that runs."""
        made = self.any().ask("POST", "/v1/pools", {"name": name, "subnet": subnet})
        assert made.status == 201, made.body

    def any(self) -> MemberServer:
        """A member that runs."""
        return random.choice([member for member in self if member.is_running])

    def level(self, pool: str | None = None, timeout_s: float = LEVEL_S) -> list[Row]:
        """What all who run have (in one pool), once they report no lag; the same everywhere. Raises ServerError."""
        running = [member for member in self if member.is_running]
        deadline = time.monotonic() + timeout_s
        lists: list[list[Row]] = []
        while time.monotonic() < deadline:
            with suppress(Away, KeyError, TypeError):
                target = max(member.status()["index"] for member in running)
                if all(member.status()["index"] >= target for member in running):
                    lists = [member.listed(pool) for member in running]
                    if all(one == lists[0] for one in lists):
                        return lists[0]
            time.sleep(0.1)
        raise ServerError(f"not level within {timeout_s} s: {[len(one) for one in lists]}")

    def wait_for_equal_digests(self, timeout_s: float = SAME_S) -> None:
        """Wait until `cluster status` shows one digest at one index for all members. Raises ServerError."""
        deadline = time.monotonic() + timeout_s
        shown: list[Any] = []
        while time.monotonic() < deadline:
            shown = json.loads(self.ctl("-o", "json", "cluster", "status").stdout)["members"]
            seen = {(member["digest_index"], member["digest"]) for member in shown}
            if len(seen) == 1 and None not in next(iter(seen)):
                return
            time.sleep(0.3)
        raise ServerError(f"no equal digests within {timeout_s} s: {shown}")

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self:
            if member.is_running:
                member.kill()


def ask_socket(path: Path, method: str, target: str, body: Any = None, timeout_s: float = 10.0, **headers: str) -> Got:
    """A request over the socket of a server or an agent. Raises Away."""
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    sent = {"Ipamd-Deadline-Ms": str(int(timeout_s * 1000)), **headers}
    with closing(_UnixConnection(path, timeout_s + LATE_S)) as connection:
        try:
            connection.request(method, target, raw, sent)
            answer = connection.getresponse()
            got = Got(answer.status, dict(answer.getheaders()), answer.read())
        except (OSError, http.client.HTTPException) as error:
            raise Away(f"{path}: {error!r}") from error
    check_answer(method, target, got.body)
    return got


def rounds(count: int, least: int = 1) -> int:
    """So many rounds of a full run; ROUNDS scales them."""
    return max(least, round(count * float(os.environ.get("ROUNDS", "0.1"))))


def owned_twice(listed: list[Row]) -> list[str]:
    """Addresses that have two holders."""
    addresses = [address for address, *_ in listed]
    return sorted({address for address in addresses if addresses.count(address) > 1})


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("ipamd", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.settimeout(self.timeout)
            self.sock.connect(str(self._path))
        except OSError:
            self.sock.close()
            raise
