"""Owns the load under which the server is killed: pods that start, restart, end, and whose old containers end late."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field

from tests.support.history import Call, History, Verb
from tests.support.wire import GoneError, Reply, Wire, cni_conf, cni_headers

UNKNOWN_CODE = 11
"""The CNI code of an answer that leaves open whether the call was carried out."""

AT_ONCE = ("--del-policy", "error")
"""The laws are about what was done when its caller was told so; of a DEL that is put aside the caller is told before."""


@dataclass
class Pod:
    """What a runtime knows of a pod: the container that it runs in, and those it ran in before."""

    name: str
    container: str | None = None
    former: list[str] = field(default_factory=list)

    def choose(self, rng: random.Random) -> tuple[Verb, str]:
        """The next call: verb and container."""
        fresh = f"{rng.getrandbits(64):016x}"
        if self.container is None:
            return Verb.ADD, fresh
        dice = rng.random()
        if dice < 0.15 and self.former:
            return Verb.DEL, rng.choice(self.former)
        if dice < 0.25:
            return Verb.ADD, self.container
        return (Verb.ADD, fresh) if dice < 0.6 else (Verb.DEL, self.container)

    def learn(self, container: str | None) -> None:
        """The pod now runs in a container (None: in none)."""
        if self.container is not None and self.container != container:
            self.former = [*self.former[-3:], self.container]
        self.container = container


@dataclass
class Load:
    """Clients that call for pods of their own, each one call after the other, until the server is gone."""

    target: str
    pool: str
    history: History
    rng: random.Random
    groups: list[list[Pod]]

    async def run(self) -> None:
        """Until every connection is lost. Never raises for what a dying server does."""
        await asyncio.gather(*(self._client(pods) for pods in self.groups))

    async def _client(self, pods: list[Pod]) -> None:
        wire = await Wire.connect(self.target)
        try:
            while await self._call(wire, self.rng.choice(pods)):
                pass
        finally:
            wire.close()

    async def _call(self, wire: Wire, pod: Pod) -> bool:
        """One call, noted; False: the server is gone."""
        verb, container = pod.choose(self.rng)
        called_s = time.monotonic()
        try:
            headers = cni_headers(container, pod.name)
            reply = await wire.ask("POST", f"/cni/v1/{verb}", cni_conf(self.pool), headers)
        except GoneError:
            self.history.note(Call(pod.name, verb, container, called_s, time.monotonic(), done=False))
            return False
        done, address = outcome(verb, reply)
        self.history.note(Call(pod.name, verb, container, called_s, time.monotonic(), done, address))
        if done and verb is Verb.ADD:
            pod.learn(container if address is not None else None)
        elif done and container == pod.container:
            pod.learn(None)
        return True


def outcome(verb: Verb, reply: Reply) -> tuple[bool, str | None]:
    """Whether an answer is definite, and the address that it gives."""
    said = reply.json() if reply.body else {}
    if reply.status == 200:
        return True, said["ips"][0]["address"].partition("/")[0] if verb is Verb.ADD else None
    assert verb is Verb.ADD or said.get("code") == UNKNOWN_CODE, f"a DEL was refused: {said}"
    return said.get("code") != UNKNOWN_CODE, None
