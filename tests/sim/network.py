"""Owns the simulated network: connections as TCP has them, on links that are slow, cut one way or both.

A connection keeps the order in each direction. What is sent into a cut is kept, as TCP would send it again, until the
cut heals or the connection is given up as silent. A process that died resets its connections; a host without power
leaves them to be found silent.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import msgspec

from ipamd.consensus.peers import Ears, Message
from ipamd.core.model import Member
from tests.sim.timeline import Timeline

SILENT_S = 2.0
LOOK_S = 0.2
PATIENCE_S = 1.5
"""How long the one with the lesser name waits to be dialled."""

DIAL_S = 0.5
"""How long a dial is waited for before the next."""

DELAY_S = 0.002


class Host(Protocol):
    """What runs a wire's member."""

    name: str

    @property
    def stopped(self) -> bool:
        """Whether it is paused: nothing in it runs, and what is sent to it waits."""

    def hear(self, act: Callable[[], None]) -> None:
        """Have something done in the member's next round."""

    def sends(self, name: str, message: Message) -> None:
        """A message goes out to a member."""


@dataclass(eq=False)
class End:
    """One end of a connection."""

    wire: SimWire
    open: bool = False
    silent_s: float = 0.0
    """How long it has heard nothing."""

    sent: deque[tuple[float, Callable[[], None]]] = field(default_factory=deque)
    """What is under way from here, with the time of its arrival."""


class Connection:
    """Two wires that talk."""

    def __init__(self, one: SimWire, other: SimWire) -> None:
        self.ends = {one.name: End(one), other.name: End(other)}

    def far(self, name: str) -> End:
        """The other end."""
        (end,) = (end for owner, end in self.ends.items() if owner != name)
        return end


class Network:
    """All links. A link is named by who sends and who receives."""

    def __init__(self, timeline: Timeline, seed: int) -> None:
        self.timeline = timeline
        self.cut: set[tuple[str, str]] = set()
        self.slow: dict[tuple[str, str], float] = {}
        self.wires: dict[str, SimWire] = {}
        self.messages = 0
        self._seed = seed
        self._chances: dict[tuple[str, str], random.Random] = {}
        timeline.after(LOOK_S, self._look)

    def passes(self, source: str, target: str) -> bool:
        """Whether what is sent now arrives."""
        return (source, target) not in self.cut

    def delay_s(self, source: str, target: str) -> float:
        """How long the next packet takes. Each link has a chance of its own: the order of links does not matter."""
        link = (source, target)
        chance = self._chances.get(link)
        if chance is None:
            chance = self._chances[link] = random.Random(f"{self._seed} {source} {target}")
        return 1e-4 + chance.expovariate(1 / DELAY_S) + chance.random() * self.slow.get(link, 0.0)

    def heal(self) -> None:
        """All links are good again."""
        self.cut.clear()
        self.slow.clear()
        for name in sorted(self.wires):
            self.wires[name].resume()

    def _look(self) -> None:
        self.timeline.after(LOOK_S, self._look)
        for name in sorted(self.wires):
            self.wires[name].look()


