"""Upgrades: a cluster rolled to this version and back, member by member, while pods come and go; and older agents.

The older version is built from the history of the repository: BASE is where the formats of a state were fixed, OLD_AGENT
two versions of agents and plugins before.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ipamd.core.levels import LEVEL
from tests.support import builds
from tests.support.agent import Agent
from tests.support.builds import Build
from tests.support.cluster import Away, Cluster, Got, MemberServer, owned_twice
from tests.support.plugin import Runtime
from tests.support.server import ServerError
from tests.support.steady import Call, Said, Steady

BASE = "1018d21671b366e8f77db08e79b5bb310d26214c"
OLD_AGENT = "b6ea27576156601e4ea4696e1f93e67c5774512e"

CONF = b'{"cniVersion":"1.0.0","name":"net","ipam":{"type":"ipamd","pool":"p"}}'
READY_S = 120.0


@pytest.fixture(scope="module")
def base() -> Build:
    return builds.of_commit(BASE)


@pytest.fixture(scope="module")
def old() -> Build:
    return builds.of_commit(OLD_AGENT)


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return builds.of_sources(tmp_path_factory.mktemp("new") / "build")


class Rolling(Cluster):
    """Three members of one version, of which each can be given another."""

    def __init__(self, directory: Path, build: Build) -> None:
        super().__init__(directory)
        self.first = build.environment
        for member in self:
            member.environment = build.environment

    def give(self, member: MemberServer, build: Build) -> None:
        """Stop a member as an operator does, and start another version on its data."""
        assert member.stop() == 0
        member.environment = build.environment
        member.start(READY_S)

    def agent(self, directory: Path, node: str, build: Build) -> Agent:
        """An agent of a version, with a token of its own."""
        made = self.any().ask("POST", "/v1/tokens", {"name": node, "role": "node", "node": node})
        assert made.status == 201, made.body
        directory.mkdir(exist_ok=True)
        token = directory / "token"
        token.write_text(made.json["secret"])
        token.chmod(0o600)
        flags = ("--token-file", str(token), "--tls-ca", str(self.shop.ca))
        agent = Agent(directory, node, [member.url for member in self], *flags)
        agent.prefix = build.prefix
        return agent

    def wait_for_levels(self, *levels: int) -> None:
        """Wait until the state has these levels of n1, n2, n3."""
        deadline_s = time.monotonic() + READY_S
        found: tuple[int, ...] = ()
        while time.monotonic() < deadline_s:
            with suppress(Away):
                found = tuple(one["level"] for one in self.leader().status()["members"])
            if found == levels:
                return
            time.sleep(0.1)
        raise AssertionError(f"the members' levels are {found}, not {levels}")

    def note(self, text: str) -> Got:
        """Ask for what came with level 2, of a member that knows it."""
        asked = next(one for one in self if one.is_running and one.environment != self.first)
        return asked.ask("POST", "/v1/events", {"text": text})


@pytest.fixture
def cluster(tmp_path: Path, base: Build) -> Iterator[Rolling]:
    with Rolling(tmp_path, base) as made:
        made.pool()
        yield made


def through_agent(agent: Agent) -> Call:
    """A caller that speaks to an agent's socket."""

    def call(verb: str, container: str, pod: str) -> Said:
        got = agent.cni(verb, container, pod)
        return Said(got.code, got.address if verb == "add" and got.code == 0 else "")

    return call


def through_plugin(agent: Agent, program: Path) -> Call:
    """A caller that runs the plugin."""
    runtime = Runtime(agent.directory, program)
    runtime.settings(f"address unix:{agent.socket}")

    def call(verb: str, container: str, pod: str) -> Said:
        namespace, _, name = pod.partition("/")
        args = f"IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name}"
        done = runtime.run(verb.upper(), stdin=CONF, CNI_CONTAINERID=container, CNI_ARGS=args)
        if done.status != 0:
            return Said(int(json.loads(done.stdout)["code"]))
        return Said(0, json.loads(done.stdout)["ips"][0]["address"].split("/")[0] if verb == "add" else "")

    return call


