"""Members that are cut off, each in a network namespace: the rows T01, T02, T04, P12 and R10c, and isolated leaders."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from tests.support.cluster import Away, Got, MemberServer, owned_twice, rounds
from tests.support.delays import Delays
from tests.support.lab import CLIENT, Lab
from tests.support.server import Server
from tests.support.stopwatch import Stopwatch

pytestmark = pytest.mark.needs_root

ELECTION_S = 2.5
"""Within this a cluster writes again, and a leader that hears nobody knows it."""

_subnets = count(1)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Three members in namespaces."""
    with Lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@pytest.fixture
def lab(built: Lab) -> Lab:
    """The three, ready and connected."""
    built.revive()
    built.leader()
    return built


@pytest.fixture
def pool(lab: Lab) -> str:
    """A pool that this test alone has."""
    number = next(_subnets)
    lab.pool(f"p{number}", f"10.{number}.0.0/16")
    return f"p{number}"


def attempt(member: MemberServer, container: str, pod: str, pool: str, timeout_s: float = 1.0) -> Got | None:
    """An ADD; None: no answer came."""
    with suppress(Away):
        return member.add(container, pod, pool=pool, timeout_s=timeout_s)
    return None


@pytest.mark.parametrize("ways", [{}, {"hears": True}, {"is_heard": True}], ids=["cut off", "mute", "deaf"])
def test_an_isolated_leader_knows_it_and_acknowledges_nothing(lab: Lab, pool: str, ways: dict[str, bool]) -> None:
    leader = lab.leader()
    others = [member for member in lab if member is not leader]
    lab.network.isolate(leader.name, **ways)
    began = Stopwatch(leader)
    with ThreadPoolExecutor(12) as callers:
        writes = [callers.submit(attempt, leader, f"w{n}", f"lost/{n}", pool) for n in range(6)]
        query = f"/v1/reservations?pool={pool}"
        reads = [callers.submit(leader.ask, "GET", query, timeout_s=1.0) for _ in range(6)]
        while leader.status()["leader"] == leader.name:
            assert began.spent_s() < ELECTION_S
            time.sleep(0.05)
        answers = [one.result() for one in writes]
        seen = [one.result() for one in reads]
    assert [got.code for got in answers if got is not None] == [11] * len([got for got in answers if got is not None])
    assert [got.status for got in seen] == [503] * 6
    lab.leader(others)
    assert others[0].add("c", "t/a", pool=pool).code == 0
    lab.revive()
    lab.leader()
    listed = lab.level(pool)
    assert "t/a" in {pod for _, pod, _, _ in listed}
    assert owned_twice(listed) == []


def test_t01_a_dead_member_behind_a_black_hole_delays_nobody(lab: Lab, pool: str) -> None:
    victim, asked = lab.followers()
    term = asked.status()["term"]
    lab.network.isolate(victim.name)
    victim.kill()
    for number in range(rounds(60)):
        began_s, began = time.monotonic(), Stopwatch(*(member for member in lab if member.is_running))
        assert asked.add(f"c{number}", f"t/{number}", pool=pool).code == 0
        assert began.spent_s() < ELECTION_S
        time.sleep(max(0.0, began_s + 1 - time.monotonic()))
    assert asked.status()["term"] <= term + 1


def test_t02_a_server_behind_a_black_hole_costs_a_client_little(lab: Lab, pool: str, tmp_path: Path) -> None:
    pods = [f"t/{number}" for number in range(9)]
    assert [lab["n1"].add(f"c{pod[2:]}", pod, pool=pool).code for pod in pods] == [0] * 9
    minted = lab["n1"].ask("POST", "/v1/tokens", {"name": tmp_path.name, "role": "admin"})
    (tmp_path / "token").write_text(minted.json["secret"])
    lab.network.isolate("n3")
    lab.leader([lab["n1"], lab["n2"]])
    servers = [word for name in ("n3", "n1", "n2") for word in ("--server", lab[name].url)]
    began_s = time.monotonic()
    lab.remote(tmp_path / "token", *servers[2:], "-o", "json", "cluster", "status")
    usual_s = time.monotonic() - began_s
    for _ in range(rounds(20)):
        began_s = time.monotonic()
        status = lab.remote(tmp_path / "token", *servers, "-o", "json", "cluster", "status")
        status_s = time.monotonic() - began_s
        listed = lab.remote(tmp_path / "token", *servers, "-o", "json", "reservation", "list", "--pool", pool)
        assert max(status_s, time.monotonic() - began_s - status_s) < 4 + 2 * usual_s
        assert (status.returncode, listed.returncode) == (5, 0), status.stderr + listed.stderr
        members = {one["name"]: one["reachable"] for one in json.loads(status.stdout)["members"]}
        assert members == {"n1": True, "n2": True, "n3": False}
        assert [item["pod_ref"] for item in json.loads(listed.stdout)["items"]] == pods


