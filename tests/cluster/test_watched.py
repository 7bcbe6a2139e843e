"""What operators see of a cluster: its metrics, and what can still be looked at while nobody leads."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import pytest

from ipamd.metrics import TABLE
from tests.cluster.load import wait_for
from tests.support.agent import Agent
from tests.support.cluster import BIN, Cluster, MemberServer
from tests.support.metrics import Scrape

ENDING = re.compile(r" \(node [\w.:-]+, request [0-9a-f]{16}\)$")
WARNING = "warning: no leader answers; this is what unix:"


def scrape(server: MemberServer | Agent) -> Scrape:
    got = server.ask("GET", "/metrics")
    assert got.status == 200
    return Scrape(got.body)


def test_all_metrics_of_the_table_are_there_and_no_others(three: Cluster, pool: str) -> None:
    assert three["n1"].add("c1", "t/a", pool=pool).code == 0
    assert three["n1"].cni("del", "c1", "t/a", pool=pool).code == 0
    three["n1"].ask("GET", "/v1/pools")
    found = [scrape(member) for member in three]
    there = {metric.name for metric in TABLE if metric.on_server and "absent without backup-dir" not in metric.about}
    assert set.union(*(one.names for one in found)) == there
    (leads,) = (one for one in found if one.value("ipamd_raft_is_leader") == 1)
    leader = three.leader().name
    assert {line.labels["member"] for line in leads.all("ipamd_raft_peer_lag_entries")} == {"n1", "n2", "n3"} - {leader}
    for one in found:
        assert one.value("ipamd_raft_members") == 3
        assert one.value("ipamd_raft_has_leader") == one.value("ipamd_ready") == 1
        assert one.value("ipamd_certificate_expiry_timestamp_seconds") > time.time() + 300 * 86400
        assert one.value("ipamd_state_differs") == one.value("ipamd_writes_halted") == 0
    assert {one.value("ipamd_raft_term") for one in found} == {leads.value("ipamd_raft_term")}


def test_the_leader_tells_of_a_member_that_does_not_answer(three: Cluster, pool: str) -> None:
    leader, silent = three.leader(), three.followers()[0]
    silent.pause()
    for number in range(20):
        assert leader.add(f"c{number}", f"t/{number}", pool=pool).code == 0

    def is_told() -> bool:
        seen = scrape(leader)
        silence_s = seen.value("ipamd_raft_peer_silent_seconds", member=silent.name)
        return silence_s > 1 and seen.value("ipamd_raft_peer_lag_entries", member=silent.name) >= 10

    wait_for(is_told)
    silent.go_on()
    wait_for(lambda: scrape(leader).value("ipamd_raft_peer_silent_seconds", member=silent.name) < 1)
    wait_for(lambda: scrape(leader).value("ipamd_raft_peer_lag_entries", member=silent.name) == 0)


def test_all_metrics_of_an_agent_are_there_and_no_others(three: Cluster, pool: str, tmp_path: Path) -> None:
    made = three.any().ask("POST", "/v1/tokens", {"name": "w1", "role": "node", "node": "w1"}).json
    (tmp_path / "token").write_text(made["secret"])
    flags = ("--token-file", str(tmp_path / "token"), "--tls-ca", three["n1"].tls[5])
    with Agent(tmp_path, "w1", [member.url for member in three], *flags) as agent:
        assert agent.cni("add", "c1", "t/a", pool=pool).code == 0
        assert agent.cni("add", "c2", "t/b", pool="nowhere").code == 7
        agent.ask("GET", "/livez")
        seen = scrape(agent)
        assert seen.names == {metric.name for metric in TABLE if metric.on_agent}
        assert seen.value("ipamd_cni_calls_total", verb="add", code="0") == 1
        assert seen.value("ipamd_cni_calls_total", verb="add", code="7") == 1
        assert seen.value("ipamd_upstream_servers") == 3
        assert seen.value("ipamd_upstream_silent_seconds") < 20
        (call,) = agent.ask("GET", "/v1/calls?pod_ref=t/b").json["items"]
        assert (call["code"], call["pod_ref"]) == (7, "t/b")
        assert ENDING.search(call["msg"])
        assert why(agent, "t/a")[:2] == (0, "")
        status, stderr, stdout = why(agent, "t/b")
        assert (status, "there is no pool nowhere" in stderr, stdout) == (4, True, "")
        status, stderr, _ = why(agent, "t/c")
        assert (status, stderr.endswith("nothing is known here of pod t/c: name the pool\n")) == (1, True)


def why(agent: Agent, pod: str) -> tuple[int, str, str]:
    """What ipamctl says on the agent's host: exit status, stderr, stdout."""
    command = [str(BIN / "ipamctl"), "--server", f"unix:{agent.socket}", "why", "--pod", pod]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stderr, done.stdout


@pytest.fixture
def last(three: Cluster, pool: str) -> MemberServer:
    """The one that runs of three, without a quorum; pod t/a has an address."""
    assert three["n1"].add("c1", "t/a", pool=pool).code == 0
    three.level(pool)
    three["n2"].kill()
    three["n3"].kill()
    wait_for(lambda: three["n1"].status()["leader"] is None)
    return three["n1"]


def test_without_a_leader_reads_fall_back_where_they_say_so(three: Cluster, last: MemberServer, pool: str) -> None:
    address = last.listed(pool)[0][0].split("/")[0]
    for words, status, shown in (
        (("cluster", "status"), 5, "n2"),
        (("who", address), 0, "t/a"),
        (("who", address, "--at", "-0s"), 0, "t/a"),
        (("node", "show", "n1"), 0, "t/a"),
        (("why", pool), 0, "free"),
        (("why", "--pod", "t/a"), 0, address),
    ):
        done = three.ctl("--timeout", "6", *words, server="n1")
        assert (done.returncode, shown in done.stdout) == (status, True), (words, done)
        assert [line for line in done.stderr.splitlines() if WARNING in line] == done.stderr.splitlines()[:1], words
        asked = three.ctl("--stale", "--timeout", "6", *words, server="n1")
        assert (asked.returncode, WARNING in asked.stderr) == (status, False), (words, asked)
    plain = three.ctl("--timeout", "2", "pool", "list", server="n1")
    assert (plain.returncode, "no leader" in plain.stderr) == (3, True)
    stale = three.ctl("--stale", "-o", "json", "pool", "list", server="n1")
    assert pool in {item["name"] for item in json.loads(stale.stdout)["items"]}
    calls = three.ctl("node", "calls", "--pod", "t/a", server="n1")
    assert (calls.returncode, calls.stderr) == (0, "")


def test_without_a_leader_metrics_and_sentences_say_so(last: MemberServer, pool: str) -> None:
    seen = scrape(last)
    assert seen.value("ipamd_raft_has_leader") == seen.value("ipamd_raft_is_leader") == 0
    assert seen.value("ipamd_pool_addresses", pool=pool, state="bound") == 1
    refused = last.add("c2", "t/b", pool=pool, timeout_s=2)
    assert refused.code == 11
    assert "there is no leader" in refused.json["msg"]
    assert last.cni("del", "c1", "t/a", pool=pool).code == 0
    waits = last.add("c3", "t/c", pool=pool, timeout_s=2)
    assert "to be delivered before this" in waits.json["msg"]
    assert ENDING.search(waits.json["msg"])
    assert ENDING.search(refused.json["msg"])
    seen = scrape(last)
    assert (seen.value("ipamd_spool_length"), seen.value("ipamd_cni_spooled_total")) == (1, 1)
    assert seen.value("ipamd_cni_calls_total", verb="add", code="11") == 2
