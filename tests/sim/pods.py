"""Owns the work: pods that start, restart, end, whose old containers end late, and whose calls come twice or late."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ipamd.core.commands import Add, CallStart, Command, Del, Origin, PoolRequest, Release, encode_command
from ipamd.core.entries import OP_BYTES, Item
from ipamd.core.model import Owner
from ipamd.core.outcomes import Code, Granted, Outcome, Refused, Released
from ipamd.core.ports import Answer
from tests.sim.answers import End
from tests.sim.laws import Violation
from tests.sim.timeline import Timeline
from tests.support.history import Call, History, Verb

POOL, NETWORK, IFNAME, BOOT = "p", "k", "eth0", "boot-1"
ORIGIN = Origin("sim", "r")
LIMIT_S = 4.0
LATE_S = 5.0

REFUSALS = {
    Verb.ADD: {Code.POOL_EXHAUSTED},
    Verb.DEL: set[Code](),
    Verb.RELEASE: {Code.RESERVATION_NOT_FOUND},
}
"""What a pod may be told instead."""


class Town(Protocol):
    """Where pods live."""

    timeline: Timeline
    history: History

    def ask(self, item: Item | None, limit_s: float, ended: Callable[[End], None]) -> None:
        """Make a request, and be told how it ended."""


class Binding(NamedTuple):
    """What an acknowledged ADD bound: the container, when its call started, and the generation that it was told."""

    container: str
    start_s: float
    generation: int


@dataclass
class Pod:
    """One pod, its calls one after the other."""

    town: Town
    name: str
    node: str
    chance: random.Random
    pause_s: float
    container: str | None = None
    former: list[str] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    active: bool = True
    open: Call | None = None
    """The call that is under way."""

    def live(self) -> None:
        """The next call, after a while."""
        self.town.timeline.after(self.chance.expovariate(1 / self.pause_s), self._call)

    def _call(self) -> None:
        if not self.active:
            return
        dice = self.chance.random()
        if self.container is None and (dice < 0.7 or not self.former):
            self._add(self._fresh())
        elif dice < 0.15 and self.former:
            self._delete(self.chance.choice(self.former))
        elif dice < 0.3 and self.bindings:
            self._release(self.chance.choice(self.bindings))
        elif self.container is None or dice < 0.5:
            self._add(self._fresh())
        elif dice < 0.65:
            self._add(self.container)
        else:
            self._delete(self.container)

    def _add(self, container: str) -> None:
        called_s = self.town.timeline.now_s
        command = Add(ORIGIN, (PoolRequest(POOL),), self.name, IFNAME, self._owner(container), start(called_s))
        self._remember(container)
        self._send(command, Call(self.name, Verb.ADD, container, called_s, called_s, False))

    def _delete(self, container: str) -> None:
        called_s = self.town.timeline.now_s
        command = Del(ORIGIN, self.node, NETWORK, container, IFNAME, start(called_s))
        self._send(command, Call(self.name, Verb.DEL, container, called_s, called_s, False))

    def _release(self, binding: Binding) -> None:
        called_s = self.town.timeline.now_s
        container = self.chance.choice((None, binding.container))
        command = Release(ORIGIN, POOL, self.name, IFNAME, container, binding.generation)
        call = Call(self.name, Verb.RELEASE, binding.container, called_s, called_s, False, None, binding.start_s)
        self._send(command, call)

    def _send(self, command: Command, call: Call) -> None:
        data = encode_command(command)
        self.open = call
        self.town.ask(Item(self.chance.randbytes(OP_BYTES), data), LIMIT_S, lambda end: self._ended(call, end))
        if call.verb is not Verb.RELEASE and self.chance.random() < 0.15:
            self._send_twin(data, call)

    def _send_twin(self, data: bytes, call: Call) -> None:
        """The same call comes again, late, under another op: a caller that died is asked for once more."""
        item = Item(self.chance.randbytes(OP_BYTES), data)
        delay_s = self.chance.random() * LATE_S
        self.town.timeline.after(delay_s, lambda: self._ask_twin(item))
        self.town.history.note(call._replace(called_s=call.called_s - 1e-9, binding_s=call.start_s))

    def _ask_twin(self, item: Item) -> None:
        if self.active:
            self.town.ask(item, LIMIT_S, lambda _end: None)

    def _ended(self, call: Call, end: End) -> None:
        now_s = self.town.timeline.now_s
        self.open = None
        if isinstance(end, Answer):
            address = self._learn(call, end.outcome)
            self.town.history.note(call._replace(returned_s=now_s, done=True, address=address))
        else:
            self.town.history.note(call._replace(returned_s=now_s))
        self.live()

    def _learn(self, call: Call, outcome: Outcome) -> str | None:
        """What an answer says of the pod: the address."""
        if isinstance(outcome, Granted):
            (grant,) = outcome.grants
            generation = next(one.attachment.generation for one in grant.held if one.attachment.ifname == IFNAME)
            self.container = call.container
            self.bindings = [*self.bindings[-2:], Binding(call.container or "", call.start_s, generation)]
            return str(grant.addresses[0].address)
        if isinstance(outcome, Released):
            if call.verb is Verb.DEL or outcome.items:
                self.container = None if call.container == self.container else self.container
            return str(outcome.items[0].addresses[0]) if outcome.items else None
        if isinstance(outcome, Refused) and outcome.code in REFUSALS[call.verb]:
            return None
        raise Violation(f"{call} was answered {outcome}")

    def _fresh(self) -> str:
        return f"{self.name.replace('/', '-')}-{self.chance.getrandbits(40):010x}"

    def _remember(self, container: str) -> None:
        if container not in self.former:
            self.former = [*self.former[-3:], container]

    def _owner(self, container: str) -> Owner:
        return Owner(container, self.node, NETWORK)


def start(now_s: float) -> CallStart:
    """When a call started, on its node's clock since boot."""
    return CallStart(BOOT, round(now_s * 1e9))
