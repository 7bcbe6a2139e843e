"""Hosts live their lives, messages come late and twice: no living container loses its address, no dead one keeps it.

ROUNDS=1 is 10,000 steps.
"""

from __future__ import annotations

import os
import random
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from ipamd.core.commands import ForgetNode
from tests.core.life import GRACE_S, Container, Host, Life
from tests.core.world import ORIGIN

WANTED = round(10_000 * float(os.environ.get("ROUNDS", "0.1")))
SOME = settings(
    max_examples=max(20, WANTED // 25),
    stateful_step_count=50,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

hosts = st.sampled_from(("n1", "n1", "n2", "n3"))
pods = st.sampled_from([f"t/{letter}" for letter in "abcdef"])
picks = st.integers(0, 30)
seldom = st.sampled_from((False, False, False, True))
often = st.sampled_from((True, True, True, False))


class Lives(RuleBasedStateMachine):
    """The hosts, and what happens to them."""

    lists = Bundle("lists")
    """What a runtime knew to be alive at some time."""

    steps: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.life = Life()

    def living(self, pick: int) -> Container | None:
        there = [one for host in self.life.hosts.values() for one in host.living()]
        return there[pick % len(there)] if there else None

    def host(self, name: str) -> Host:
        return self.life.hosts[name]

    @rule(pod=pods, host=hosts, late=seldom)
    def start(self, pod: str, host: str, late: bool) -> None:
        self.life.start(pod, self.host(host), late=late)

    @rule(pick=picks)
    def start_anew(self, pick: int) -> None:
        """A new container for a pod that runs: the runtime restarts it, and has not removed the old one."""
        one = self.living(pick)
        if one is not None:
            self.life.start(one.pod, self.host(one.node))

    @rule(pick=picks)
    def repeat(self, pick: int) -> None:
        one = self.living(pick)
        if one is not None:
            self.life.repeat(one)

    @rule(pick=picks)
    def end(self, pick: int) -> None:
        one = self.living(pick)
        if one is not None:
            self.life.end(one)

    @rule(pick=picks, spooled=seldom, late=seldom, compensates=seldom)
    def delete(self, pick: int, spooled: bool, late: bool, compensates: bool) -> None:
        one = self.living(pick)
        if one is not None:
            self.life.delete(one, spooled=spooled, late=late, compensates=compensates)

    @rule(pick=picks, spooled=st.booleans())
    def restart(self, pick: int, spooled: bool) -> None:
        """DEL, then ADD with the same container id; the DEL arrives later."""
        one = self.living(pick)
        if one is not None:
            self.life.delete(one, spooled=spooled, late=True)
            self.life.start(one.pod, self.host(one.node), one)

    @rule(target=lists, host=hosts)
    def list_containers(self, host: str) -> frozenset[str]:
        return frozenset(one.id for one in self.host(host).living())

    @rule(host=hosts, valid=lists, late=seldom)
    def collect(self, host: str, valid: frozenset[str], late: bool) -> None:
        self.life.collect(self.host(host), valid, late=late)

    @rule(host=hosts, hidden=st.just(frozenset()) | st.frozensets(st.integers(0, 3), max_size=2), late=seldom)
    def look(self, host: str, hidden: frozenset[int], late: bool) -> None:
        self.life.look(self.host(host), hidden, late=late)

    @rule(host=hosts, seconds=st.sampled_from((GRACE_S - 1, GRACE_S, GRACE_S + 1)))
    def look_twice(self, host: str, seconds: int) -> None:
        """Two reports with a time between them: nothing else happens on the way."""
        self.life.look(self.host(host), frozenset(), late=False)
        self.life.world.wait(seconds)
        self.life.look(self.host(host), frozenset(), late=False)

    @rule(host=hosts)
    def reboot(self, host: str) -> None:
        self.life.reboot(self.host(host))

    @rule(pick=picks, keeps=seldom)
    def deliver(self, pick: int, keeps: bool) -> None:
        if self.life.under_way:
            self.life.deliver(pick % len(self.life.under_way), keeps=keeps)

    @rule(host=hosts)
    def forget(self, host: str) -> None:
        self.life.world.run(ForgetNode(ORIGIN, host))

    @rule(seconds=st.sampled_from((1, 6, 11, 100)))
    def wait(self, seconds: int) -> None:
        self.life.world.wait(seconds)

    @invariant()
    def the_living_have_what_they_were_given(self) -> None:
        Lives.steps += 1
        self.life.check()


@pytest.mark.timeout(600)
def test_the_living_keep_and_the_dead_give_back() -> None:
    Lives.steps = 0
    while Lives.steps < WANTED:
        run_state_machine_as_test(Lives, settings=SOME)


def play(life: Life, chance: random.Random) -> None:
    """Something happens, as it does on real hosts: most often what is ordinary."""
    host = life.hosts[chance.choice(("n1", "n1", "n2", "n3"))]
    living = [one for each in life.hosts.values() for one in each.living()]
    one = chance.choice(living) if living else None
    late = chance.random() < 0.25
    match chance.choices(KINDS, WEIGHTS)[0]:
        case "start":
            dead = [pod for pod, each in life.holder.items() if not each.lives]
            again = chance.choice(dead) if dead and chance.random() < 0.5 else None
            life.start(again or f"t/{chance.choice('abcdef')}", host, late=late)
        case "repeat" if one:
            life.repeat(one)
        case "end" if one:
            life.end(one)
        case "delete" if one:
            life.delete(one, spooled=chance.random() < 0.3, late=late, compensates=chance.random() < 0.2)
        case "restart" if one:
            life.delete(one, spooled=chance.random() < 0.5, late=True)
            life.start(one.pod, life.hosts[one.node], one)
        case "collect":
            life.collect(
                host,
                frozenset(each.id for each in host.containers if chance.random() < 0.5),
                late=chance.random() < 0.6,
            )
        case "look":
            hidden = frozenset({0, 2}) if chance.random() < 0.2 else frozenset[int]()
            life.look(host, hidden, late=late)
        case "reboot":
            life.reboot(host)
        case "deliver" if life.under_way:
            life.deliver(chance.randrange(len(life.under_way)), keeps=chance.random() < 0.25)
        case "forget":
            life.world.run(ForgetNode(ORIGIN, host.name))
        case "wait":
            life.world.wait(chance.choice((1, 3, 6, 11, 100)))


KINDS = ("start", "repeat", "end", "delete", "restart", "collect", "look", "reboot", "deliver", "forget", "wait")
WEIGHTS = (6, 2, 4, 3, 2, 4, 8, 0.3, 14, 0.5, 4)
LONG = 100
"""Steps of a long life: enough for messages to come very late."""


@pytest.mark.timeout(600)
@settings(max_examples=max(30, 3 * WANTED // LONG), deadline=None, database=None)
@given(seed=st.integers(0, 2**32))
def test_long_lives(seed: int) -> None:
    """The same over long times, at random: what takes many steps to go wrong."""
    life, chance = Life(), random.Random(seed)
    for _ in range(LONG):
        play(life, chance)
        life.check()
