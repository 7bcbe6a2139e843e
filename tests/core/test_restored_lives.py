"""Random lives around a backup: however old it is, no pod is given an address that a living container has."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from ipamd.core.outcomes import Granted
from tests.core.restored import Living, RestoredWorld, founded, restored
from tests.core.world import World, granted

PODS = ("t/a", "t/b", "t/c")
NODES = ("n1", "n2")


Step = tuple[str, str, str]
"""What happens, to which pod, on which node."""


@dataclass
class Reality:
    """What containers there really are, and what they use: one of each pod at most."""

    world: World
    living: dict[str, Living] = field(default_factory=dict)
    """By pod."""

    made: int = 0
    stopped: dict[str, Living] = field(default_factory=dict)
    """By pod: the container that was deleted last."""

    def add(self, pod: str, node: str) -> None:
        """The pod starts anew: its old container, if it has one, is gone."""
        self._run(Living(f"c{self.made + 1}", pod, "", node))

    def _run(self, one: Living) -> None:
        self.made += 1
        outcome = self.world.add(one.pod, one.container, node=one.node, inode=self.made)
        if not isinstance(outcome, Granted):
            return
        address = granted(outcome)
        others = [it for it in self.living.values() if it.pod != one.pod and it.address == address]
        assert others == [], f"{one.pod} was given {address}, which {others} have"
        self.living[one.pod] = one._replace(address=address)

    def again(self, pod: str) -> None:
        """The runtime asks for the same container once more."""
        mine = self.living.get(pod)
        if mine is None:
            return
        outcome = self.world.add(pod, mine.container, node=mine.node)
        if isinstance(outcome, Granted):
            assert granted(outcome) == mine.address, "a container's address changed under it"

    def delete(self, pod: str) -> None:
        mine = self.living.pop(pod, None)
        if mine is not None:
            self.stopped[pod] = mine
            self.world.delete(mine.container, node=mine.node)

    def start(self, pod: str) -> None:
        """A runtime that keeps ids starts a container that it had stopped."""
        if pod not in self.living and pod in self.stopped:
            self._run(self.stopped[pod])

    def report(self, node: str) -> None:
        living = [one for one in self.living.values() if one.node == node]
        if isinstance(self.world, RestoredWorld):
            self.world.lists(*living, node=node)
        else:
            alive: dict[str, Any] = {one.container: True for one in living}
            self.world.report(node, **alive)

    def step(self, step: Step) -> None:
        what, pod, node = step
        match what:
            case "add":
                self.add(pod, node)
            case "again":
                self.again(pod)
            case "start":
                self.start(pod)
            case "delete":
                self.delete(pod)
            case "swap":
                self.delete(pod)
                self.add(PODS[PODS.index(pod) - 1], node)
            case "report":
                self.report(node)
            case "wait":
                self.world.wait(3)


STEP = st.tuples(
    st.sampled_from(["add", "add", "again", "start", "delete", "report", "wait"]),
    st.sampled_from(PODS),
    st.sampled_from(NODES),
)
CHANGE = st.tuples(
    st.sampled_from(["swap", "swap", "add", "start", "delete", "wait"]), st.sampled_from(PODS), st.sampled_from(NODES)
)
PLACES = st.lists(st.tuples(st.just("add"), st.sampled_from(PODS), st.sampled_from(NODES)), min_size=1, max_size=3)


def cluster(subnet: str, cooldown_s: int, hold_s: int) -> World:
    """A small pool, two nodes that report."""
    world = World()
    founded(world)
    world.pool("p", subnet, cooldown_s=cooldown_s, hold_s=hold_s)
    for node in NODES:
        world.add(f"t/{node}", f"c-{node}", node=node, inode=1)
        alive: dict[str, Any] = {f"c-{node}": True}
        world.report(node, **alive)
        world.delete(f"c-{node}", node=node)
    world.wait(100)
    return world


class Times(NamedTuple):
    """How the pool gives, and how long it keeps."""

    subnet: str
    cooldown_s: int
    hold_s: int


POOLS = st.builds(
    Times, st.sampled_from(["192.0.2.0/30", "192.0.2.0/29"]), st.sampled_from([0, 2]), st.sampled_from([0, 0, 2, -1])
)


@settings(max_examples=200)
@given(POOLS, PLACES, st.lists(CHANGE, min_size=1, max_size=5), st.lists(STEP, min_size=1, max_size=8))
def test_no_living_containers_address_is_given_to_another_pod(
    pool: Times, before: list[Step], between: list[Step], after: list[Step]
) -> None:
    reality = Reality(cluster(*pool))
    for step in before:
        reality.step(step)
    backup = copy.deepcopy(reality.world)
    for step in between:
        reality.step(step)
    reality.world = restored(backup)
    for step in after:
        reality.step(step)
    for _ in PODS:  # what one report gives free, the next one claims: where each has another's address, pod by pod
        for node in NODES:
            reality.report(node)
    world = reality.world
    recorded = world.holders()
    for one in reality.living.values():
        disputed = {str(it.address) for it in world.state.disputes()}
        assert recorded.get(one.address) == f"{one.pod} eth0" or one.address in disputed
    if isinstance(world, RestoredWorld) and not world.state.disputes():
        world.confirm_pool()
        for pod in PODS:
            reality.add(pod, "n1")
