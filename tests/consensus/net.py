"""Owns a small network of whole members on simulated disks: every message lies in a queue until a test delivers it.

A link is a direction between two members, in order as one connection is. The wire here does nothing for safety: what
holds must hold because of the guard.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ipamd.consensus.intake import Waiter
from ipamd.consensus.limits import Limits
from ipamd.consensus.peers import ALONE, Beginning, Ears, Join, Message, Refusal
from ipamd.consensus.replica import Replica
from ipamd.core.commands import Command, encode_command
from ipamd.core.levels import LEVEL
from ipamd.core.model import Member
from ipamd.core.ports import Answer, Unavailable
from tests.consensus.journals import ManualClock
from tests.consensus.listmachine import ListMachine
from tests.consensus.members import item
from tests.consensus.simdisk import SimDisk

LIMITS = Limits(segment_bytes=4096, election_min_s=1.0, election_max_s=2.0, leader_fallback_s=2.0)
STEP_S = 0.05


def member(name: str, *, voter: bool = True, member_id: str | None = None) -> Member:
    return Member(name, member_id or f"id-{name}", f"{name}:1", f"http://{name}", voter, LEVEL)


def members(names: Iterable[str]) -> tuple[Member, ...]:
    return tuple(member(name) for name in names)


class FakeWire:
    """One member's end of the network."""

    def __init__(self, net: Net, name: str) -> None:
        self.net, self.name = net, name
        self.ears: Ears
        self.wanted: set[str] = set()
        self.full: set[str] = set()

    def listen(self, ears: Ears) -> None:
        self.ears = ears

    def open(self, wake: Callable[[], None], fail: Callable[[Exception], None]) -> None:
        """The test steps the members itself."""

    def reach(self, members: Sequence[Member]) -> None:
        self.wanted = {one.name for one in members}
        for name in self.net.links_of(self.name) - self.wanted:
            self.net.disconnect(self.name, name)

    def send(self, name: str, message: Message) -> bool:
        if name not in self.net.links_of(self.name) or name in self.full:
            return False
        self.net.queue(self.name, name).append(copy.deepcopy(message))
        return True

    def close(self) -> None:
        for name in self.net.links_of(self.name):
            self.net.disconnect(self.name, name)


