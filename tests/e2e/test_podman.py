"""podman restarts a container under its own id: DEL, then ADD, and the DEL may come last to those who count.

That needs an agent that dies with a DEL in its spool. Another one takes its place at the node socket, so that the ADD
goes its way; when the first one comes back, it delivers what it promised, long after the ADD.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.node import POOL, URL, Node
from tests.support.host import Started, wait_until
from tests.support.podman import Podman

pytestmark = [pytest.mark.needs_root, pytest.mark.needs_plugins, pytest.mark.needs_podman]

WORKER = "worker-2"


class AgentNode(Node):
    """A node whose containers ask an agent; the server behind it may be away."""

    cooldown_s = 300

    def __init__(self, disk: Path) -> None:
        super().__init__(disk)
        self.agent_socket = disk / "agent.sock"
        self.podman = Podman(self.host, POOL)

    def boot(self) -> None:
        super().boot()
        usual = "mkdir /run/ipamd && ln -s {} /run/ipamd/cni.sock"
        assert self.host.run("sh", "-c", usual.format(self.agent_socket)).returncode == 0
        made = self.ask("POST", "/v1/tokens", {"name": WORKER, "role": "node", "node": WORKER})
        (self.disk / "token").write_text(made["secret"])
        (self.disk / "token").chmod(0o600)

    def agent(self, number: int, socket: Path) -> Started:
        """An agent with a spool of its own, once it listens."""
        socket.unlink(missing_ok=True)
        with (self.disk / f"agent-{number}.log").open("ab") as log:
            started = self.host.spawn(
                *(sys.executable, "-m", "ipamd.main", "agent", "--server", URL, "--node-name", WORKER),
                *("--token-file", self.disk / "token", "--socket", socket, "--spool-dir", self.spool(number)),
                log=log,
            )
        wait_until(socket.exists, 60, f"agent {number} does not listen")
        return started

    def spool(self, number: int) -> Path:
        return self.disk / f"spool-{number}"

    def spooled(self, number: int) -> list[Path]:
        """The calls that wait in a spool: files whose name is a number."""
        return [path for path in self.spool(number).iterdir() if path.stem.isdigit()]


def test_a_restart_keeps_the_address(tmp_path: Path) -> None:
    """podman names no namespace, so that a pod is its container: it finds its address cooling, and has it back."""
    with AgentNode(tmp_path) as node:
        node.boot()
        node.agent(1, node.agent_socket)
        node.podman.run("lower")
        container = node.podman.run("steady")
        (item,) = node.ask("GET", f"/v1/reservations?container_id={container}")["items"]
        assert item["pod_ref"] == f"_/{WORKER}/{container}"
        address = node.podman.address("steady")
        node.podman.podman("rm", "--force", "--time", "0", "lower")
        node.podman.podman("restart", "--time", "0", "steady")
        assert node.podman.address("steady") == address
        assert node.holders() == {container: address}
        node.podman.podman("rm", "--force", "--time", "0", "--all")
        assert node.holders() == {}


def test_a_del_that_was_spooled_and_comes_late_frees_nothing_that_lives(tmp_path: Path) -> None:
    with AgentNode(tmp_path) as node:
        node.boot()
        first = node.agent(1, node.agent_socket)
        container = node.podman.run("steady")
        address = node.podman.address("steady")
        node.end_server()
        node.podman.podman("stop", "--time", "0", "steady")
        wait_until(lambda: len(node.spooled(1)) == 1, 60, "podman, which ends networks afterwards, has sent no DEL")
        first.send(signal.SIGKILL)
        first.wait()
        node.serve()
        node.agent(2, node.agent_socket)
        node.podman.podman("start", "steady")
        assert node.podman.address("steady") == address
        node.agent(1, tmp_path / "late.sock")
        wait_until(lambda: node.spooled(1) == [], 60, "the late DEL was not delivered")
        assert list((node.spool(1) / "refused").iterdir()) == []
        assert node.holders() == {container: address}
        node.podman.podman("rm", "--force", "--time", "0", "steady")
        assert node.holders() == {}
