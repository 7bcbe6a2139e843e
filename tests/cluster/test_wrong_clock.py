"""One member's wall clock is wrong: the log's is not spoiled by it, and no token ends before its time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from tests.cluster.clocks import USUAL_S, Clocks
from tests.support.cluster import Cluster, MemberServer
from tests.support.stopwatch import Stopwatch

YEAR_S = 365 * 86_400

pytestmark = pytest.mark.needs_gcc


@pytest.fixture
def skewed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Clocks]]:
    cluster = Cluster(tmp_path_factory.mktemp("clocks"))
    clocks = Clocks(cluster)
    with cluster:
        cluster.pool()
        yield cluster, clocks


def wall_s(member: MemberServer) -> float:
    """The wall clock of the log, as a new event has it."""
    name = f"t{time.monotonic_ns()}"
    made = member.ask("POST", "/v1/tokens", {"name": name, "role": "reader", "ttl_s": 3600})
    assert made.status == 201
    return datetime.fromisoformat(made.json["created"]).timestamp()


def right_s() -> float:
    """What it should show."""
    return time.time() + USUAL_S


def wait_for(member: MemberServer, sentence: str, times: int = 1) -> None:
    deadline_s = time.monotonic() + 90
    while member.log.count(sentence) < times:
        assert time.monotonic() < deadline_s, sentence
        time.sleep(0.1)


def test_a_leader_whose_clock_jumps_ends_no_token(skewed: tuple[Cluster, Clocks]) -> None:
    cluster, clocks = skewed
    leader = cluster.leader()
    made = leader.ask("POST", "/v1/tokens", {"name": "ci", "role": "reader", "ttl_s": 3600}).json
    assert abs(wall_s(leader) - right_s()) < 60
    began = Stopwatch(*cluster)
    while began.spent_s() < 1.5:  # everybody has compared by then
        time.sleep(0.1)
    clocks.jump(leader, YEAR_S)
    for _ in range(5):
        assert abs(wall_s(leader) - right_s()) < 120
        time.sleep(0.1)
    wait_for(leader, "ahead of the others'")
    assert abs(wall_s(leader) - right_s()) < 180
    listed = cluster.followers()[0].ask("GET", "/v1/tokens").json["items"]
    assert [one["expires"] for one in listed if one["id"] == made["id"]] == [made["expires"]]
    clocks.jump(leader, 0)
    wait_for(leader, "the clock of this member is right again")
    assert abs(wall_s(leader) - right_s()) < 60


def test_a_wrong_follower_that_comes_to_lead_spoils_nothing(skewed: tuple[Cluster, Clocks]) -> None:
    cluster, clocks = skewed
    follower = cluster.followers()[0]
    clocks.jump(follower, YEAR_S)
    wait_for(follower, "ahead of the others'")
    assert cluster.ctl("cluster", "transfer", follower.name).returncode == 0
    assert cluster.leader() is follower
    assert abs(wall_s(follower) - right_s()) < 120
    assert cluster.ctl("cluster", "transfer").returncode == 0
    leader = cluster.leader()
    assert leader is not follower
    assert abs(wall_s(leader) - right_s()) < 60
