"""Inventories, heartbeats, lost nodes and takeovers over the API: who may send what, and what comes of it."""

from __future__ import annotations

from typing import Any

import pytest

from ipamd.core.commands import LoseNodes, Origin, SilentNode
from ipamd.core.outcomes import Done
from ipamd.service import nodes
from ipamd.service.request import Request
from tests.api.test_shapes import check_problem
from tests.support.stack import Got, Stack, conf

WHY = "/v1/pools/p/why?pod_ref=d%2Fa"


def line(container: str, alive: bool | None, **more: Any) -> dict[str, Any]:
    return {"cni_network": "net", "container_id": container, "ifname": "eth0", "alive": alive, **more}


async def report(stack: Stack, *lines: dict[str, Any], node: str = "box", **more: Any) -> Got:
    index = int((await stack.ask("GET", "/v1/nodes")).headers["Ipamd-Index"])
    body = {"boot_id": "b1", "index": index, "attachments": list(lines), **more}
    return await stack.ask("POST", f"/v1/nodes/{node}/inventory", body)


async def add(stack: Stack, container: str, pod: str, node: str = "box", inode: int | None = 7) -> Got:
    path = f"/run/netns/{container}"
    if inode is not None:
        stack.namespaces.inodes[path] = inode
    return await stack.cni(
        "add",
        conf(),
        CNI_ContainerID=container,
        CNI_Netns=path,
        CNI_Args=f"IPAMD_POD_REF={pod}",
        Ipamd_Node=node,
        Ipamd_Boot_Id="b1",
        Ipamd_Started="1",
    )


async def lose(stack: Stack, *names: str) -> None:
    await stack.ask("PUT", "/v1/settings", {"node_lost_s": 0})
    silent = tuple(SilentNode(name, 1) for name in names)
    services = stack.services
    request = Request("test", "r", services.clock.monotonic_s() + 60)
    await services.nodes._proposer.carry_out(LoseNodes(Origin("test", "r"), silent), request, Done)


async def why(stack: Stack) -> dict[str, Any]:
    found: dict[str, Any] = (await stack.ask("GET", WHY)).json
    return found


async def node_token(stack: Stack, node: str) -> str:
    made = await stack.ask("POST", "/v1/tokens", {"name": node, "role": "node", "node": node})
    return str(made.json["secret"])


async def shown(stack: Stack, node: str = "box") -> dict[str, Any]:
    found: dict[str, Any] = (await stack.ask("GET", f"/v1/nodes/{node}")).json
    return found


async def test_two_reports_free_what_is_gone_and_events_say_why(stack: Stack) -> None:
    await stack.pool()
    await stack.ask("PUT", "/v1/settings", {"evidence_grace_s": 0})
    await add(stack, "c1", "d/a")
    await add(stack, "c2", "d/b", inode=8)
    assert (await report(stack, line("c1", alive=False), line("c2", alive=True))).json == {"conflicts": []}
    assert {one["container_id"]: one["alive"] for one in (await shown(stack))["attachments"]} == {
        "c1": False,
        "c2": True,
    }
    await report(stack, line("c1", alive=False), line("c2", alive=True))
    assert [one["container_id"] for one in (await shown(stack))["attachments"]] == ["c2"]
    last = (await stack.ask("GET", "/v1/events?limit=5000")).json["items"][-1]
    assert (last["kind"], last["pod_ref"], last["node"]) == ("released", "d/a", "box")
    assert "found its namespace gone" in last["detail"]