@pytest.mark.timeout(600)
def test_t04_time_outs_fit_slow_links(tmp_path: Path) -> None:
    """150 ms each way; the defaults are for a rack, the settings for more."""
    slow = ("--raft-heartbeat-ms", "500", "--raft-min-timeout-ms", "2500", "--raft-max-timeout-ms", "4500")
    with Lab(tmp_path, 3, *slow) as lab:
        lab.pool()
        with Delays(lab.network, list(lab.members), 0.15) as delays:
            leader = lab.leader()
            term = leader.status()["term"]
            asked = lab.followers()[0]
            for number in range(rounds(100)):
                began_s = time.monotonic()
                assert asked.add(f"c{number}", f"t/{number}").code == 0
                assert time.monotonic() - began_s > 0.6, "two ways there and back were not delayed"
                time.sleep(max(0.0, began_s + 0.6 - time.monotonic()))
            assert (lab.leader(), leader.status()["term"]) == (leader, term)
            assert delays.delayed > 10 * rounds(100)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (("--raft-min-timeout-ms", "2000", "--raft-max-timeout-ms", "1000"), "raft-max-timeout-ms"),
        (("--raft-min-timeout-ms", "0"), "raft-min-timeout-ms"),
    ],
)
def test_t04_bad_time_outs_are_refused_by_name(tmp_path: Path, flags: tuple[str, ...], named: str) -> None:
    """Others have its ports: whoever opened one first would speak of that."""
    server = Server(tmp_path, *flags)
    with socket.create_server((server.host, server.port)), socket.create_server((server.host, server.raft_port)):
        done = subprocess.run(server.command(), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert named in done.stderr
    assert "in use" not in done.stderr
    assert not server.data_dir.exists()
    assert not server.socket.exists()


@pytest.mark.timeout(300 + 60 * rounds(20, 3))
def test_p12_leaders_that_are_cut_off_in_turn_give_nothing_twice(lab: Lab, pool: str) -> None:
    """With each swap the one that was cut off is back among the others at the moment at which their leader goes."""
    others_address, leader = None, lab.leader()
    for number in range(rounds(20, 3)):
        pending = threading.Thread(target=attempt, args=(leader, f"a{number}", "t/a", pool, 2.0))
        if number % 2:
            pending.start()
        lab.network.isolate_instead(leader.name)
        if not number % 2:
            pending.start()
        leader = lab.leader([member for member in lab if member is not leader])
        given = leader.add(f"b{number}", "t/b", pool=pool)
        assert given.code == 0
        assert others_address in (None, given.address)
        others_address = given.address
        pending.join()
    lab.revive()
    listed = lab.level(pool)
    assert [address.split("/")[0] for address, pod, _, _ in listed if pod == "t/b"] == [others_address]
    assert owned_twice(listed) == []
    assert {pod for _, pod, _, _ in listed} <= {"t/a", "t/b"}


def test_r10c_who_is_cut_off_says_so(lab: Lab, pool: str) -> None:
    n1, n2, n3 = lab
    assert n1.add("c", "t/a", pool=pool).code == 0
    lab.network.isolate("n3")
    lab.leader([n1, n2])
    assert n1.add("cb", "t/b", pool=pool).code == 0
    began = Stopwatch(n3)
    plain = n3.ask("GET", f"/v1/reservations?pool={pool}", timeout_s=2)
    assert began.spent_s() < 2.5
    assert (plain.status, plain.json["outcome"]) == (503, "none")
    stale = n3.ask("GET", f"/v1/reservations?pool={pool}&stale=ok")
    assert (stale.status, stale.headers["Ipamd-Stale"]) == (200, "true")
    assert int(stale.headers["Ipamd-Index"]) > 0
    assert "t/b" not in {item["pod_ref"] for item in stale.json["items"]}
    assert "t/b" in {pod for _, pod, _, _ in n2.listed(pool, stale=False)}
    lab.network.heal()
    lab.leader()
    assert "t/b" in {pod for _, pod, _, _ in n3.listed(pool, stale=False)}


def test_a_cut_between_two_that_both_reach_the_third_stops_nobody(lab: Lab, pool: str) -> None:
    leader = lab.leader()
    one, other = lab.followers()
    lab.network.cut((one.name, other.name), (other.name, one.name))
    term = leader.status()["term"]
    for number in range(5):
        for at, member in enumerate(lab):
            began = Stopwatch(*lab)
            assert member.add(f"c{number}-{at}", f"t/{number}-{at}", pool=pool).code == 0
            assert began.spent_s() < 3
    assert leader.status()["term"] == term
    assert CLIENT in lab.network.addresses
