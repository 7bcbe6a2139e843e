"""Nodes that crash, vanish and come back, with real processes: what is freed, and that nothing alive is. The row W29."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import Away, Cluster, Got, MemberServer, ask_socket, rounds
from tests.support.server import Server
from tests.support.wire import BOOT_ID, cni_conf, cni_headers

SWIFT = ("--report-every-s", "1", "--heartbeat-every-s", "1", "--evidence-grace-s", "2", "--cooldown-s", "0")
LOST_S = 5
FREED_S = 60.0
QUIET_S = 6.0
"""Long enough for two reports and the grace between them, if they were to free something."""

_numbers = count(1)


class Node(Server):
    """One server, and the calls of its node's pods."""

    def ask(self, method: str, path: str, body: Any = None) -> Got:
        return ask_socket(self.socket, method, path, body)

    def cni(
        self, verb: str, container: str, pod: str = "t/a", netns: str = "", conf: bytes | None = None, **more: str
    ) -> Got:
        """A CNI call; `netns` names a namespace, `Ipamd_Node` in `more` stands for the header."""
        headers = {name.replace("_", "-"): value for name, value in more.items()}
        if netns:
            headers["CNI-Netns"] = path_of(netns)
        own = {**cni_headers(container, pod), **headers}
        return ask_socket(self.socket, "POST", f"/cni/v1/{verb}", conf or cni_conf("p", version="1.1.0"), 10.0, **own)

    def pods(self) -> dict[str, dict[str, Any]]:
        """What is bound on this node, by pod."""
        found = self.ask("GET", f"/v1/nodes/{self.name}").json
        return {one["pod_ref"]: one for one in found.get("attachments", ())}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path, *SWIFT) as server:
        assert server.ask("POST", "/v1/pools", {"name": "p", "subnet": "10.1.0.0/24"}).status == 201
        yield server


@pytest.fixture
def netns() -> Iterator[Callable[[], str]]:
    """Makes network namespaces; those that are there still go at the end."""
    made: list[str] = []

    def make() -> str:
        name = f"ipamd-{os.getpid()}-{next(_numbers)}"
        subprocess.run(["ip", "netns", "add", name], check=True)
        made.append(name)
        return name

    yield make
    for name in made:
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def path_of(name: str) -> str:
    return f"/var/run/netns/{name}"


def remove(name: str) -> None:
    subprocess.run(["ip", "netns", "delete", name], check=True)


def wait_for(what: Callable[[], bool], within_s: float = FREED_S) -> None:
    began = time.monotonic()
    while time.monotonic() - began < within_s:
        if what():
            return
        time.sleep(0.1)
    raise AssertionError(f"it did not come about within {within_s} s")


def test_w29_a_list_older_than_a_pod_says_nothing_of_it(node: Node) -> None:
    node.cni("add", "c1", "t/old")
    before = node.ask("GET", f"/v1/nodes/{node.name}")
    older = {
        "boot_id": BOOT_ID,
        "index": int(before.headers["Ipamd-Index"]),
        "cluster_id": before.json["cluster_id"],
        "attachments": [
            {"cni_network": "net", "container_id": "c1", "ifname": "eth0", "alive": True},
            {"cni_network": "net", "container_id": "c5", "ifname": "eth0", "alive": False},
        ],
    }
    address = node.cni("add", "c5", "t/new").address
    for _ in range(2):
        assert node.ask("POST", f"/v1/nodes/{node.name}/inventory", older).status == 200
        time.sleep(2.5)
    assert node.pods()["t/new"]["state"] == "bound"
    assert node.pods()["t/new"]["addresses"] == [f"{address}/24"]
    assert node.cni("add", "c6", "t/other").address != address