async def test_one_entry_frees_no_more_than_some_of_what_is_gone(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    assert nodes.CHUNK <= 500
    monkeypatch.setattr(nodes, "CHUNK", 2)
    await stack.pool()
    await stack.ask("PUT", "/v1/settings", {"evidence_grace_s": 0})
    gone = [f"c{number}" for number in range(5)]
    for container in gone:
        await add(stack, container, f"d/{container}")
    sizes: list[int] = []
    carry_out = stack.services.nodes._proposer.carry_out

    async def counted(command: Any, *more: Any) -> Any:
        sizes.append(len(command.seen))
        return await carry_out(command, *more)

    monkeypatch.setattr(stack.services.nodes._proposer, "carry_out", counted)
    for _ in range(2):
        await report(stack, *(line(container, alive=False) for container in gone))
    assert sizes == [2, 2, 1] * 2
    assert (await shown(stack))["attachments"] == []


async def test_a_list_older_than_a_pod_says_nothing_of_it(stack: Stack) -> None:
    await stack.pool()
    await stack.ask("PUT", "/v1/settings", {"evidence_grace_s": 0})
    await add(stack, "c1", "d/a")
    index = int((await stack.ask("GET", "/v1/nodes/box")).headers["Ipamd-Index"])
    await add(stack, "c5", "d/new", inode=8)
    for _ in range(3):
        await report(stack, line("c1", alive=True), line("c5", alive=False), index=index)
    assert len((await shown(stack))["attachments"]) == 2
    assert (await shown(stack))["attachments"][1]["state"] == "bound"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"cluster_id": "another"}, "other_cluster"),
        ({"index": 10**9}, "invalid_request"),
        ({"index": -1}, "invalid_request"),
        ({"boot_id": 7}, "invalid_request"),
        ({"boot_id": ""}, "invalid_request"),
        ({"boot_id": "b 1"}, "invalid_request"),
        ({"more": 1}, "invalid_request"),
        ({"attachments": [line("c1", alive=True, addresses=["10.0.0.x"])]}, "invalid_request"),
        ({"attachments": [{"container_id": "c1"}]}, "invalid_request"),
    ],
)
async def test_what_is_no_inventory_of_this_cluster_is_refused(stack: Stack, change: dict[str, Any], code: str) -> None:
    check_problem(await report(stack, **change), code)
    assert (await stack.ask("GET", "/v1/nodes/box")).status == 404


async def test_the_right_cluster_is_accepted(stack: Stack) -> None:
    assert (await report(stack, cluster_id="cluster-1")).status == 200
    assert (await shown(stack))["cluster_id"] == "cluster-1"


async def test_what_is_known_makes_no_entry(stack: Stack) -> None:
    await stack.pool()
    await add(stack, "c1", "d/a")
    await report(stack, line("c1", alive=True))
    before = (await shown(stack))["reported"]
    await report(stack, line("c1", alive=True))
    assert (await shown(stack))["reported"] == before
    assert (await report(stack, line("c1", alive=True), spooled=2)).status == 200
    assert (await shown(stack))["spooled"] == 2


async def test_a_node_token_speaks_of_its_own_node_alone(stack: Stack) -> None:
    token = await node_token(stack, "box")
    body = {"boot_id": "b1", "index": 1, "attachments": []}
    assert (await stack.ask_tcp("POST", "/v1/nodes/box/inventory", body, token=token)).status == 200
    assert (await stack.ask_tcp("POST", "/v1/nodes/box/heartbeat", token=token)).status == 204
    for path in ("inventory", "heartbeat"):
        got = await stack.ask_tcp("POST", f"/v1/nodes/other/{path}", body if path == "inventory" else None, token=token)
        check_problem(got, "forbidden")
    for path in ("box/release", "confirm"):
        check_problem(await stack.ask_tcp("POST", f"/v1/nodes/{path}", {}, token=token), "forbidden")


async def test_a_heartbeat_makes_no_node_and_no_entry(stack: Stack) -> None:
    before = stack.services.applied()
    assert (await stack.ask("POST", "/v1/nodes/new/heartbeat")).status == 204
    assert stack.services.applied() == before
    assert (await stack.ask("GET", "/v1/nodes/new")).status == 404


async def test_a_full_pool_says_what_a_lost_node_holds_and_release_helps(stack: Stack) -> None:
    await stack.pool(subnet="192.0.2.0/30", cooldown_s=0)
    await add(stack, "c1", "d/a")
    await add(stack, "c2", "d/b", node="other", inode=8)
    await report(stack, line("c1", alive=True))
    await lose(stack, "box")
    usage = (await stack.ask("GET", "/v1/pools/p/usage")).json["ipv4"]
    assert (usage["bound"], usage["suspect"], usage["lost"]) == (2, 0, 1)
    refused = await add(stack, "c3", "d/c", node="other", inode=9)
    assert refused.json["code"] == 110
    assert "192.0.2.1-192.0.2.2 is full: 2 bound; of all that is bound 1 lost; " in refused.json["msg"]
    assert "1 belongs to lost node box (silent " in refused.json["msg"]
    assert "ipamctl node release box;" in refused.json["msg"]
    item = (await stack.ask("GET", "/v1/nodes")).json["items"][0]
    assert (item["name"], item["state"], item["bound"]) == ("box", "lost", 1)
    assert item["silent_s"] > 0
    assert (await stack.ask("POST", "/v1/nodes/box/release", {})).json["released"] == 1
    assert (await add(stack, "c3", "d/c", node="other", inode=9)).status == 200