class Host:
    """A member with its disk; `replica` None: it is down."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.disk = SimDisk()
        self.machine = ListMachine()
        self.replica: Replica | None = None
        self.wire: FakeWire | None = None
        self.refusals: list[Refusal] = []


class Net:
    """The members, the links between them, and one clock."""

    def __init__(self, limits: Limits = LIMITS, seed: int = 1, retryable: tuple[type[Exception], ...] = ()) -> None:
        self.retryable = retryable
        self.clock = ManualClock()
        self.limits = limits
        self.chance = random.Random(seed)
        self.hosts: dict[str, Host] = {}
        self.up: set[frozenset[str]] = set()
        self.held: set[tuple[str, str]] = set()
        self.apart: set[str] = set()
        """Members that nobody can connect with."""

        self._queues: dict[tuple[str, str], deque[Message]] = {}

    # Members.

    def start(self, name: str, beginning: Beginning = ALONE, *, me: Member | None = None) -> Replica:
        """Start a member on its disk, with the state machine that it has."""
        host = self.hosts.setdefault(name, Host(name))
        host.wire = FakeWire(self, name)
        host.replica = Replica(
            name=name,
            directory=Path("/journal"),
            machine=host.machine,
            files=host.disk,
            clock=self.clock,
            chance=self.chance,
            limits=self.limits,
            me=me or member(name),
            beginning=beginning,
            wire=host.wire,
            retryable=self.retryable,
        )
        return host.replica

    def cluster(self, names: str) -> list[Replica]:
        """A cluster of these members, connected, without a leader yet."""
        found = [self.start(name, Join(members(names), 0)) for name in names]
        self.connect_all()
        return found

    def stop(self, name: str) -> None:
        """Kill a member: its disk stays."""
        self.close_links(name)
        self.hosts[name].replica = None
        self.hosts[name].disk = self.hosts[name].disk.killed()

    def lose(self, name: str) -> None:
        """A member's data directory is gone."""
        self.stop(name)
        self.hosts[name] = Host(name)

    def restart(self, name: str, beginning: Beginning = ALONE, *, power_loss: bool = False) -> Replica:
        host = self.hosts[name]
        self.close_links(name)
        host.replica = None
        host.disk = host.disk.unplugged(self.chance) if power_loss else host.disk.killed()
        replica = self.start(name, beginning)
        self.connect_all()
        return replica

    def __getitem__(self, name: str) -> Replica:
        replica = self.hosts[name].replica
        assert replica is not None
        return replica

    def machine(self, name: str) -> ListMachine:
        return self.hosts[name].machine

    @property
    def running(self) -> list[str]:
        return [name for name, host in self.hosts.items() if host.replica is not None]

    # Links.

    def links_of(self, name: str) -> set[str]:
        return {other for link in self.up if name in link for other in link if other != name}

    def queue(self, source: str, target: str) -> deque[Message]:
        return self._queues.setdefault((source, target), deque())

    def connect(self, one: str, other: str) -> None:
        """Greet, as a wire does it: both ways, or not at all."""
        if (
            self.apart & {one, other}
            or frozenset((one, other)) in self.up
            or other not in self._wanted(one) | self._wanted(other, one)
        ):
            return
        left, right = self[one], self[other]
        for asked, asking, name in ((left, right, other), (right, left, one)):
            refusal = asked.greet(asking.hello())
            if refusal is not None:
                self.hosts[name].refusals.append(refusal)
                asking.refused(one if name == other else other, refusal)
                return
        self.up.add(frozenset((one, other)))
        left.connected(right.hello())
        right.connected(left.hello())

    def _wanted(self, name: str, partner: str | None = None) -> set[str]:
        """Whom a member dials; with a partner, that partner's name stands for being dialled by it."""
        wire = self.hosts[name].wire
        found = set() if wire is None else wire.wanted
        if partner is None:
            return found
        return {name} if partner in found else set()

    def connect_all(self) -> None:
        for one in self.running:
            for other in self.running:
                if one < other:
                    self.connect(one, other)

    def disconnect(self, one: str, other: str) -> None:
        if frozenset((one, other)) in self.up:
            self.up.discard(frozenset((one, other)))
            for pair in ((one, other), (other, one)):
                self.queue(*pair).clear()
                replica = self.hosts[pair[0]].replica
                if replica is not None:
                    replica.disconnected(pair[1])

    def close_links(self, name: str) -> None:
        for other in self.links_of(name):
            self.disconnect(name, other)

    def hold(self, one: str, other: str, *, both: bool = True) -> None:
        """Messages on these links wait."""
        self.held |= {(one, other), (other, one)} if both else {(one, other)}

    def cut(self, side: str, other_side: str, *, lost: bool = True) -> None:
        """Nothing passes between two groups of members; what was under way is lost."""
        for one in side:
            for other in other_side:
                self.hold(one, other)
                if lost:
                    self.queue(one, other).clear()
                    self.queue(other, one).clear()

    def heal(self) -> None:
        self.held.clear()

    # Time and messages.

    def deliver(self, source: str, target: str, count: int = 1) -> None:
        """Deliver the next messages of one link. The receiver's disk is not synced yet: see `tick`."""
        for _ in range(count):
            queue = self.queue(source, target)
            if not queue:
                return
            assert self[target].received(source, queue.popleft())

    def tick(self, *names: str) -> None:
        """One round of each of these members, or of all."""
        for name in names or self.running:
            for _ in range(100):
                if not self[name].step():
                    break

    def pump(self) -> None:
        """Deliver all that is not held, and let the members go round, until nothing is under way."""
        for _ in range(1000):
            links = [link for link, queue in self._queues.items() if queue and self._flows(link)]
            if not links:
                return
            for source, target in links:
                self.deliver(source, target, len(self.queue(source, target)))
            self.tick()
        raise AssertionError("the members never stop talking")

    def run(self, seconds: float) -> None:
        """Let time pass, with everything delivered at once."""
        for _ in range(round(seconds / STEP_S)):
            self.clock.now_s += STEP_S
            self.tick()
            self.pump()
            self.connect_all()

    def _flows(self, link: tuple[str, str]) -> bool:
        return link not in self.held and self.hosts[link[1]].replica is not None

    # What tests ask.

    def leaders(self) -> list[str]:
        return [name for name in self.running if self[name].status.is_leader]

    def elect(self, name: str) -> Replica:
        """Have a member stand for election now: its peers have not heard a leader for long enough."""
        self.clock.now_s += self.limits.election_min_s
        self.tick(name)
        self[name]._engine._raft.hasten()
        self[name]._engine._pre_vote._won_term = self[name].status.term + 1
        self.tick(name)
        return self[name]

    def lead(self, name: str) -> Replica:
        """Make a member lead, undisturbed."""
        return self.lead_beside(name, set())

    def lead_beside(self, name: str, deluded: set[str]) -> Replica:
        """The same, while others may still believe to lead: they are cut off."""
        self.elect(name)
        self.pump()
        for _ in range(9):
            self.clock.now_s += 0 if self[name].status.is_leader else STEP_S
            self.tick(name)
            self.pump()
        assert set(self.leaders()) - deluded == {name}
        return self[name]

    async def propose(self, name: str, *commands: bytes) -> list[Waiter]:
        """Put commands in; they are in the journal after the next round."""
        loop = asyncio.get_running_loop()
        waiters = [Waiter(item(command), loop, loop.create_future()) for command in commands]
        for waiter in waiters:
            self[name].intake.put(waiter)
        return waiters

    async def change(self, name: str, command: Command) -> Waiter:
        (waiter,) = await self.propose(name, encode_command(command))
        return waiter


async def answers(waiters: Sequence[Waiter]) -> list[Answer | int | Unavailable | None]:
    """How the waits ended; None: they have not."""
    await asyncio.sleep(0)
    return [_end(waiter) for waiter in waiters]


def _end(waiter: Waiter) -> Answer | int | Unavailable | None:
    if not waiter.future.done():
        return None
    error = waiter.future.exception()
    if error is None:
        return waiter.future.result()
    assert isinstance(error, Unavailable)
    return error