@pytest.mark.timeout(1500)
def test_a_cluster_is_rolled_forward_and_back_and_forward_under_load(
    cluster: Rolling, base: Build, new: Build, tmp_path: Path
) -> None:
    with (
        cluster.agent(tmp_path / "w1", "w1", base) as first,
        cluster.agent(tmp_path / "w2", "w2", base) as second,
        Steady({"w1": through_agent(first), "w2": through_plugin(second, base.plugin)}) as load,
    ):
        for build, level in ((new, LEVEL), (base, 1)):
            before = load.added
            for member in cluster:
                cluster.give(member, build)
            cluster.wait_for_levels(level, level, level)
            verified(cluster)
            assert load.added > before, "no pod came meanwhile"
        what_came_later_waits_for_the_last_member(cluster, new)
        assert load.added > before, "no pod came meanwhile"
        it_closes_the_way_back(cluster["n3"], base, new)
        verified(cluster)
    print(f"{load.added} pods came, {load.repeated} calls were repeated")  # noqa: T201 - the figure of a run
    assert load.failures == []
    assert load.added > 50
    listed = cluster.level()
    assert owned_twice(listed) == []
    assert {pod: address.split("/")[0] for address, pod, *_ in listed} == load.living


def what_came_later_waits_for_the_last_member(cluster: Rolling, new: Build) -> None:
    """Forward once more, and ask for it before the last step and behind it."""
    for member in (cluster["n1"], cluster["n2"]):
        cluster.give(member, new)
    cluster.wait_for_levels(LEVEL, LEVEL, 1)
    refused = cluster.note("too early")
    assert (refused.status, refused.json["code"]) == (503, "unavailable")
    assert refused.json["detail"].startswith("n3 runs an older version of ipamd: upgrade it first")
    cluster.give(cluster["n3"], new)
    cluster.wait_for_levels(LEVEL, LEVEL, LEVEL)
    assert cluster.note("all are new").status == 204
    verified(cluster)


def it_closes_the_way_back(member: MemberServer, base: Build, new: Build) -> None:
    """The older version does not start on the state any more, and says why."""
    assert member.stop() == 0
    member.environment = base.environment
    with pytest.raises(ServerError, match="status 1"):
        member.start(READY_S)
    assert f"has come to need level {LEVEL} of ipamd, this program has level 1" in member.log
    member.environment = new.environment
    member.start(READY_S)


def verified(cluster: Rolling) -> None:
    """The states of all members are equal now."""
    done = cluster.ctl("-o", "json", "cluster", "status", "--verify", timeout_s=90)
    assert done.returncode == 0, done.stderr
    assert len({member["digest"] for member in json.loads(done.stdout)["members"]}) == 1


@pytest.mark.parametrize("servers", ["base", "new"])
def test_agents_and_plugins_of_two_versions_before_go_on(
    servers: str, base: Build, new: Build, old: Build, tmp_path: Path
) -> None:
    """And this version's with the servers of the last: whoever is upgraded first."""
    build, theirs = (base, new) if servers == "base" else (new, old)
    with Rolling(tmp_path, build) as cluster:
        cluster.pool()
        with cluster.agent(tmp_path / "w1", "w1", theirs) as agent:
            call = through_plugin(agent, theirs.plugin)
            assert call("add", "c1", "t/a") == Said(0, "10.1.0.1")
            assert call("add", "c1", "t/a") == Said(0, "10.1.0.1")
            assert call("check", "c1", "t/a").code in (0, 7)
            assert through_agent(agent)("add", "c2", "t/b") == Said(0, "10.1.0.2")
            assert call("del", "c1", "t/a") == Said(0)
            assert [pod for _, pod, *_ in cluster.level()] == ["t/b"]