@pytest.mark.needs_root
def test_a_namespace_that_is_gone_frees_its_address_and_one_that_lives_keeps_it(
    node: Node, netns: Callable[[], str]
) -> None:
    lives, dies = netns(), netns()
    kept = node.cni("add", "c1", "t/lives", netns=lives).address
    freed = node.cni("add", "c2", "t/dies", netns=dies).address
    wait_for(lambda: node.pods()["t/dies"]["alive"] is True)
    began_s = time.monotonic()
    remove(dies)
    wait_for(lambda: "t/dies" not in node.pods())
    assert time.monotonic() - began_s > 2
    events = node.ask("GET", "/v1/events?limit=5000").json["items"]
    (event,) = [one for one in events if one["kind"] == "released"]
    assert (event["address"], event["node"]) == (freed, node.name)
    assert "namespace gone" in event["detail"]
    time.sleep(QUIET_S)
    gc = json.loads(cni_conf("p", version="1.1.0")) | {"cni.dev/valid-attachments": []}
    assert node.cni("gc", "none", conf=json.dumps(gc).encode()).code == 0
    assert node.pods()["t/lives"]["addresses"] == [f"{kept}/24"]
    assert not [one for one in events if one["kind"] == "node_name_clash"]


@pytest.mark.needs_root
def test_a_pod_that_lives_here_is_not_taken_over_until_it_is_gone(node: Node, netns: Callable[[], str]) -> None:
    home = netns()
    address = node.cni("add", "c1", "t/a", netns=home).address
    wait_for(lambda: node.pods()["t/a"]["alive"] is True)

    def elsewhere() -> Got:
        return node.cni("add", "c2", "t/a", Ipamd_Node="other")

    refused = elsewhere()
    assert refused.code == 11
    assert f"alive on node {node.name}" in refused.json["msg"]
    assert "node other" in refused.json["msg"]
    remove(home)
    wait_for(lambda: elsewhere().code == 0)
    assert elsewhere().address == address
    kinds = [one["kind"] for one in node.ask("GET", "/v1/events?limit=5000").json["items"]]
    assert (kinds.count("contested"), kinds.count("moved")) == (1, 1)


class Blind(Node):
    """A server in a mount namespace of its own, in which the directory of namespaces is another, empty one."""

    def command(self) -> list[str]:
        script = 'mount -t tmpfs none /run/netns && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", script, "sh", *super().command()]


@pytest.mark.needs_root
@pytest.mark.parametrize("blind", [True, False], ids=["another-directory", "the-same-without-pods"])
def test_who_cannot_know_that_it_looks_in_the_right_place_frees_nothing(
    tmp_path: Path, netns: Callable[[], str], blind: bool
) -> None:
    home, other = netns(), netns()
    server: Node
    with Node(tmp_path, *SWIFT) as server:
        server.ask("POST", "/v1/pools", {"name": "p", "subnet": "10.1.0.0/24"})
        server.cni("add", "c1", "t/a", netns=home)
        wait_for(lambda: server.pods()["t/a"]["alive"] is True)
    again = (Blind if blind else Node)(tmp_path, *SWIFT)
    if not blind:
        remove(home)
    with again as server:
        wait_for(lambda: server.pods()["t/a"]["alive"] is None)
        time.sleep(QUIET_S)
        assert list(server.pods()) == ["t/a"]
        if not blind:
            server.cni("add", "c2", "t/b", netns=other)
            wait_for(lambda: list(server.pods()) == ["t/b"])


@pytest.mark.needs_root
def test_a_record_of_the_runtimes_library_saves_what_looks_gone(tmp_path: Path, netns: Callable[[], str]) -> None:
    first, second = tmp_path / "results", tmp_path / "multus"
    second.mkdir()
    flags = ("--cni-cache-dir", str(first), "--cni-cache-dir", str(second))
    lives, dies = netns(), netns()
    with Node(tmp_path, *SWIFT, *flags) as server:
        server.ask("POST", "/v1/pools", {"name": "p", "subnet": "10.1.0.0/24"})
        server.cni("add", "c1", "t/lives", netns=lives)
        server.cni("add", "c2", "t/dies", netns=dies)
        record = second / "net-c2-eth0"
        record.write_text("{}")
        remove(dies)
        time.sleep(QUIET_S)
        assert server.pods()["t/dies"]["alive"] is None
        record.unlink()
        wait_for(lambda: "t/dies" not in server.pods())
        assert "t/lives" in server.pods()


