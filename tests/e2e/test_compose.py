"""The real docker-compose.yml on real containers: the image is built, and the cluster outlives the loss of its leader.

`make e2e-compose` runs this alone. Debian's podman builds and runs; a base made by debootstrap stands in for Debian's own
image, and Debian's Prometheus for that of its project, as no registry of images is asked.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo.cni import CNI_BIN
from tests.support.host import Host, wait_until
from tests.support.images import Images

pytestmark = [pytest.mark.needs_root, pytest.mark.needs_plugins, pytest.mark.needs_compose, pytest.mark.timeout(3600)]

ROOT = Path(__file__).resolve().parents[2]
BASE = "localhost/base"
SERVERS = ("n1", "n2", "n3")
UP_S = 900
"""How long `up` may take: it waits for a cluster and for what is made with it."""

LARGEST_MIB = 180
"""What may lie on top of the base."""

CONF = json.dumps({"cniVersion": "1.0.0", "name": "web", "ipam": {"type": "ipamd", "pool": "web"}})
ADD = (
    f"echo '{CONF}' | CNI_COMMAND=ADD CNI_CONTAINERID=$0 CNI_NETNS=/proc/self/ns/net CNI_IFNAME=eth0"
    ' CNI_ARGS="K8S_POD_NAMESPACE=default;K8S_POD_NAME=$0" /opt/cni/bin/ipamd'
)
ASK = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=60).read().decode())"


class Compose:
    """docker-compose.yml on a host."""

    def __init__(self, host: Host, images: Images) -> None:
        self.host, self.images = host, images

    def compose(self, *arguments: str) -> None:
        """Run podman-compose. Raises AssertionError when it fails."""
        program = Path(sys.executable).with_name("podman-compose")
        done = self.host.run(
            program, "--podman-path", self.images.program, "-f", ROOT / "docker-compose.yml", *arguments,
            environment=self.images.environment, timeout_s=UP_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()

    def podman(self, verb: str, service: str, *arguments: str) -> str:
        """Run a verb of podman on a service's container. Raises AssertionError when it fails."""
        return self.images.podman_on(self.host, verb, f"ipamd_{service}_1", *arguments)

    def log(self, service: str) -> str:
        """What a service has logged."""
        done = self.host.run(self.images.program, "logs", f"ipamd_{service}_1", environment=self.images.environment)
        return (done.stdout + done.stderr).decode()

    def is_healthy(self, service: str) -> bool:
        """What the image's own health check says now."""
        check = (self.images.program, "healthcheck", "run", f"ipamd_{service}_1")
        return self.host.run(*check, environment=self.images.environment).returncode == 0

    def add(self, name: str) -> str:
        """An ADD of the plugin in the node's container; the address. Raises AssertionError when it fails."""
        result = json.loads(self.podman("exec", "worker", "sh", "-c", ADD, name))
        return str(result["ips"][0]["address"])

    def cluster(self, server: str) -> dict[str, Any]:
        """The cluster, as a server shows it."""
        shown: dict[str, Any] = json.loads(
            self.podman("exec", server, "sh", "-c", "ipamctl -o json cluster status || [ $? = 5 ]")
        )
        return shown

    def prometheus(self, path: str) -> Any:
        """An answer of Prometheus, at the port that is published."""
        done = self.host.run(sys.executable, "-c", ASK, f"http://127.0.0.1:9090/api/v1/{path}")
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)["data"]

    def targets_up(self) -> int:
        """How many servers Prometheus could ask when it did last."""
        return [target["health"] for target in self.prometheus("targets?state=active")["activeTargets"]].count("up")


@pytest.fixture(scope="module")
def images() -> Iterator[Images]:
    """The image, built from the real Dockerfile, and that of Prometheus."""
    made = Images(CNI_BIN)
    try:
        build(made)
        yield made
    finally:
        made.close()


def build(made: Images) -> None:
    """The base, the real Dockerfile on it, and Prometheus."""
    base = re.findall(r"^ARG DEBIAN=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)[0]
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    made.make_base(base)
    made.podman("tag", base, BASE)
    made.build(ROOT, services["n1"]["image"])
    made.make_prometheus(base, services["prometheus"]["image"])


@pytest.fixture(scope="module")
def compose(images: Images, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compose]:
    with Host(tmp_path_factory.mktemp("host")) as host:
        yield Compose(host, images)


def test_the_image_is_small_and_runs_as_nobody_in_particular(images: Images) -> None:
    (image,) = json.loads(images.podman("inspect", "localhost/ipamd"))
    (base,) = json.loads(images.podman("inspect", BASE))
    assert image["Config"]["User"] == "ipamd"
    assert image["Healthcheck"]["Test"][0] == "CMD"
    assert (image["Size"] - base["Size"]) / 2**20 < LARGEST_MIB


def test_what_is_installed_in_the_image_is_what_is_locked(images: Images) -> None:
    listing = "import importlib.metadata as m; print('\\n'.join(d.name.lower() + '==' + d.version for d in m.distributions()))"
    run = ("run", "--rm", "--network", "none", "--entrypoint", "python3", "localhost/ipamd", "-c", listing)
    installed = {line.replace("_", "-") for line in images.podman(*run).splitlines()}
    locked = re.findall(r"^\S+==\S+", (ROOT / "contrib" / "docker" / "requirements.lock").read_text(), re.MULTILINE)
    assert {line for line in installed if not line.startswith("ipamd-server==")} == set(locked)


def test_a_start_without_certificates_says_which_command_makes_them(compose: Compose) -> None:
    compose.compose("up", "--detach", "n1")
    wait_until(lambda: "docker compose run --rm certificates" in compose.log("n1"), 120, "it does not say so")
    compose.compose("down")


def test_an_add_through_the_agent_outlives_the_leader(compose: Compose) -> None:
    compose.compose("--profile", "setup", "run", "--rm", "certificates")
    compose.compose("up", "--detach")
    services = (*SERVERS, "worker")
    wait_until(lambda: all(map(compose.is_healthy, services)), 300, "not all of them get healthy")
    compose.podman("exec", "n1", "ipamctl", "pool", "create", "web", "--subnet", "10.20.0.0/24")
    before = [compose.add(f"before-{number}") for number in range(5)]
    leader = compose.cluster("n1")["leader"]
    compose.podman("kill", leader)
    began = time.monotonic()
    after = [compose.add(f"after-{number}") for number in range(20)]
    assert time.monotonic() - began < 60
    assert len({*before, *after}) == len(before) + len(after)
    assert [compose.add(f"before-{number}") for number in range(5)] == before
    other = next(name for name in SERVERS if name != leader)
    assert compose.cluster(other)["leader"] not in (leader, None)
    compose.podman("start", leader)
    wait_until(lambda: compose.is_healthy(leader), 300, "the server that was killed does not come back")


def test_prometheus_asks_every_server_and_knows_the_rules(compose: Compose) -> None:
    wait_until(lambda: compose.targets_up() == len(SERVERS), 300, "Prometheus does not reach the servers")
    groups = compose.prometheus("rules")["groups"]
    assert groups
    assert [rule["name"] for group in groups for rule in group["rules"] if rule["health"] == "err"] == []
