"""Owns the load under which backups are taken: pods that come and go at a steady rate, and who has what at which index."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field

from tests.support.wire import Wire, cni_conf, cni_headers

POOL = "load"
CONF = cni_conf(POOL)
NODES = ("h1", "h2")
CLIENTS = 12
NEW_AMONG = 3
"""Two of so many steps begin a pod, the third ends one."""


@dataclass(frozen=True)
class Done:
    """An answered call: as of which log index, of which container, and what it has since (None: nothing)."""

    index: int
    container: str
    address: str | None


@dataclass
class Steady:
    """Pods at so many ADDs a second, each known by what it was answered."""

    target: str
    rate: float
    rng: random.Random
    answered: dict[str, list[Done]] = field(default_factory=dict)
    """By pod, oldest first."""

    adds: int = 0
    node_of: dict[str, str] = field(default_factory=dict)
    _stopping: bool = False
    _made: int = 0
    _due_s: float = 0.0

    async def run(self) -> None:
        """Until it is stopped."""
        self._due_s = time.monotonic()
        await asyncio.gather(*(self._client() for _ in range(CLIENTS)))

    def stop(self) -> None:
        self._stopping = True

    def living(self) -> dict[str, Done]:
        """The pods that have an address now, as they were answered last."""
        return {pod: done[-1] for pod, done in self.answered.items() if done[-1].address is not None}

    def ended(self) -> list[str]:
        """The pods that were deleted."""
        return [pod for pod, done in self.answered.items() if done[-1].address is None]

    def at(self, index: int) -> dict[str, str]:
        """Which pod had which address as of a log index."""
        found: dict[str, str] = {}
        for pod, calls in self.answered.items():
            before = [one for one in calls if one.index <= index]
            if before and before[-1].address is not None:
                found[pod] = before[-1].address
        return found

    async def _client(self) -> None:
        wire, mine = await Wire.connect(self.target), list[str]()
        while not self._stopping:
            if mine and self.rng.randrange(NEW_AMONG) == 0:
                await self._end(wire, mine.pop(self.rng.randrange(len(mine))))
                continue
            await self._turn()
            mine.append(await self._begin(wire))
        wire.close()

    async def _turn(self) -> None:
        """Wait for the next moment at which a pod begins."""
        self._due_s += 1 / self.rate
        await asyncio.sleep(max(0.0, self._due_s - time.monotonic()))

    async def _begin(self, wire: Wire) -> str:
        self._made += 1
        pod = f"t/p{self._made}"
        self.node_of[pod] = self.rng.choice(NODES)
        await self._ask(wire, "add", pod, f"c{self._made}")
        self.adds += 1
        return pod

    async def _end(self, wire: Wire, pod: str) -> None:
        await self._ask(wire, "del", pod, self.answered[pod][-1].container)

    async def _ask(self, wire: Wire, verb: str, pod: str, container: str) -> None:
        headers = cni_headers(container, pod) | {"Ipamd-Node": self.node_of[pod]}
        reply = await wire.ask("POST", f"/cni/v1/{verb}", CONF, headers)
        assert reply.status == 200, reply.body
        address = reply.json()["ips"][0]["address"].partition("/")[0] if verb == "add" else None
        self.answered.setdefault(pod, []).append(Done(index_of(reply.head), container, address))


def index_of(head: bytes) -> int:
    """The log index that an answer reflects."""
    return next(
        int(line.partition(b":")[2]) for line in head.split(b"\r\n") if line.lower().startswith(b"ipamd-index:")
    )
