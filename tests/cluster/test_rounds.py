"""Rounds of faults under load: members are killed, cut off, stopped and put into another time, and no law is broken.

ROUNDS=1 is 100 rounds of each kind; CLUSTER_SEED repeats the choices of a run (not its timing).
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import count, cycle
from pathlib import Path

import pytest

from tests.cluster.checker import check
from tests.cluster.clocks import USUAL_S, Clocks
from tests.cluster.load import RULES, Load, final, wait_for
from tests.kill.load import AT_ONCE
from tests.support.cluster import MemberServer, rounds
from tests.support.lab import Lab

SEED = int(os.environ.get("CLUSTER_SEED", str(time.time_ns() % 10**9)))
ROUNDS = rounds(100, 3)
MINIMUM = 10
"""A round in which fewer calls were answered is void: there was no load."""

HOUR_S, DAY_S = 3600, 86400
JUMPS_S = (HOUR_S, -HOUR_S, DAY_S, -DAY_S)

pytestmark = pytest.mark.needs_root


class Trial:
    """A cluster, its load, and what was done to it."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.chance, self.load = lab, random.Random(SEED), Load(lab, SEED)
        self.done: Counter[str] = Counter()
        self.back_s: list[float] = []

    @property
    def unknown(self) -> int:
        """How many calls were not answered."""
        return sum(not call.done for call in self.load.history.calls)

    def play(self, least: int) -> Iterator[MemberServer]:
        """Rounds; each gives a random member, and ends once all are ready again and calls are answered.

        There are some more where no fault has met a call under way yet.
        """
        with self.load.running():
            for number in count():
                if number >= least and (self.unknown or number >= 4 * least):
                    return
                self._wait_for_answers(time.monotonic())
                yield self.chance.choice([*self.lab])
                began_s = time.monotonic()
                self.lab.revive()
                self._wait_for_answers(began_s)
                self.back_s.append(time.monotonic() - began_s)

    def judge(self) -> None:
        """All that was seen obeys the laws; the members have the same state, and nothing is damaged."""
        lab, history = self.lab, self.load.history
        shown = final(lab)
        wait_for(lab.agrees)
        figures = f"{history.acknowledged} answered, {self.unknown} unknown, {len(history.reads)} linearizable lists"
        back = f"answers again after p50 {statistics.median(self.back_s):.2f} s, max {max(self.back_s):.2f} s"
        print(f"seed {SEED}: {dict(self.done)}; {figures}; {back}")  # noqa: T201 - pytest shows it with a failure
        assert check(history, RULES, shown) == [], f"seed {SEED}"
        assert self.load.broken == [], f"seed {SEED}"
        assert self.unknown > 0
        for member in lab:
            member.kill()
            examine(member)

    def _wait_for_answers(self, since_s: float) -> None:
        def answered() -> bool:
            recent = self.load.history.calls[-4 * MINIMUM :]
            return sum(call.done and call.called_s >= since_s for call in recent) >= MINIMUM

        wait_for(answered)


def examine(member: MemberServer) -> None:
    """`ipamd doctor` finds nothing."""
    command = [sys.executable, "-m", "ipamd.main", "doctor", "--data-dir", str(member.data_dir)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, f"seed {SEED}: {member.name}\n{ended.stdout}{ended.stderr}"


@contextmanager
def trial(directory: Path, *, clocks: bool = False) -> Iterator[tuple[Trial, Clocks | None]]:
    """Three members in namespaces, under load."""
    lab = Lab(directory, 3, "--digest-every-s", "1", *AT_ONCE)
    moved = Clocks(lab) if clocks else None
    with lab:
        yield Trial(lab), moved


@pytest.mark.timeout(300 + 60 * ROUNDS)
def test_kills_of_any_members_at_any_moment(tmp_path: Path) -> None:
    with trial(tmp_path) as (one, _):
        for victim in one.play(ROUNDS):
            size = one.chance.choice((1, 1, 2, 3))
            victims = [victim, *one.chance.sample([member for member in one.lab if member is not victim], size - 1)]
            time.sleep(one.chance.uniform(0, 0.3))
            for member in victims:
                assert member.process is not None
                member.process.kill()
            for member in victims:
                member.kill()
            time.sleep(one.chance.uniform(0, 1))
            one.done[f"{size} killed"] += 1
        one.judge()


def cut_two_ways(one: Trial, victim: MemberServer) -> None:
    one.lab.network.isolate(victim.name)


def mute(one: Trial, victim: MemberServer) -> None:
    one.lab.network.isolate(victim.name, hears=True)


def deafen(one: Trial, victim: MemberServer) -> None:
    one.lab.network.isolate(victim.name, is_heard=True)


def cut_a_link(one: Trial, victim: MemberServer) -> None:
    other = one.chance.choice([member for member in one.lab if member is not victim])
    ways = [(victim.name, other.name), (other.name, victim.name)]
    one.lab.network.cut(*one.chance.choice((ways, ways[:1])))


def cut_all(one: Trial, victim: MemberServer) -> None:
    names = [member.name for member in one.lab]
    one.lab.network.cut(*[(source, target) for source in names for target in names if source != target])


def pause(one: Trial, victim: MemberServer) -> None:
    victim.pause()


CUTS = (cut_two_ways, cut_two_ways, mute, deafen, cut_a_link, cut_all, pause, pause, pause)


@pytest.mark.timeout(300 + 60 * ROUNDS)
def test_cuts_and_pauses_of_any_members(tmp_path: Path) -> None:
    with trial(tmp_path) as (one, _):
        for victim in one.play(ROUNDS):
            fault = one.chance.choice(CUTS)
            fault(one, victim)
            one.done[fault.__name__] += 1
            time.sleep(one.chance.uniform(1, 5 if fault is pause else 3))
            victim.go_on()
        one.judge()


@pytest.mark.needs_gcc
@pytest.mark.timeout(900)
def test_jumps_of_one_clock(tmp_path: Path) -> None:
    with trial(tmp_path, clocks=True) as (one, clocks):
        assert clocks is not None
        jumps = [(to_s, who) for to_s in JUMPS_S for who in ("leader", "follower")]
        for (to_s, who), _ in zip(cycle(jumps), one.play(len(jumps)), strict=False):
            leader = one.lab.leader()
            victim = leader if who == "leader" else one.lab.followers()[0]
            clocks.jump(victim, to_s)
            wait_for(partial(has_jumped, victim, to_s))
            victim.kill() if one.chance.random() < 0.3 else clocks.jump(victim, 0)
            one.done[f"{who} {to_s:+} s"] += 1
        one.judge()


def has_jumped(member: MemberServer, to_s: int) -> bool:
    """Whether that is the wall clock of a member, from what it writes into the head of an answer."""
    seen_s = parsedate_to_datetime(member.ask("GET", "/livez").headers["Date"]).timestamp()
    return abs(seen_s - time.time() - USUAL_S - to_s) < 60
