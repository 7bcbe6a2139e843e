"""Real CNI plugins in real network namespaces: bridge, macvlan and ptp get their addresses from a real server."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.cni import CNI_BIN, Answer, Namespaces, Runtime, Sandbox, inside, ip
from demo.server import BIN
from tests.e2e.networks import FORWARD, NETWORKS
from tests.support.server import Server

pytestmark = [pytest.mark.needs_root, pytest.mark.needs_plugins]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server")) as running:
        for network in NETWORKS.values():
            ask(running, "POST", "/v1/pools", network.pool)
        yield running


@pytest.fixture(scope="module")
def runtime(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Runtime:
    folder = tmp_path_factory.mktemp("bin")
    subprocess.run([BIN / "ipamctl", "cni", "install", "--bin-dir", folder], check=True, capture_output=True)
    return Runtime((folder, CNI_BIN), f"unix:{server.socket}")


@pytest.fixture
def namespaces() -> Iterator[Namespaces]:
    forward = FORWARD.read_text()
    made = Namespaces(f"ipamd-e2e-{os.getpid()}-{secrets.token_hex(2)}")
    try:
        yield made
    finally:
        made.close()
        FORWARD.write_text(forward)


@pytest.fixture(params=NETWORKS)
def net(request: pytest.FixtureRequest, server: Server, runtime: Runtime, namespaces: Namespaces) -> Net:
    return Net(request.param, server, runtime, namespaces)


def ask(server: Server, method: str, path: str, body: object = None) -> Any:
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{server.url}{path}", data, headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


class Net:
    """A network of one kind, with its pods."""

    def __init__(self, kind: str, server: Server, runtime: Runtime, namespaces: Namespaces) -> None:
        self.kind, self.server, self.runtime, self.namespaces = kind, server, runtime, namespaces
        self.pool = NETWORKS[kind].pool["name"]
        ipam = {"type": "ipamd", "pool": self.pool}
        self.conf = {"cniVersion": "1.0.0", "name": f"net-{kind}", "ipam": ipam} | NETWORKS[kind].configure(namespaces)

    def sandbox(self, pod: str) -> Sandbox:
        """A new life of a pod."""
        container_id = secrets.token_hex(16)
        return Sandbox(pod, container_id, self.namespaces.add(container_id[:8]))

    def add(self, sandbox: Sandbox) -> Answer:
        """A successful ADD."""
        answer = self.runtime.call("ADD", self.conf, sandbox)
        assert answer.status == 0, answer.said
        return answer

    def delete(self, sandbox: Sandbox) -> None:
        """A successful DEL."""
        answer = self.runtime.call("DEL", self.conf, sandbox)
        assert answer.status == 0, answer.said

    def check(self, sandbox: Sandbox, result: Answer) -> Answer:
        """A CHECK with an ADD's result."""
        return self.runtime.call("CHECK", self.conf | {"prevResult": result.said}, sandbox)

    def holders(self) -> dict[str, str]:
        """Address to container id, as the server says."""
        items = ask(self.server, "GET", f"/v1/reservations?pool={self.pool}")["items"]
        attachments = [attachment for item in items for attachment in item["attachments"]]
        return {held.partition("/")[0]: one["container_id"] for one in attachments for held in one["addresses"]}


def reaches(sandbox: Sandbox, address: str) -> bool:
    return inside(sandbox.netns, "ping", "-c", "1", "-W", "30", address).returncode == 0


def address_on(sandbox: Sandbox) -> list[str]:
    """What the namespace's eth0 really has."""
    shown = json.loads(ip("-n", Path(sandbox.netns).name, "-j", "-4", "addr", "show", "dev", "eth0"))
    return [info["local"] for link in shown for info in link["addr_info"]]


def test_two_pods_reach_each_other_and_end(net: Net) -> None:
    one, two = net.sandbox("e2e/one"), net.sandbox("e2e/two")
    first, second = net.add(one), net.add(two)
    (address_one,), (address_two,) = first.addresses, second.addresses
    assert (address_on(one), address_on(two)) == ([address_one], [address_two])
    assert reaches(one, address_two)
    assert reaches(two, address_one)
    assert net.holders() == {address_one: one.container_id, address_two: two.container_id}
    for sandbox in (one, two, one, two):
        net.delete(sandbox)
    assert net.holders() == {}


def test_check_agrees_until_the_pod_ends(net: Net) -> None:
    sandbox = net.sandbox("e2e/checked")
    result = net.add(sandbox)
    checked = net.check(sandbox, result)
    assert checked.status == 0, checked.said
    net.delete(sandbox)
    gone = net.check(sandbox, result)
    assert gone.status == 1
    assert gone.said["code"] == 113


def test_a_repeated_del_succeeds_with_and_without_its_namespace(net: Net) -> None:
    sandbox = net.sandbox("e2e/ended")
    net.add(sandbox)
    net.delete(sandbox)
    net.delete(sandbox)
    net.namespaces.delete(sandbox.netns)
    net.delete(sandbox)
    net.delete(Sandbox(sandbox.pod, sandbox.container_id, ""))
    assert net.holders() == {}


def test_the_order_of_a_reboot_keeps_the_address(net: Net) -> None:
    """After a reboot the runtime ends the old sandbox, starts a new one, and ends the old one again."""
    old, peer = net.sandbox("e2e/rebooted"), net.sandbox("e2e/peer")
    (before,), (other,) = net.add(old).addresses, net.add(peer).addresses
    net.namespaces.delete(old.netns)
    net.delete(old)
    new = net.sandbox("e2e/rebooted")
    (after,) = net.add(new).addresses
    assert after == before
    net.delete(old)
    assert net.holders() == {after: new.container_id, other: peer.container_id}
    assert reaches(peer, after)
    for sandbox in (new, peer):
        net.delete(sandbox)


def test_a_restart_without_any_del_keeps_the_address(net: Net) -> None:
    old = net.sandbox("e2e/crashed")
    (before,) = net.add(old).addresses
    net.namespaces.delete(old.netns)
    net.server.restart()
    new = net.sandbox("e2e/crashed")
    assert net.add(new).addresses == [before]
    net.delete(old)
    assert net.holders() == {before: new.container_id}
    net.delete(new)
    assert net.holders() == {}
