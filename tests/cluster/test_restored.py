"""A real server on an old backup, and real agents: what pods have since is told, claimed, disputed and confirmed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent import Agent
from tests.support.cluster import BIN, ask_socket
from tests.support.restores import run_restore
from tests.support.server import Server
from tests.support.wire import cni_conf

SOON_S = 60.0


class Host:
    """An agent, and what the runtime of its host keeps of its containers."""

    def __init__(self, directory: Path, name: str, server: Server) -> None:
        self.cache = directory / name / "results"
        self.cache.mkdir(parents=True)
        flags = ("--cni-cache-dir", str(self.cache), "--report-every-s", "1", "--heartbeat-every-s", "1")
        self.agent = Agent(directory / name, name, [server.url], *flags).start()

    def add(self, pod: str) -> str:
        """The pod's address, or the code and the sentence of a refusal. What is given is recorded, as libcni does."""
        container = f"c-{pod.partition('/')[2]}"
        got = self.agent.cni("add", container, pod)
        if got.status != 200:
            return f"{got.json['code']}: {got.json['msg']}"
        namespace, _, name = pod.partition("/")
        record = {
            "kind": "cniCacheV1",
            "containerId": container,
            "config": base64.b64encode(cni_conf("p", version="1.1.0")).decode(),
            "ifName": "eth0",
            "networkName": "net",
            "cniArgs": [["K8S_POD_NAMESPACE", namespace], ["K8S_POD_NAME", name]],
            "result": got.json,
        }
        (self.cache / f"net-{container}-eth0").write_text(json.dumps(record))
        return got.address

    def delete(self, pod: str) -> None:
        container = f"c-{pod.partition('/')[2]}"
        assert self.agent.cni("del", container, pod).status == 200
        (self.cache / f"net-{container}-eth0").unlink()


class Site:
    """A server and two hosts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.server = Server(directory, "--insecure", "--report-every-s", "1").start()
        self.ask("POST", "/v1/pools", {"name": "p", "subnet": "10.6.0.0/28", "cooldown_s": 0})
        self.hosts = [Host(directory, name, self.server) for name in ("w1", "w2")]

    def ask(self, method: str, path: str, body: object = None) -> Any:
        got = ask_socket(self.server.socket, method, path, body)
        assert got.status < 300, got.body
        return got.json

    def ipamctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "IPAMCTL_SERVER": f"unix:{self.server.socket}"}
        command = [str(BIN / "ipamctl"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)

    def holders(self) -> dict[str, str]:
        return {
            address.partition("/")[0]: one["pod_ref"]
            for one in self.ask("GET", "/v1/reservations")["items"]
            for attachment in one["attachments"]
            for address in attachment["addresses"]
        }

    def until(self, holds: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + SOON_S
        while not holds():
            assert time.monotonic() < deadline_s, f"not within {SOON_S} s: {self.holders()}\n{self.server.log[-2000:]}"
            time.sleep(0.2)

    def restore(self, backup: Path) -> None:
        """The server is lost, and comes back with the backup at its old place."""
        self.server.kill()
        shutil.rmtree(self.server.data_dir)
        done = run_restore(backup, "--data-dir", self.server.data_dir)
        assert done.exit_code == 0, done.output
        self.server.start()

    def close(self) -> None:
        for host in self.hosts:
            host.agent.kill()
        self.server.kill()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def test_what_was_given_after_the_backup_is_given_to_nobody_else(site: Site) -> None:
    one, two = site.hosts
    assert (one.add("t/a"), two.add("t/b")) == ("10.6.0.1", "10.6.0.2")
    site.until(lambda: all(site.ask("GET", f"/v1/nodes/{name}")["reported"] for name in ("w1", "w2")))
    backup = site.directory / "backup.db"
    done = site.ipamctl("backup", str(backup))
    assert done.returncode == 0, done.stderr
    one.delete("t/a")
    assert one.add("t/r") == "10.6.0.1", "it has what another pod had in the backup"
    assert two.add("t/q") == "10.6.0.3", "nobody had it"

    two.agent.kill()
    site.restore(backup)
    assert two.agent.process is not None
    assert one.add("t/new").startswith("110: ")
    refused = one.add("t/a")
    assert refused.startswith("11: "), "t/r may have told already, or w2 has not reported"
    site.until(lambda: bool(site.ask("POST", "/v1/pools/p/confirm?dry_run=true")["conflicts"]))
    unreported = site.ask("POST", "/v1/pools/p/confirm?dry_run=true")["unreported"]
    assert "w2" in unreported
    assert "w1" not in unreported

    two.agent.start()  # which remembers nothing: the runtime's records tell
    site.until(lambda: site.holders().get("10.6.0.3") == "t/q")
    assert site.holders() == {"10.6.0.1": "t/a", "10.6.0.2": "t/b", "10.6.0.3": "t/q"}
    assert "10.6.0.1" in one.add("t/a"), "in conflict, it is given to neither"
    assert one.add("t/r").startswith("110: ")

    refusal = site.ipamctl("pool", "confirm", "p")
    assert refusal.returncode == 1
    assert "10.6.0.1 (by t/r on node w1)" in refusal.stderr
    assert site.ipamctl("reservation", "release", "p", "t/a", "--force").returncode == 0
    site.until(lambda: site.holders().get("10.6.0.1") == "t/r")
    full = two.add("t/new")
    assert full.startswith("110: ")
    assert "11 withheld" in full
    assert "ipamctl pool confirm p" in full
    assert "pool p withholds" in site.ipamctl("cluster", "status").stderr
    shown = site.ipamctl("address", "show", "10.6.0.9").stdout
    assert "withheld" in shown

    confirmed = site.ipamctl("-o", "json", "pool", "confirm", "p")
    assert confirmed.returncode == 0, confirmed.stderr
    assert json.loads(confirmed.stdout)["unreported"] == []
    assert two.add("t/new") == "10.6.0.4"
    assert one.add("t/a") == "10.6.0.5", "what it had is another's now"
