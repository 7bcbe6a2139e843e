"""Owns the load under which members of a cluster fail: runtimes, API clients and readers, and the history of it all.

Runtimes call for the pods of their own node, through its socket. API clients write through any member, and ask again
under the same idempotency key until they know. Readers list everything, linearizably and not.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple, Self
from urllib.parse import quote

from tests.cluster.checker import Rules
from tests.kill.load import Pod, outcome
from tests.support.cluster import Cluster, MemberServer
from tests.support.history import Call, History, Read, Shown, Verb
from tests.support.wire import GoneError, Reply, Wire, cni_conf, cni_headers, json_body

RUNTIMES_A_MEMBER, API_CLIENTS, PODS_A_CLIENT = 2, 2, 5
DEADLINE_MS, LIMIT_S, GIVE_UP_S = 2000, 4.0, 40.0
PAUSE_S, READ_PAUSE_S = 0.01, 0.1
LOOSE_ENDS = 2
"""So many calls of a pod may stay unanswered before its runtime asks again until one is answered."""

SUBNET, GATEWAY = "10.7.0.0/26", "10.7.0.1"
RULES = Rules(SUBNET, frozenset({GATEWAY}))
POOL = {"name": "load", "subnet": SUBNET, "gateway": GATEWAY}


@dataclass
class Loose(Pod):
    """A pod whose runtime remembers the containers of calls that were not answered."""

    loose: list[str] = field(default_factory=list)

    def choose(self, rng: random.Random) -> tuple[Verb, str]:
        """The next call; what is loose is deleted, as runtimes do, at once or a little later."""
        if self.loose and (len(self.loose) >= LOOSE_ENDS or rng.random() < 0.6):
            return Verb.DEL, self.loose[0]
        return super().choose(rng)

    def ended(self, verb: Verb, container: str, address: str | None, *, done: bool) -> None:
        """How a call ended."""
        if not done:
            self.loose = [*(one for one in self.loose if one != container), container]
        elif verb is Verb.DEL:
            self.loose = [one for one in self.loose if one != container]
            if container == self.container:
                self.learn(None)
        elif address is not None:
            self.learn(container)


class Lines:
    """A client's connections, one to each member, made when they are needed."""

    def __init__(self) -> None:
        self._wires: dict[str, Wire] = {}

    async def ask(
        self, member: MemberServer, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Reply | None:
        """An answer; None: nobody listens, so that nothing was asked. Raises GoneError: it is not known."""
        sent = {"Ipamd-Deadline-Ms": str(DEADLINE_MS), **(headers or {})}
        try:
            async with asyncio.timeout(LIMIT_S):
                if member.name not in self._wires:
                    self._wires[member.name] = await Wire.connect(f"unix:{member.socket}")
        except (OSError, TimeoutError):
            return None
        try:
            async with asyncio.timeout(LIMIT_S):
                return await self._wires[member.name].ask(method, path, body, sent)
        except (GoneError, TimeoutError) as error:
            self._wires.pop(member.name).close()
            raise GoneError(str(error)) from error

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()


class Write(NamedTuple):
    """A write of an API client, with its idempotency key: method, path, body, headers."""

    method: str
    path: str
    body: bytes
    headers: Mapping[str, str]

    @classmethod
    def add(cls, pod: str, container: str, chance: random.Random) -> Self:
        """Give a pod an address."""
        body, headers = json_body({"pool": "load", "pod_ref": pod, "container_id": container})
        return cls("POST", "/v1/reservations", body, headers | _key(chance))

    @classmethod
    def release(cls, pod: str, container: str, chance: random.Random) -> Self:
        """Release what a container of a pod holds."""
        path = f"/v1/reservations/load/{quote(pod, safe='')}?container_id={container}"
        return cls("DELETE", path, b"", _key(chance))


class Load:
    """All clients on a pool of their own, in a thread of their own, while the block of `running` lasts."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.history = History()
        self.broken: list[str] = []
        """Sentences on what no answer may be, beyond the laws of the history."""
        self._members = list(cluster)
        self._seed = seed
        self._numbers = count()
        self._stopping = threading.Event()
        self._shown: dict[int, tuple[str, Mapping[str, Shown]]] = {}
        self._indices: dict[str, int] = {}
        made = cluster.any().ask("POST", "/v1/pools", POOL)
        assert made.status == 201, made.body

    @contextmanager
    def running(self) -> Iterator[None]:
        """Clients call until the end of the block, and then until each knows what became of its last call."""
        failed: list[BaseException] = []

        def run() -> None:
            try:
                asyncio.run(self._run())
            except BaseException as error:  # noqa: BLE001 - it is raised in the thread of the test
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join(GIVE_UP_S + 20)
        if failed:
            raise failed[0]
        assert not thread.is_alive(), "clients hang"

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as clients:
            for member in self._members:
                for _ in range(RUNTIMES_A_MEMBER):
                    clients.create_task(self._runtime(member, self._chance()))
                clients.create_task(self._reader(member, self._chance()))
            for _ in range(API_CLIENTS):
                clients.create_task(self._api_client(self._chance()))

    def _chance(self) -> random.Random:
        return random.Random(f"{self._seed}/{next(self._numbers)}")

    async def _runtime(self, member: MemberServer, chance: random.Random) -> None:
        lines = Lines()
        pods = [Loose(f"{member.name}/p{next(self._numbers)}") for _ in range(PODS_A_CLIENT)]
        while not self._stopping.is_set():
            await self._cni_call(lines, member, chance.choice(pods), chance)
            await asyncio.sleep(PAUSE_S)
        lines.close()

    async def _cni_call(self, lines: Lines, member: MemberServer, pod: Loose, chance: random.Random) -> None:
        verb, container = pod.choose(chance)
        headers = cni_headers(container, pod.name) | {"Ipamd-Deadline-Ms": str(DEADLINE_MS)}
        called_s = time.monotonic()
        done, address = False, None
        try:
            reply = await lines.ask(member, "POST", f"/cni/v1/{verb}", cni_conf("load"), headers)
            if reply is None:
                return
            done, address = outcome(verb, reply)
            self._expect(not done or verb is Verb.DEL or address is not None, f"{verb} of {pod.name}: {reply}")
        except GoneError:
            pass
        self.history.note(Call(pod.name, verb, container, called_s, time.monotonic(), done, address))
        pod.ended(verb, container, address, done=done)

    async def _api_client(self, chance: random.Random) -> None:
        lines = Lines()
        pods = [Pod(f"api/p{next(self._numbers)}") for _ in range(PODS_A_CLIENT)]
        while not self._stopping.is_set() and pods:
            pod = chance.choice(pods)
            if not await self._write(lines, pod, chance):
                pods.remove(pod)
            await asyncio.sleep(PAUSE_S)
        lines.close()

    async def _write(self, lines: Lines, pod: Pod, chance: random.Random) -> bool:
        """One write, asked again under its key until it is answered. False: it never was."""
        adds = pod.container is None or chance.random() < 0.4
        container = f"{chance.getrandbits(64):016x}" if adds else str(pod.container)
        verb = Verb.ADD if adds else Verb.DEL
        write = Write.add(pod.name, container, chance) if adds else Write.release(pod.name, container, chance)
        called_s = time.monotonic()
        reply = await self._until_known(lines, write, chance)
        address = None if reply is None or not adds else _address_in(reply)
        self.history.note(Call(pod.name, verb, container, called_s, time.monotonic(), reply is not None, address))
        if reply is None:
            return False
        self._expect(address is not None if adds else reply.status in (200, 404), f"{verb} of {pod.name}: {reply}")
        if address is not None or not adds:
            pod.learn(container if adds else None)
        if chance.random() < 0.2:
            again = await self._until_known(lines, write, chance)
            same = again is None or (again.status, again.body) == (reply.status, reply.body)
            self._expect(same, f"{verb} of {pod.name} under the same key: {reply}, then {again}")
        return True

    async def _until_known(self, lines: Lines, write: Write, chance: random.Random) -> Reply | None:
        until_s = time.monotonic() + GIVE_UP_S
        while time.monotonic() < until_s:
            try:
                reply = await lines.ask(chance.choice(self._members), *write)
            except GoneError:
                reply = None
            if reply is not None and reply.status not in (429, 503):
                return reply
            await asyncio.sleep(0.05)
        return None

    async def _reader(self, member: MemberServer, chance: random.Random) -> None:
        lines = Lines()
        while not self._stopping.is_set():
            with suppress(GoneError):
                await self._read(lines, member, is_stale=chance.random() < 0.5)
            await asyncio.sleep(READ_PAUSE_S)
        lines.close()

    async def _read(self, lines: Lines, member: MemberServer, *, is_stale: bool) -> None:
        called_s = time.monotonic()
        path = f"/v1/reservations?pool=load&limit=5000{'&stale=ok' if is_stale else ''}"
        reply = await lines.ask(member, "GET", path)
        if reply is None or reply.status == 503:
            return
        self._expect(reply.status == 200, f"{member.name} answers a list with {reply}")
        held = shown_in(reply.json()["items"])
        heads = {name.lower(): text.strip() for name, _, text in map(_partition, reply.head.decode().split("\r\n"))}
        self._expect(("ipamd-stale" in heads) == is_stale, f"{member.name} marks a list wrongly: {heads}")
        self._compare(member.name, int(heads["ipamd-index"]), held)
        if not is_stale:
            self.history.reads.append(Read(called_s, time.monotonic(), held, member.name))

    def _compare(self, member: str, index: int, held: Mapping[str, Shown]) -> None:
        """Whoever shows the state at an index shows the same; nobody goes back."""
        self._expect(index >= self._indices.get(member, 0), f"{member} went back to index {index}")
        self._indices[member] = index
        other, expected = self._shown.setdefault(index, (member, held))
        self._expect(expected == held, f"at index {index} {other} shows {expected}, {member} shows {held}")

    def _expect(self, is_so: bool, otherwise: str) -> None:
        if not is_so:
            self.broken.append(otherwise)


def shown_in(items: list[dict[str, Any]]) -> dict[str, Shown]:
    """What a list of reservations shows, by pod. Raises ValueError if a pod has not one attachment, with one address."""
    shown = {}
    for item in items:
        (attachment,) = item["attachments"]
        (address,) = attachment["addresses"]
        shown[item["pod_ref"]] = Shown(attachment["container_id"], address.partition("/")[0])
    return shown


def final(cluster: Cluster) -> dict[str, dict[str, Shown]]:
    """What each member shows, once all are level."""
    cluster.level("load")
    path = "/v1/reservations?pool=load&limit=5000&stale=ok"
    return {member.name: shown_in(member.ask("GET", path).json["items"]) for member in cluster}


def wait_for(what: Callable[[], object], timeout_s: float = 60.0) -> None:
    """Until something is so. Raises AssertionError."""
    deadline = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _key(chance: random.Random) -> dict[str, str]:
    return {"Idempotency-Key": f"{chance.getrandbits(64):016x}"}


def _partition(line: str) -> tuple[str, str, str]:
    return line.partition(":")


def _address_in(reply: Reply) -> str | None:
    if reply.status not in (200, 201):
        return None
    (shown,) = shown_in([reply.json()]).values()
    return shown.address
