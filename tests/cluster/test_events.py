"""Who follows the events reads all of them once, in one order, whatever becomes of the servers meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.followers import Consumer, all_pages, numbered
from tests.cluster.load import Load, wait_for
from tests.support.cluster import Cluster, MemberServer, rounds
from tests.support.lab import Lab

ROUNDS = rounds(10, 2)
LOADED = 100
"""So many calls are answered between two kills."""


def judge(cluster: Cluster, consumers: list[Consumer]) -> int:
    """All consumers read what the pages of each member say. How many events that were."""
    (first, *others) = [all_pages(member) for member in cluster]
    numbered(first)
    assert all(pages == first for pages in others)
    for consumer in consumers:
        seen = consumer.wait_for(first[-1]["index"])
        assert seen == first
    return len(first)


def go_on(load: Load) -> None:
    """Let the load go on for a while."""
    before = load.history.acknowledged
    wait_for(lambda: load.history.acknowledged >= before + LOADED)


@pytest.mark.timeout(300 + 100 * ROUNDS)
def test_two_consumers_read_the_same_while_leaders_are_killed(three: Cluster, tmp_path: Path) -> None:
    n1, n2, n3 = three
    load = Load(three, 1)
    with Consumer(tmp_path, "one", (n1, n2, n3)) as one, Consumer(tmp_path, "two", (n2, n3, n1)) as two:
        with load.running():
            for _ in range(ROUNDS):
                go_on(load)
                leader = three.leader()
                leader.kill()
                three.leader([member for member in three if member is not leader])
                go_on(load)
                leader.start()
        count = judge(three, [one, two])
    print(f"{ROUNDS} leaders killed: two consumers read the same {count} events")  # noqa: T201 - figures
    assert count > 50 * ROUNDS


def test_a_consumer_whose_own_server_stops_in_peace_goes_on_at_once(three: Cluster, pool: str, tmp_path: Path) -> None:
    own, other = three.followers()
    assert other.add("c0", "t/0", pool=pool).code == 0
    last = all_pages(other)[-1]["index"]
    with Consumer(tmp_path, "one", (own, other), "--pool", pool) as consumer:
        consumer.wait_for(last)
        began = time.monotonic()
        assert own.stop() == 0
        stopped_s = time.monotonic() - began
        assert other.add("c1", "t/1", pool=pool).code == 0
        seen = consumer.wait_for(last + 1)
    assert [event["index"] for event in seen] == [last - 1, last, last + 1]
    assert stopped_s < 20, "streams hold nothing up"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Three members in namespaces."""
    with Lab(tmp_path_factory.mktemp("lab")) as built:
        yield built


def add_some(member: MemberServer, name: str, count: int) -> None:
    for number in range(count):
        assert member.add(f"{name}{number}", f"{name}/{number}").code == 0


@pytest.mark.needs_root
def test_consumers_of_members_that_are_cut_off_read_on_elsewhere_or_after_it(lab: Lab, tmp_path: Path) -> None:
    leader = lab.leader()
    cut, other = [member for member in lab if member is not leader]
    lab.pool()
    with (
        Consumer(tmp_path, "stays", (cut,)) as stays,
        Consumer(tmp_path, "leaves", (cut, other)) as leaves,
        Consumer(tmp_path, "narrowed", (cut,), "--pool", "p") as narrowed,
    ):
        add_some(other, "before", 5)
        for consumer in (stays, leaves, narrowed):
            consumer.wait_for(6)
        lab.network.isolate(cut.name)
        add_some(other, "apart", 5)
        assert [event["index"] for event in leaves.wait_for(11)] == list(range(1, 12))
        assert len(stays.events) == len(narrowed.events) == 6
        lab.revive()
        lab.leader()
        add_some(other, "after", 5)
        last = all_pages(other)[-1]["index"]
        for consumer in (stays, leaves, narrowed):
            seen = consumer.wait_for(last)
            numbered(seen)
            assert seen == all_pages(cut)
