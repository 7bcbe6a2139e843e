"""Owns what goes wrong in a run, and when. Each seed has kinds of faults of its own: some runs see one kind only."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.sim.host import Host
    from tests.sim.world import World

BETWEEN_S = 0.9
"""Mean time from one fault to the next."""


class Faults:
    """The faults of a run."""

    def __init__(self, world: World, only: tuple[str, ...] = ()) -> None:
        """`only`: names of the kinds of faults; none: the seed says."""
        self._world = world
        self._chance = random.Random(f"{world.seed} faults")
        self._ended = False
        self._deposing = False
        self._kinds = self._choose(only)

    def begin(self) -> None:
        """From now on things go wrong."""
        if self._kinds:
            self._later(self._chance.expovariate(1 / BETWEEN_S), self._one)

    def end(self) -> None:
        """All is well again: links, hosts, processes, disks."""
        self._ended = True
        world = self._world
        world.network.heal()
        for host in world.hosts.values():
            host.storage.files.stop_at = None
            host.storage.files.slow_s = 0.0
            if host.process is not None:
                host.process.machine.dies = None
                if host.up and host.process.stopped:
                    host.process.go_on()
            host.start()

    def restart_later(self, host: Host) -> None:
        """A host starts its process again after a while."""
        self._later(self._chance.random() * 3, host.start)

    def _choose(self, only: tuple[str, ...]) -> list[Callable[[], None]]:
        """Two thirds of all kinds, some of them more likely than others."""
        kinds: list[Callable[[], None]] = [self._kill, self._die_at_a_step, self._die_around_apply, self._pause]
        kinds += [self._slow_disk, self._lose_power, self._shift_wall_clock]
        if self._world.size > 1:
            kinds += [self._cut_one_way, self._cut_both_ways, self._isolate, self._split, self._slow_link]
            kinds += [self._hand_over]
        if self._world.size > 3:
            kinds += [self._depose]
        kinds += [self._grow, self._shrink, self._replace]
        if only:
            return [kind for kind in kinds if _name(kind) in only]
        chosen = [kind for kind in kinds if self._chance.random() < 0.66]
        return [kind for kind in chosen for _ in range(self._chance.choice((1, 1, 2, 4)))]

    def _one(self) -> None:
        """One fault, and the next one later."""
        kind = self._chance.choice(self._kinds)
        name = _name(kind)
        self._world.laws.seen[name] += 1
        self._world.laws.note("fault", round(self._world.timeline.now_s, 6), name)
        kind()
        self._later(self._chance.expovariate(1 / BETWEEN_S), self._one)

    def _later(self, delay_s: float, act: Callable[[], None]) -> None:
        self._world.timeline.after(delay_s, lambda: None if self._ended else act())

    def _host(self) -> Host:
        return self._chance.choice(list(self._world.hosts.values()))

    def _kill(self) -> None:
        host = self._host()
        host.kill()
        self.restart_later(host)

    def _die_at_a_step(self) -> None:
        """The process ends in the middle of one of its next writes."""
        files = self._host().storage.files
        files.stop_at = files.steps + 1 + self._chance.randrange(12)

    def _die_around_apply(self) -> None:
        host = self._host()
        if host.process is not None and host.up:
            host.process.machine.dies = self._chance.choice(("before", "after"))

    def _pause(self) -> None:
        host = self._host()
        if host.process is not None and host.up:
            process = host.process
            process.pause()
            self._later(0.1 + self._chance.random() * 4, process.go_on)

    def _slow_disk(self) -> None:
        files = self._host().storage.files
        files.slow_s = self._chance.choice((0.005, 0.05, 0.3))

        def recover() -> None:
            files.slow_s = 0.0

        self._later(self._chance.random() * 4, recover)

    def _lose_power(self) -> None:
        """The whole rack."""
        for host in self._world.hosts.values():
            host.unplug()
            self._later(0.1 + self._chance.random() * 2, host.start)

    def _shift_wall_clock(self) -> None:
        self._host().clock.wall_shift_ms = self._chance.choice((-86_400_000, -3_600_000, 0, 3_600_000, 86_400_000))

    def _cut_one_way(self) -> None:
        one, other = self._chance.sample(list(self._world.hosts), 2)
        self._cut({(one, other)})

    def _cut_both_ways(self) -> None:
        one, other = self._chance.sample(list(self._world.hosts), 2)
        self._cut({(one, other), (other, one)})

    def _isolate(self) -> None:
        name = self._host().name
        others = [other for other in self._world.hosts if other != name]
        self._cut(_between({name}, others))

    def _split(self) -> None:
        """Two groups that do not hear each other."""
        names = list(self._world.hosts)
        self._chance.shuffle(names)
        at = self._chance.randrange(1, len(names))
        self._cut(_between(names[:at], names[at:]))

    def _grow(self) -> None:
        self._world.moves.grow()

    def _shrink(self) -> None:
        self._world.moves.shrink()

    def _replace(self) -> None:
        self._world.moves.replace()

    def _hand_over(self) -> None:
        self._world.moves.hand_over(self._chance.choice([None, *self._world.hosts]))

    def _depose(self) -> None:
        """A leader and one friend are cut off, another one leads, then the first again: its friend's words come late."""
        leader = next((process.name for process in self._world.running() if process.leads), None)
        if leader is None or self._deposing:
            return
        self._deposing = True
        friend, *rest = self._chance.sample(names := [one for one in self._world.hosts if one != leader], len(names))
        self._world.network.slow[friend, leader] = 3.0
        self._later(4.5, lambda: self._deposed(friend, leader))
        self._cut(_between({leader}, rest), 1.2 + self._chance.random() * 0.8)
        self._cut(_between({friend}, rest), 4.5)
        self._later(1.9, lambda: self._cut({(leader, friend)}, 2.5))
        for number in range(8):
            self._later(2.0 + number * 0.2, lambda: self._world.moves.hand_over(leader))

    def _deposed(self, friend: str, leader: str) -> None:
        self._deposing = False
        self._speed_up(friend, leader)

    def _speed_up(self, one: str, other: str) -> None:
        self._world.network.slow.pop((one, other), None)

    def _cut(self, links: set[tuple[str, str]], for_s: float | None = None) -> None:
        network = self._world.network
        network.cut |= links

        def mend() -> None:
            network.cut -= links
            for name in sorted(network.wires):
                network.wires[name].resume()

        self._later(0.2 + self._chance.random() * 5 if for_s is None else for_s, mend)

    def _slow_link(self) -> None:
        one, other = self._chance.sample(list(self._world.hosts), 2)
        slow = self._world.network.slow
        slow[one, other] = self._chance.choice((0.01, 0.1, 0.5))
        self._later(self._chance.random() * 5, lambda: self._speed_up(one, other))


def _between(some: Collection[str], others: Collection[str]) -> set[tuple[str, str]]:
    """All links between two groups, both ways."""
    return {pair for one in some for other in others for pair in ((one, other), (other, one))}


def _name(kind: Callable[[], None]) -> str:
    return kind.__name__.strip("_")