class SimWire:
    """One process's end of all its connections: consensus.peers.Wire."""

    def __init__(self, network: Network, host: Host) -> None:
        self.name = host.name
        self.host = host
        self.dead = False
        self._network = network
        self._connections: dict[str, Connection] = {}
        self._wanted: dict[str, Member] = {}
        self._ears: Ears | None = None
        self._outbox: list[tuple[str, bytes, Connection]] = []
        self._dial_at_s: dict[str, float] = {}
        self._lost: set[str] = set()
        """Whose connection is gone while the member has not been told yet."""

        network.wires[self.name] = self

    @property
    def ears(self) -> Ears:
        """Who listens."""
        assert self._ears is not None, "a wire that nobody listens to"
        return self._ears

    # What the member asks for

    def listen(self, ears: Ears) -> None:
        """Where to tell what happens."""
        self._ears = ears

    def open(self, wake: Callable[[], None], fail: Callable[[Exception], None]) -> None:
        """Nothing to begin: the network looks who is to be connected, and wakes the host."""

    def reach(self, members: Sequence[Member]) -> None:
        """Whom to be connected with."""
        before, now_s = self._wanted, self._network.timeline.now_s
        self._wanted = {member.name: member for member in members if member.name != self.name}
        for name in self._wanted.keys() - before.keys():
            self._dial_at_s[name] = now_s + (0.0 if self.name > name else PATIENCE_S)
        for name in [name for name in self._connections if name not in self._wanted]:
            self._hang_up(name, self._connections[name])

    def send(self, name: str, message: Message) -> bool:
        """Send at the end of the round."""
        connection = self._connections.get(name)
        if connection is None:
            return False
        self.host.sends(name, message)
        self._outbox.append((name, msgspec.msgpack.encode(message), connection))
        return True

    def close(self) -> None:
        """The process ends in order."""
        self.end(quiet=False)

    # What the simulation does

    def flush(self, now_s: float) -> None:
        """What the round sent leaves."""
        outbox, self._outbox = self._outbox, []
        for name, data, connection in outbox:
            self._network.messages += 1
            self._put(name, connection, now_s, partial(self._deliver, connection, data))

    def end(self, *, quiet: bool) -> None:
        """The process is gone; `quiet`: nobody is told, the host has no power."""
        self.dead = True
        if self._network.wires.get(self.name) is self:
            del self._network.wires[self.name]
        for name in list(self._connections):
            connection = self._connections.pop(name)
            connection.ends[self.name].open = False
            if not quiet:
                self._reset(name, connection)

    def look(self) -> None:
        """Give up silent connections, make new ones."""
        if self.host.stopped:
            return
        now_s = self._network.timeline.now_s
        for name, connection in list(self._connections.items()):
            far, near = connection.far(self.name), connection.ends[self.name]
            hears = far.open and not far.wire.host.stopped and self._network.passes(name, self.name)
            near.silent_s = 0.0 if hears else near.silent_s + LOOK_S
            if near.silent_s > SILENT_S:
                self._hang_up(name, connection)
        for name in sorted(self._wanted):
            if name not in self._connections and self._dial_at_s[name] <= now_s:
                self._dial_at_s[name] = now_s + DIAL_S
                self._dial(name)

    def resume(self) -> None:
        """What waited for a link goes on."""
        for name in sorted(self._connections):
            self._pump(name, self._connections[name])

    def _dial(self, name: str) -> None:
        there = self._network.wires.get(name)
        if there is None or there.host.stopped or not self._both_ways(name):
            return
        delay_s = 2 * self._network.delay_s(self.name, name)
        self._network.timeline.after(delay_s, lambda: self.host.hear(lambda: self._greet(there)))

    def _greet(self, there: SimWire) -> None:
        """The dialer's Hello reaches the other side, whose answer comes back."""
        if self.dead or there.dead or there.host.stopped or not self._both_ways(there.name):
            return
        hello = self.ears.hello()
        there.host.hear(lambda: there.answer(self, hello))

    def answer(self, dialer: SimWire, hello: Any) -> None:
        """Somebody said Hello."""
        if self.dead or dialer.dead or not self._both_ways(dialer.name):
            return
        refusal = self.ears.greet(hello)
        if refusal is not None:
            dialer.host.hear(lambda: None if dialer.dead else dialer.ears.refused(self.name, refusal))
            return
        self._replace(dialer.name)
        connection = Connection(dialer, self)
        self._open(dialer.name, connection, hello)
        mine = self.ears.hello()
        delay_s = self._network.delay_s(self.name, dialer.name)
        self._network.timeline.after(delay_s, lambda: dialer.host.hear(lambda: dialer.answered(self, connection, mine)))

    def answered(self, there: SimWire, connection: Connection, hello: Any) -> None:
        """The other side let us in."""
        if self.dead or there.dead or not connection.ends[there.name].open:
            return
        refusal = self.ears.greet(hello)
        if refusal is not None:
            there.host.hear(lambda: None if there.dead else there.ears.refused(self.name, refusal))
            self._reset(there.name, connection)
            return
        self._replace(there.name)
        self._open(there.name, connection, hello)
        there.resume()

    def _replace(self, name: str) -> None:
        """An older connection to the same member goes first."""
        if name in self._connections:
            self._close(name)
            self.ears.disconnected(name)

    def _open(self, name: str, connection: Connection, hello: Any) -> None:
        """The member hears of the loss of one before it hears of the next."""
        self._tell_lost(name)
        self._connections[name] = connection
        connection.ends[self.name].open = True
        self.ears.connected(hello)

    def _put(self, name: str, connection: Connection, now_s: float, act: Callable[[], None]) -> None:
        """Send something along: it arrives behind what was sent before."""
        sent = connection.ends[self.name].sent
        arrives_s = now_s + self._network.delay_s(self.name, name)
        if sent:
            arrives_s = max(arrives_s, sent[-1][0])
        sent.append((arrives_s, act))
        self._network.timeline.at(arrives_s, lambda: self._pump(name, connection))

    def _pump(self, name: str, connection: Connection) -> None:
        """Hand over what has arrived."""
        sent, far = connection.ends[self.name].sent, connection.far(self.name)
        now_s = self._network.timeline.now_s
        while sent and sent[0][0] <= now_s and self._network.passes(self.name, name) and far.open:
            sent.popleft()[1]()

    def _deliver(self, connection: Connection, data: bytes) -> None:
        far = connection.far(self.name)
        far.wire.host.hear(lambda: far.wire.take(self.name, connection, data))

    def take(self, name: str, connection: Connection, data: bytes) -> None:
        """A message has arrived and is read."""
        if self.dead or self._connections.get(name) is not connection:
            return
        if not self.ears.received(name, msgspec.msgpack.decode(data)):
            self._hang_up(name, connection)

    def _close(self, name: str) -> None:
        connection = self._connections.pop(name)
        connection.ends[self.name].open = False
        self._reset(name, connection)

    def _hang_up(self, name: str, connection: Connection) -> None:
        """Close one that is ours, and say so here."""
        if self._connections.get(name) is connection:
            self._close(name)
            self._lost.add(name)
            self.host.hear(lambda: None if self.dead else self._tell_lost(name))

    def _tell_lost(self, name: str) -> None:
        if name in self._lost:
            self._lost.remove(name)
            self.ears.disconnected(name)

    def _reset(self, name: str, connection: Connection) -> None:
        """Tell the other side that this one is gone: behind all that was sent."""
        far = connection.far(self.name)
        self._put(name, connection, self._network.timeline.now_s, lambda: far.wire.drop(self.name, connection))

    def drop(self, name: str, connection: Connection) -> None:
        """The other side closed it."""
        if not self.dead:
            self._hang_up(name, connection)

    def _both_ways(self, name: str) -> bool:
        return self._network.passes(self.name, name) and self._network.passes(name, self.name)
