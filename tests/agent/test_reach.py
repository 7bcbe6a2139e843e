"""What an agent says to the cluster of its node, word by word, and what it makes of the answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ipamd.agent.reach import NodeReach
from ipamd.agent.servers import Servers
from ipamd.agent.upstream import Upstream
from ipamd.core.addresses import parse_address
from ipamd.core.inventory import Inventory, Listed
from ipamd.core.ports import Unavailable
from ipamd.service.nodes import Conflict
from ipamd.service.sandboxes import Sandbox
from ipamd.service.wire import Asked, Said
from tests.support.scripted import TurnedClock, counting_bytes

ADDRESS = parse_address("192.0.2.1")
LINE = {
    "cni_network": "k", "container_id": "c1", "ifname": "eth0", "alive": True, "pod_ref": "t/a",
    "addresses": ["192.0.2.1"],
}  # fmt: skip
HELD = {"pod_ref": "t/a", "ifname": "eth0", "cni_network": "k", "container_id": "c1", "netns": "/run/netns/a",
        "netns_inode": 7, "addresses": ["192.0.2.1/24"], "more": 1}  # fmt: skip


class OneServer:
    """Says what it is told to say, and remembers what it was asked."""

    def __init__(self, status: int, body: Any) -> None:
        self.said = Said(status, {"Ipamd-Index": "9"}, body if isinstance(body, bytes) else json.dumps(body).encode())
        self.asked: list[Asked] = []

    async def exchange(self, url: str, asked: Asked, timeout_s: float) -> Said:  # noqa: ARG002 - the port
        self.asked.append(asked)
        return self.said


def build(status: int = 200, body: Any = None) -> tuple[NodeReach, OneServer]:
    clock, server = TurnedClock(), OneServer(status, {} if body is None else body)
    return NodeReach(
        Upstream(server, Servers(["https://a:7480"]), clock=clock, random=counting_bytes()), lambda: "w1"
    ), server


def later() -> float:
    return TurnedClock().now_s + 5


async def test_what_is_bound_here_is_known_as_of_an_index() -> None:
    reach, server = build(body={"cluster_id": "x1", "boots": [{"boot_id": "b1"}, {"boot_id": "b2"}], "attachments": [
        HELD, HELD | {"ifname": None, "container_id": "open"}]})  # fmt: skip
    known = await reach.known(later())
    assert (known.node, known.index, known.cluster_id, known.boots) == ("w1", 9, "x1", ("b1", "b2"))
    assert not known.wants_all
    assert known.sandboxes == (Sandbox("k", "c1", "eth0", "/run/netns/a", 7, "t/a", (ADDRESS,)),)
    assert (server.asked[0].method, server.asked[0].target) == ("GET", "/v1/nodes/w1")


async def test_a_node_that_nobody_knows_has_nothing() -> None:
    reach, _ = build(404)
    known = await reach.known(later())
    assert (known.index, known.cluster_id, known.sandboxes, known.boots) == (9, None, (), ())


async def test_a_report_says_whose_it_is_what_was_known_before_the_look_and_what_was_seen() -> None:
    reach, server = build(
        body={"conflicts": [{"pool": "p", "pod_ref": "t/b", "ifname": "eth0", "address": "192.0.2.1"}]}
    )
    listed = (Listed("k", "c1", "eth0", alive=True, pod_ref="t/a", addresses=(ADDRESS,)),)
    conflicts = await reach.report(Inventory("w1", "b2", 8, listed, spooled=3), "x1", later())
    assert conflicts == (Conflict("p", "t/b", "eth0", "192.0.2.1"),)
    (asked,) = server.asked
    assert (asked.method, asked.target) == ("POST", "/v1/nodes/w1/inventory")
    assert json.loads(asked.body) == {
        "boot_id": "b2", "index": 8, "cluster_id": "x1", "spooled": 3, "attachments": [LINE],
    }  # fmt: skip


async def test_a_heartbeat_is_of_this_node() -> None:
    reach, server = build()
    await reach.heartbeat(later())
    assert (server.asked[0].method, server.asked[0].target) == ("POST", "/v1/nodes/w1/heartbeat")


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (409, {"detail": "this is cluster x2, the report is for cluster x1"}, "this is cluster x2"),
        (403, b"", "a server answered with status 403"),
        (200, b"<html>", "a server says what this program cannot read"),
        (200, {"conflicts": 7, "attachments": 7}, "a server says what this program cannot read"),
    ],
)
async def test_what_is_no_answer_is_said_in_a_sentence(status: int, body: Any, why: str) -> None:
    reach, _ = build(status, body)
    for asking in (reach.known(later()), reach.report(Inventory("w1", "b1", 1, ()), None, later())):
        with pytest.raises(Unavailable, match=why):
            await asking


@pytest.mark.parametrize("why", [{"state": "lost"}, {"state": "alive", "restored": True}])
async def test_who_was_away_or_whose_cluster_was_looks_for_what_it_knows_no_more(why: dict[str, Any]) -> None:
    reach, _ = build(body={"cluster_id": "x1", "boots": [], "attachments": [], **why})
    assert (await reach.known(later())).wants_all
