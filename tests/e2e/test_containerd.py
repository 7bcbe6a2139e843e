"""Pods as a kubelet starts them: Debian's containerd runs the real plugins, and loses its patience, its life, its host.

There is no kubelet here; its calls come from the tests, in its order: stop the old sandbox, run the new one, remove
the old one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from tests.e2e.node import Worker, running
from tests.support.cri import Cri, Pod
from tests.support.door import SlowDoor
from tests.support.host import wait_until

pytestmark = [pytest.mark.needs_root, pytest.mark.needs_plugins, pytest.mark.needs_containerd]

SANDBOXES, AT_A_TIME = 40, 10
DEADLINES = 20
USUAL_S = 0.3
"""So long a sandbox takes on a quiet machine."""


@pytest.fixture(scope="module", params=["python", "static"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Worker, Cri]]:
    """A node with one of the two plugins."""
    with running(tmp_path_factory.mktemp(request.param), static=request.param == "static") as made:
        yield made


def pods(count: int, name: str, attempt: int = 0) -> list[Pod]:
    return [Pod(f"{name}-{number}", f"uid-{name}-{number}", attempt) for number in range(count)]


def end(cri: Cri, sandbox: str) -> None:
    cri.stop(sandbox)
    cri.remove(sandbox)


def test_forty_sandboxes_ten_at_a_time(node: tuple[Worker, Cri]) -> None:
    ipamd, cri = node
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        sandboxes = list(pool.map(cri.run, pods(SANDBOXES, "crowd")))
        addresses = list(pool.map(cri.address, sandboxes))
        assert len(set(addresses)) == SANDBOXES
        assert ipamd.holders() == dict(zip(sandboxes, addresses, strict=True))
        refs = {item["pod_ref"] for item in ipamd.ask("GET", "/v1/reservations")["items"]}
        assert refs == {pod.ref for pod in pods(SANDBOXES, "crowd")}
        list(pool.map(lambda sandbox: end(cri, sandbox), sandboxes))
    assert ipamd.holders() == {}
    usage = ipamd.ask("GET", "/v1/pools/e2e/usage")["ipv4"]
    assert usage["free"] == usage["total"]


def test_a_runtime_and_a_server_that_crash_lose_no_pod(node: tuple[Worker, Cri]) -> None:
    ipamd, cri = node
    sandboxes = [cri.run(pod) for pod in pods(4, "steady")]
    before = ipamd.holders()
    assert set(before) == set(sandboxes)
    ipamd.containerd.crash()
    ipamd.end_server()
    ipamd.serve()
    with ipamd.containerd.start(f"unix:{ipamd.socket}") as again:
        assert {sandbox: again.address(sandbox) for sandbox in sandboxes} == ipamd.holders() == before
        for sandbox in sandboxes:
            end(again, sandbox)
    assert ipamd.holders() == {}


def slowness(cri: Cri) -> float:
    """How many times as long as usual a sandbox takes here and now: on a busy machine a plugin starts late."""
    for pod in pods(2, "usual"):  # the first one has more to do than those that follow
        began_s = time.monotonic()
        sandbox = cri.run(pod)
        took_s = time.monotonic() - began_s
        end(cri, sandbox)
    return max(1.0, took_s / USUAL_S)


def test_the_deadline_of_the_runtime_in_the_middle_of_an_add(tmp_path: Path) -> None:
    """The plugin that containerd runs is killed; ipamd's, which that one ran, finds nobody to print its result to."""
    chance = random.Random(1)
    with running(tmp_path) as (ipamd, first):
        slow = slowness(first)
        first.channel.close()
        ipamd.containerd.crash()
        with (
            SlowDoor(tmp_path / "door.sock", ipamd.socket, 0.8 * slow, 1) as door,
            ipamd.containerd.start(door.address) as cri,
        ):
            for pod in pods(DEADLINES, "late"):
                with pytest.raises(grpc.RpcError) as failed:
                    cri.run(pod, timeout_s=slow * chance.uniform(0.15, 0.6))
                assert failed.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            door.wait_s = 0
            wait_until(lambda: ipamd.holders() == {}, 60, f"left behind: {ipamd.holders()}")
            calls = ipamd.ask("GET", "/v1/calls")["items"]
            assert len([call for call in calls if call["verb"] == "add" and call["code"] == 0]) >= DEADLINES // 4
            for sandbox in cri.sandboxes():
                end(cri, sandbox)
            assert cri.run(Pod("on-time", "uid-on-time"))


def test_a_reboot_keeps_the_address_of_each_pod(tmp_path: Path) -> None:
    """Of every second pod the kubelet stops the old sandbox only when the new one runs: DEL(old) after ADD(new)."""
    with Worker(tmp_path) as ipamd:
        with ipamd.up() as cri:
            old = [cri.run(pod) for pod in pods(6, "reborn")]
            before = [cri.address(sandbox) for sandbox in old]
        boot_id = ipamd.host.boot_id
        ipamd.host.power_cut()
        with ipamd.up() as cri:
            assert ipamd.host.boot_id != boot_id
            new = []
            for number, (pod, sandbox) in enumerate(zip(pods(6, "reborn", attempt=1), old, strict=True)):
                if number % 2 == 0:
                    cri.stop(sandbox)
                new.append(cri.run(pod))
                end(cri, sandbox)
            assert [cri.address(sandbox) for sandbox in new] == before
            assert ipamd.holders() == dict(zip(new, before, strict=True))
            for sandbox in new:
                end(cri, sandbox)
        assert ipamd.holders() == {}
