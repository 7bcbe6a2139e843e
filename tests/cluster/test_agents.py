"""Agents behind three servers, each in a network namespace: cut off, asked of dead and hung servers, and healed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent import Agent
from tests.support.cluster import Got, MemberServer, rounds
from tests.support.lab import Lab
from tests.support.stopwatch import Process, Stopwatch

pytestmark = pytest.mark.needs_root

DEL_S = 1.0
"""A DEL returns within this, whoever is away."""

HEALED_S = 10.0
MEMORY_MIB = 60
PODS = 8

_subnets = count(101)


class Nodes:
    """Six agents, each on a host of its own."""

    def __init__(self, lab: Lab, directory: Path) -> None:
        self.agents: list[Agent] = []
        for number in range(1, 7):
            name = f"w{number}"
            lab.network.add(name)
            made = lab.any().ask("POST", "/v1/tokens", {"name": name, "role": "node", "node": name})
            (directory / f"{name}.token").write_text(made.json["secret"])
            flags = ("--token-file", str(directory / f"{name}.token"), "--tls-ca", str(lab.shop.ca))
            agent = Agent(directory / name, name, [member.url for member in lab], *flags)
            agent.prefix = ("ip", "netns", "exec", lab.network.namespace(name))
            self.agents.append(agent.start())

    def close(self) -> None:
        for agent in self.agents:
            agent.kill()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Nodes]]:
    with Lab(tmp_path_factory.mktemp("lab")) as lab:
        nodes = Nodes(lab, tmp_path_factory.mktemp("agents"))
        try:
            yield lab, nodes
        finally:
            nodes.close()


@pytest.fixture
def lab(built: tuple[Lab, Nodes]) -> Lab:
    built[0].revive()
    built[0].leader()
    return built[0]


@pytest.fixture
def agents(built: tuple[Lab, Nodes]) -> list[Agent]:
    return built[1].agents


@pytest.fixture
def pool(lab: Lab) -> str:
    number = next(_subnets)
    lab.pool(f"p{number}", f"10.{number}.0.0/16")
    return f"p{number}"


def parallel(calls: list[Any]) -> list[Any]:
    with ThreadPoolExecutor(16) as crew:
        return [done.result() for done in [crew.submit(call) for call in calls]]


def until(is_so: Callable[[], bool], *processes: Process) -> float:
    """How long it took these until something was so."""
    began = Stopwatch(*processes)
    while not is_so():
        assert began.spent_s() < HEALED_S, f"not so within {HEALED_S} s"
        time.sleep(0.05)
    return began.spent_s()


def deleted(agent: Agent, container: str, pod: str, pool: str) -> tuple[Got, float]:
    began = Stopwatch(agent)
    got = agent.cni("del", container, pod, pool=pool)
    return got, began.spent_s()


def owners(member: MemberServer, pool: str) -> dict[str, tuple[str, str]]:
    """Address and node by pod."""
    items = member.ask("GET", f"/v1/reservations?limit=5000&pool={pool}").json["items"]
    return {
        item["pod_ref"]: (attachment["addresses"][0].split("/")[0], attachment["node"])
        for item in items
        for attachment in item["attachments"]
    }


def cut_off(lab: Lab, node: str) -> None:
    """No server is reached from a node, and none reaches it."""
    servers = [member.name for member in lab]
    lab.network.cut(*((node, server) for server in servers), *((server, node) for server in servers))


def test_a_node_without_any_server_deletes_its_pods(lab: Lab, agents: list[Agent], pool: str) -> None:
    """All its addresses are free soon after; those of its pods that live elsewhere by then stay where they are."""
    calls = [(agent, f"{agent.node}-{number}", f"{agent.node}/m{number}") for agent in agents for number in range(PODS)]
    added = parallel([lambda one=one: one[0].cni("add", one[1], one[2], pool=pool) for one in calls])
    assert [got.status for got in added] == [200] * len(calls)
    before = owners(lab.any(), pool)
    assert len({address for address, _ in before.values()}) == len(calls)
    lonely, other = agents[0], agents[1]
    cut_off(lab, lonely.node)
    cut_until = time.monotonic() + rounds(60, 8)
    took_s = []
    for number in range(PODS):
        got, needed_s = deleted(lonely, f"w1-{number}", f"w1/m{number}", pool)
        assert got.status == 200, got.body
        took_s.append(needed_s)
    assert max(took_s) < DEL_S, took_s
    assert len(lonely.spooled) == PODS
    assert lonely.ask("GET", "/v1/calls").json["spooled"] == PODS
    refused = lonely.cni("add", "w1-x", "w1/x", pool=pool, timeout_s=1)
    assert refused.code == 11
    moved = range(PODS // 2)
    for number in moved:
        got = other.cni("add", f"again-{number}", f"w1/m{number}", pool=pool)
        assert (got.status, got.address) == (200, before[f"w1/m{number}"][0])
    time.sleep(max(0.0, cut_until - time.monotonic()))
    lab.network.heal()
    kept = {pod: held for pod, held in before.items() if held[1] != "w1"}
    kept |= {f"w1/m{number}": (before[f"w1/m{number}"][0], "w2") for number in moved}
    free_s = until(lambda: owners(lab.any(), pool) == kept, lonely, *lab)
    until(lambda: not lonely.spooled, lonely)
    back = lonely.cni("add", "w1-y", "w1/m7", pool=pool)
    assert back.status == 200
    sizes_mib = [round(agent.rss_mib) for agent in agents]
    assert max(sizes_mib) < MEMORY_MIB
    print(  # noqa: T201 - the figures that the documentation names
        f"slowest DEL {max(took_s):.2f} s, all free {free_s:.2f} s after the cut was healed, agents of {sizes_mib} MiB"
    )


def test_calls_go_on_while_servers_die_and_no_call_is_made_twice(lab: Lab, agents: list[Agent], pool: str) -> None:
    """A call that came through two servers is one: a second ADD would have raised the generation."""
    victim = lab.leader()

    def call(number: int) -> Got:
        agent = agents[number % len(agents)]
        return agent.cni("add", f"d{number}", f"d/m{number}", pool=pool, timeout_s=20)

    with ThreadPoolExecutor(12) as crew:
        running = [crew.submit(call, number) for number in range(60)]
        time.sleep(0.2)
        victim.kill()
        got = [one.result() for one in running]
    assert [one.status for one in got] == [200] * 60
    items = lab.any().ask("GET", f"/v1/reservations?limit=500&pool={pool}").json["items"]
    assert [one["attachments"][0]["generation"] for one in items] == [1] * 60


def test_a_hung_server_costs_a_call_little(lab: Lab, agents: list[Agent], pool: str) -> None:
    """A stopped process still has its sockets: only time tells."""
    hung = next(member for member in lab if member is not lab.leader())
    for number, agent in enumerate(agents):
        assert agent.cni("add", f"h{number}", f"h/m{number}", pool=pool).status == 200
    hung.pause()
    for number, agent in enumerate(agents):
        got, took_s = deleted(agent, f"h{number}", f"h/m{number}", pool)
        assert got.status == 200
        assert took_s < DEL_S
    for number, agent in enumerate(agents):
        assert agent.cni("add", f"i{number}", f"h/m{number}", pool=pool).status == 200
    hung.go_on()
    until(lambda: not any(agent.spooled for agent in agents), *agents, *lab)
    assert len(owners(lab.any(), pool)) == len(agents)


def test_a_server_without_quorum_puts_dels_aside_too(lab: Lab, pool: str) -> None:
    alone, *others = lab
    for number in range(PODS):
        assert alone.add(f"q{number}", f"q/m{number}", pool=pool).status == 200
    for other in others:
        other.pause()
    until(lambda: alone.status()["leader"] is None, alone)
    for number in range(PODS):
        began = Stopwatch(alone)
        assert alone.cni("del", f"q{number}", f"q/m{number}", pool=pool).status == 200
        assert began.spent_s() < DEL_S
    calls = alone.ask("GET", "/v1/calls?limit=1").json
    assert (calls["spooled"], calls["items"][0]["spooled"]) == (PODS, True)
    waiting = alone.add("q-x", "q/x", pool=pool, timeout_s=1)
    assert waiting.code == 11
    for other in others:
        other.go_on()
    until(lambda: alone.ask("GET", "/v1/calls?limit=1").json["spooled"] == 0, *lab)
    assert owners(alone, pool) == {}