async def test_suspects_are_counted_and_freed_apart(stack: Stack) -> None:
    await stack.pool(cooldown_s=0)
    await add(stack, "c1", "d/a")
    await report(stack, boot_id="b2")
    got = await stack.cni(
        "add",
        conf(),
        CNI_ContainerID="c2",
        CNI_Args="IPAMD_POD_REF=d/b",
        Ipamd_Node="box",
        Ipamd_Boot_Id="b2",
        Ipamd_Started="1",
    )
    assert got.status == 200
    usage = (await stack.ask("GET", "/v1/pools/p/usage")).json["ipv4"]
    assert (usage["bound"], usage["suspect"], usage["lost"]) == (2, 1, 0)
    states = {one["pod_ref"]: one["state"] for one in (await shown(stack))["attachments"]}
    assert states == {"d/a": "suspect", "d/b": "bound"}
    released = (await stack.ask("POST", "/v1/nodes/box/release?only=suspect", {})).json
    assert [one["pod_ref"] for one in released["items"]] == ["d/a"]
    check_problem(await stack.ask("POST", "/v1/nodes/box/release?only=dead", {}), "invalid_request")


async def test_a_node_that_comes_back_learns_whose_its_addresses_are_now(stack: Stack) -> None:
    await stack.pool(subnet="192.0.2.0/30", cooldown_s=0)
    await add(stack, "c1", "d/a")
    await report(stack, line("c1", alive=True))
    await lose(stack, "box")
    await stack.ask("POST", "/v1/nodes/box/release", {})
    mine = line("c1", alive=True, pod_ref="d/a", addresses=["192.0.2.1/30"])
    nobody = {"pool": None, "pod_ref": None, "ifname": None, "address": "192.0.2.1"}
    assert (await report(stack, mine)).json == {"conflicts": [nobody]}
    await add(stack, "c2", "d/b", node="other", inode=8)
    theirs = {"pool": "p", "pod_ref": "d/b", "ifname": "eth0", "address": "192.0.2.1"}
    assert (await report(stack, mine)).json == {"conflicts": [theirs]}
    found = await shown(stack)
    assert (found["state"], found["conflicts"]) == ("alive", 1)


async def test_a_living_pod_is_not_taken_over(stack: Stack) -> None:
    await stack.pool()
    await add(stack, "c1", "d/a")
    await report(stack, line("c1", alive=True))
    refused = await add(stack, "c2", "d/a", node="other", inode=8)
    assert refused.json["code"] == 11
    assert "alive on node box" in refused.json["msg"]
    body = {"pool": "p", "pod_ref": "d/a", "container_id": "c3", "node": "other"}
    check_problem(await stack.ask("POST", "/v1/reservations", body), "contested")
    await report(stack, line("c1", alive=None))
    assert (await add(stack, "c2", "d/a", node="other", inode=8)).status == 200


async def test_why_answers_for_the_node_where_the_pod_is_and_tells_what_others_would_hear(stack: Stack) -> None:
    await stack.pool()
    await add(stack, "c1", "d/a")
    await report(stack, line("c1", alive=True))
    address = await why(stack)
    assert (address["granted"], address["addresses"], address["code"]) == (True, ["192.0.2.1/24"], None)
    assert "which it has now; on another node it is contested while node box reports it alive" in address["detail"]
    tokens = {node: await node_token(stack, node) for node in ("box", "other")}
    own = (await stack.ask_tcp("GET", WHY, token=tokens["box"])).json
    assert (own["granted"], own["detail"]) == (True, "eth0 of d/a would get 192.0.2.1/24, which it has now")
    moved = (await stack.ask_tcp("GET", WHY, token=tokens["other"])).json
    assert (moved["granted"], moved["code"]) == (False, "contested")
    assert "; node other gets it once that one is deleted there" in moved["detail"]
    await report(stack, line("c1", alive=None))
    assert (await why(stack))["detail"] == "eth0 of d/a would get 192.0.2.1/24, which it has now"


async def test_mass_silence_is_shown_and_confirmed(stack: Stack) -> None:
    await stack.pool()
    for number in range(4):
        await add(stack, f"c{number}", f"d/{number}", node=f"n{number}", inode=7 + number)
        await report(stack, node=f"n{number}")
    assert (await stack.ask("GET", "/v1/nodes")).json["mass_silence"] is None
    await lose(stack, "n0", "n1", "n2")
    assert (await stack.ask("GET", "/v1/nodes")).json["mass_silence"]["since"]
    assert (await stack.ask("POST", "/v1/nodes/confirm", {})).status == 204
    assert (await stack.ask("GET", "/v1/nodes")).json["mass_silence"] is None
    check_problem(await stack.ask("POST", "/v1/nodes/confirm", {}), "not_found")