def test_two_hosts_with_one_name_are_found_out(node: Node) -> None:
    node.cni("add", "c1", "t/a")
    node.cni("add", "c2", "t/b", Ipamd_Boot_Id="another-host")
    assert node.cni("add", "c3", "t/c").code == 0
    wait_for(lambda: node.ask("GET", f"/v1/nodes/{node.name}").json["state"] == "clash")
    gc = json.loads(cni_conf("p", version="1.1.0")) | {"cni.dev/valid-attachments": []}
    assert node.cni("gc", "none", conf=json.dumps(gc).encode()).code == 0
    assert len(node.pods()) == 3
    assert node.ask("DELETE", f"/v1/nodes/{node.name}").status == 204
    wait_for(lambda: node.ask("GET", f"/v1/nodes/{node.name}").json["state"] == "alive")


@pytest.fixture(scope="module")
def swift(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three servers that count a node as lost after LOST_S."""
    directory = tmp_path_factory.mktemp("nodes")
    with Cluster(directory, 3, *SWIFT, "--node-lost-s", str(LOST_S)) as cluster:
        for name, reclaim in (("kept", "never"), ("given-back", "after:60")):
            number = next(_numbers)
            body = {"name": name, "subnet": f"10.{number}.0.0/24", "reclaim": reclaim}
            assert cluster.any().ask("POST", "/v1/pools", body).status == 201
        yield cluster


def state_of(server: MemberServer, name: str) -> str:
    try:
        return str(server.ask("GET", f"/v1/nodes/{name}").json.get("state"))
    except Away:
        return "away"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("way", ["paused", "killed"])
def test_servers_that_were_all_stopped_lose_nobody(swift: Cluster, way: str) -> None:
    """For longer than a node may be silent; at ROUNDS=1 for so long that a lost one would have been reclaimed too."""
    swift.revive()
    for member in swift:
        got = member.add(f"c-{member.name}-{way}", f"t/all-{member.name}", pool="given-back")
        assert got.code == 0
    wait_for(lambda: {state_of(swift.any(), one.name) for one in swift} == {"alive"})
    for member in swift:
        (member.pause if way == "paused" else member.kill)()
    time.sleep(rounds(LOST_S + 60, LOST_S + 3))
    swift.revive()
    swift.leader()
    time.sleep(4)
    assert {state_of(swift.any(), one.name) for one in swift} == {"alive"}
    assert len(swift.any().listed("given-back", stale=False)) == 3


@pytest.mark.timeout(600)
def test_a_dead_node_gives_back_what_its_pools_say_and_nothing_else(swift: Cluster) -> None:
    swift.revive()
    victim = swift.followers()[0]
    one, two = (member for member in swift if member is not victim)
    assert victim.add("d1", "t/kept", pool="kept").code == 0
    assert victim.add("d2", "t/gone", pool="given-back").code == 0
    moved = victim.add("d3", "t/moved", pool="given-back").address
    others = [member.add("d4", f"t/at-{member.name}", pool="given-back").address for member in (one, two)]
    wait_for(lambda: state_of(one, victim.name) == "alive")
    began_s = time.monotonic()
    victim.kill()
    wait_for(lambda: state_of(one, victim.name) == "lost")
    assert two.add("e3", "t/moved", pool="given-back").address == moved
    assert "t/gone" in {row[1] for row in one.listed("given-back", stale=False)}
    wait_for(lambda: "t/gone" not in {row[1] for row in one.listed("given-back", stale=False)}, 180)
    assert time.monotonic() - began_s > 60
    left = {row[1]: row[0].split("/")[0] for row in one.listed("given-back", stale=False)}
    assert left["t/moved"] == moved
    assert [left[f"t/at-{member.name}"] for member in (one, two)] == others
    assert [row[1] for row in one.listed("kept", stale=False)] == ["t/kept"]
    released = swift.ctl("-o", "json", "node", "release", victim.name, "--yes", server=one.name)
    assert [item["pod_ref"] for item in json.loads(released.stdout)["items"]] == ["t/kept"]
    victim.spawn()
    victim.wait_ready()
    wait_for(lambda: state_of(one, victim.name) == "alive")
