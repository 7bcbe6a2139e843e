"""Any member answers, with any minority away: the rows P01, T02, R10c, H23c, W25 and S10."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.cluster import Away, Cluster, Got, MemberServer, owned_twice
from tests.support.plugin import Runtime
from tests.support.stopwatch import Stopwatch


def test_p01_with_one_stopped_the_two_others_give_addresses(three: Cluster, pool: str) -> None:
    victim, *others = [*three]
    assert victim.stop() == 0
    given = [member.add(f"c{number}", "t/a", pool=pool) for number, member in enumerate(others)]
    assert [got.code for got in given] == [0, 0]
    assert [(address.split("/")[0], pod, container) for address, pod, _, container in three.level(pool)] == [
        (given[0].address, "t/a", "c1")
    ]
    status = three.ctl("-o", "json", "cluster", "status")
    assert status.returncode == 5
    members = {member["name"]: member["reachable"] for member in json.loads(status.stdout)["members"]}
    assert members == {"n1": False, "n2": True, "n3": True}


def test_t02_a_server_that_hangs_costs_a_client_little(three: Cluster, pool: str) -> None:
    pods = [f"t/{number}" for number in range(5)]
    assert [three["n1"].add(f"c{pod[2:]}", pod, pool=pool).code for pod in pods] == [0] * 5
    three["n3"].pause()
    three.leader([three["n1"], three["n2"]])
    servers = [f for name in ("n3", "n1", "n2") for f in ("--server", f"unix:{three[name].socket}")]
    for words in (("cluster", "status"), ("reservation", "list")):
        began = time.monotonic()
        three.ctl("-o", "json", *words, server="n1")
        usual_s = time.monotonic() - began
        began = time.monotonic()
        done = three.ctl(*servers, "-o", "json", *words, server="n3")
        assert time.monotonic() - began < 5 + 2 * usual_s, "it is its share of ten seconds, and not all of them"
        found = json.loads(done.stdout)
        if words[0] == "cluster":
            assert done.returncode == 5
            assert {one["name"] for one in found["members"] if one["reachable"] is False} == {"n3"}
        else:
            assert done.returncode == 0
            assert [item["pod_ref"] for item in found["items"] if item["pool"] == pool] == pods


def test_r10c_a_read_sees_what_was_acknowledged_elsewhere_or_says_that_it_cannot(three: Cluster, pool: str) -> None:
    n1, n2, n3 = three
    for number in range(20):
        assert n1.add(f"c{number}", f"t/{number}", pool=pool).code == 0
        assert f"t/{number}" in {pod for _, pod, _, _ in n2.listed(pool, stale=False)}
        assert n2.ask("GET", f"/v1/reservations?pool={pool}&stale=ok").headers["Ipamd-Stale"] == "true"
    n3.pause()
    three.leader([n1, n2])
    assert n1.add("cb", "t/b", pool=pool).code == 0
    n1.kill()
    n2.kill()
    n3.go_on()
    began = Stopwatch(n3)
    plain = n3.ask("GET", f"/v1/reservations?pool={pool}", timeout_s=3)
    assert began.spent_s() < 3.5
    assert (plain.status, plain.json["outcome"]) == (503, "none")
    assert plain.headers["Retry-After"]
    stale = n3.ask("GET", f"/v1/reservations?pool={pool}&stale=ok")
    assert stale.status == 200
    assert stale.headers["Ipamd-Stale"] == "true"
    assert int(stale.headers["Ipamd-Index"]) > 0
    assert {item["pod_ref"] for item in stale.json["items"]} >= {f"t/{number}" for number in range(20)}


def test_h23c_status_says_that_nothing_could_be_given(three: Cluster, pool: str, tmp_path: Path) -> None:
    three["n1"].kill()
    plugin = Runtime(tmp_path)
    plugin.settings(f"address unix:{three['n1'].socket}")
    conf = json.dumps({"cniVersion": "1.1.0", "name": "net", "ipam": {"type": "ipamd", "pool": pool}}).encode()
    done = plugin.run("STATUS", stdin=conf)
    assert (done.status, json.loads(done.stdout)["code"]) == (1, 11)
    away_s = done.took_s
    plugin.settings(f"address unix:{three['n2'].socket}")
    usual = plugin.run("STATUS", stdin=conf)
    assert usual.status == 0
    assert away_s < 5 + usual.took_s
    three["n3"].kill()
    done = plugin.run("STATUS", stdin=conf)
    assert (done.status, json.loads(done.stdout)["code"]) == (1, 50)
    assert done.took_s < 5 + usual.took_s


def test_w25_a_del_without_quorum_is_put_aside_and_frees_later(three: Cluster, pool: str) -> None:
    n1, n2, n3 = three
    given = n1.add("c1", "t/a", pool=pool)
    assert given.code == 0
    n2.kill()
    n3.kill()
    began = Stopwatch(n1)
    assert n1.cni("del", "c1", pool=pool, timeout_s=4).code == 0
    assert began.spent_s() < 1
    assert n1.listed(pool) == [(f"{given.address}/16", "t/a", "eth0", "c1")]
    three.revive()
    began = Stopwatch(*three)
    while three.level(pool):
        assert began.spent_s() < 10
        time.sleep(0.05)
    for member in three:
        shown = member.ask("GET", f"/v1/addresses/{given.address}").json
        assert shown["state"] in ("free", "cooling"), shown


def test_w25_with_del_policy_error_a_del_without_quorum_is_no_success(tmp_path: Path) -> None:
    with Cluster(tmp_path, 3, "--del-policy", "error") as cluster:
        cluster.pool()
        given = cluster["n1"].add("c1", "t/a")
        cluster["n2"].kill()
        cluster["n3"].kill()
        began = Stopwatch(cluster["n1"])
        assert cluster["n1"].cni("del", "c1", timeout_s=4).code == 11
        assert began.spent_s() < 5
        assert cluster["n1"].listed() == [(f"{given.address}/16", "t/a", "eth0", "c1")]
        cluster.revive()
        assert cluster["n1"].cni("del", "c1").code == 0
        assert cluster.level() == []


def test_s10_what_was_abandoned_while_the_leader_slept_is_there_once_at_most(three: Cluster, pool: str) -> None:
    leader = three.leader()

    def try_to_add(number: int) -> Got | None:
        with suppress(Away):
            return leader.add(f"a{number}", f"abandoned/{number}", pool=pool, timeout_s=2)
        return None

    with ThreadPoolExecutor(100) as callers:
        leader.pause()
        waiting = [callers.submit(try_to_add, number) for number in range(100)]
        time.sleep(5)
        leader.go_on()
        for one in waiting:
            one.result()
        new = list(callers.map(lambda n: three.any().add(f"n{n}", f"new/{n}", pool=pool), range(100)))
    assert [got.code for got in new] == [0] * 100
    listed = three.level(pool)
    pods = [pod for _, pod, _, _ in listed]
    assert len(pods) == len(set(pods))
    assert {pod for pod in pods if pod.startswith("new/")} == {f"new/{number}" for number in range(100)}
    assert owned_twice(listed) == []


@pytest.mark.parametrize("asked", ["leader", "follower"])
def test_an_answer_comes_from_any_member_in_time_after_the_leader_died(three: Cluster, pool: str, asked: str) -> None:
    leader = three.leader()
    others = three.followers()
    leader.kill()
    began = Stopwatch(*others)
    got = others[0].add("c", "t/a", pool=pool)
    assert got.code == 0, got.body
    assert began.spent_s() < 4
    if asked == "leader":
        leader.start()
        assert _first(leader, pool).address == got.address


def _first(member: MemberServer, pool: str) -> Got:
    got = member.add("c", "t/a", pool=pool)
    assert got.code == 0, got.body
    return got
