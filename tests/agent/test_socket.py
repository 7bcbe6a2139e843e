"""An agent as it is wired, in front of a real server: the same answers on its socket, and what is its own business."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ipamd import agenting
from ipamd.agent import freshness
from ipamd.datadir import DataDirError
from ipamd.service.reporting import Reporting
from ipamd.service.sandboxes import Sandboxes
from tests.agent.attended import NETNS, Node, attended, bound_on, config_for, token_for, until_empty, until_shown
from tests.support.dialects import section
from tests.support.eventually import PATIENCE_S, until
from tests.support.stack import Stack, conf
from tests.support.stopwatch import Stopwatch

INODE = Path(NETNS).stat().st_ino


async def test_calls_are_answered_by_the_cluster(stack: Stack, node: Node) -> None:
    added = await node.cni("add")
    assert (added.status, added.json["ips"][0]["address"]) == (200, "192.0.2.1/24")
    assert int(added.headers["Ipamd-Index"]) > 0
    checked = await node.cni("check", conf(prevResult=added.json))
    assert checked.status == 200
    held = await bound_on(stack)
    assert [(one["container_id"], one["netns_inode"]) for one in held] == [("c1", INODE)]
    assert (await node.cni("del", Ipamd_Started="2000")).status == 200
    await until_empty(node)
    assert await bound_on(stack) == []


async def test_errors_come_as_the_server_said_them(node: Node) -> None:
    got = await node.cni("add", conf(pool="nowhere"))
    assert (got.status, got.headers["Content-Type"], got.json["code"]) == (400, "application/cni+json", 7)
    assert "node w1" in got.json["msg"]
    assert (await node.ask("POST", "/cni/v1/nothing")).json["code"] == 7


@pytest.mark.parametrize(("path", "status"), [("/v1/import?format=whereabouts", 403), ("/v1/pools", 413)])
async def test_what_is_larger_than_a_call_is_an_import(node: Node, path: str, status: int) -> None:
    """The server says that a node may not import, whatever the size."""
    body = json.dumps({"items": ["x" * 1000] * 2000}).encode()
    assert (await node.ask("POST", path, body)).status == status


async def test_every_dialect_is_answered(node: Node, stack: Stack, tmp_path: Path) -> None:
    resolv = tmp_path / "resolv.conf"
    host_local = section(subnet="198.51.100.0/29", resolvConf=str(resolv), routes=[{"dst": "0.0.0.0/0"}])
    refused = await node.cni("add", host_local)
    assert (refused.json["code"], f"ipam.resolvConf {resolv} cannot be read" in refused.json["msg"]) == (7, True)
    assert await bound_on(stack) == []
    resolv.write_text("nameserver 198.51.100.53\nsearch a.test\n")
    added = await node.cni("add", host_local)
    assert added.json["dns"] == {"nameservers": ["198.51.100.53"], "search": ["a.test"]}
    assert added.json["ips"] == [{"address": "198.51.100.2/29", "gateway": "198.51.100.1"}]
    assert (await node.cni("check", {**host_local, "prevResult": added.json})).status == 200
    assert (await node.cni("status", host_local)).status == 200
    whereabouts = section(range="203.0.113.0/29", exclude=["203.0.113.1/32"])
    added = await node.cni("add", whereabouts, CNI_IfName="net1")
    assert added.json["ips"] == [{"address": "203.0.113.2/29"}]
    assert (await node.cni("del", whereabouts, CNI_IfName="net1", Ipamd_Started="2000")).status == 200
    await until_empty(node)
    assert {one["pool"] for one in await bound_on(stack)} == {"198.51.100.0-29"}


async def test_what_an_import_left_open_is_reported_of_no_more_than_it_is_known(node: Node, stack: Stack) -> None:
    host_local = section(subnet="198.51.100.0/29", resolvConf=None)
    bundle = {"networks": {"net": {"198.51.100.5": "c9"}}, "confs": [host_local]}
    done = await stack.ask("POST", "/v1/import?format=host-local&node=w1", bundle)
    assert done.status == 200, done.raw
    assert [one["ifname"] for one in await bound_on(stack)] == [None]
    assert (await node.cni("add")).status == 200
    valid = [{"containerID": "c9", "ifname": "eth7"}]
    assert (await node.cni("gc", conf(**{"cni.dev/valid-attachments": valid}), Ipamd_Started="5000")).status == 200
    assert {one["container_id"] for one in await bound_on(stack)} == {"c1", "c9"}


@pytest.mark.parametrize("verb", ["add", "del", "check", "gc", "status"])
async def test_a_deadline_that_is_none_is_the_same_mistake_as_at_a_server(node: Node, stack: Stack, verb: str) -> None:
    wrong: dict[str, Any] = {"Ipamd-Deadline-Ms": "soon", "X-Request-Id": "r-1"}
    there = await stack.cni(verb, conf(), **wrong)
    assert (await node.cni(verb, **wrong)).json == {
        **there.json, "msg": there.json["msg"].replace("(node node-1,", "(node w1,")
    }  # fmt: skip
    assert there.json["code"] == 4


async def test_two_calls_are_two_calls(node: Node, stack: Stack) -> None:
    first, second = await asyncio.gather(node.cni("add"), node.cni("add", Ipamd_Started="1001"))
    assert first.json["ips"] == second.json["ips"]
    assert [one["generation"] for one in await bound_on(stack)] == [2]


async def test_status_is_given_again_for_a_few_seconds(
    node: Node, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "FRESH_S", PATIENCE_S)  # on a busy machine a few seconds are over soon
    before = stack.services.calls._noted
    assert (await node.cni("status")).status == 200
    assert (await node.cni("status")).status == 200
    assert stack.services.calls._noted == before + 1
    unknown = [await node.cni("status", conf(pool="nowhere")) for _ in range(2)]
    assert [got.json["code"] for got in unknown] == [50, 50]
    assert stack.services.calls._noted == before + 3, "what is bad is asked again each time"


async def test_the_socket_has_the_rights_of_the_nodes_token(node: Node, stack: Stack) -> None:
    await node.cni("add")
    assert (await node.ask("GET", "/v1/pools/p/usage")).json["ipv4"]["bound"] == 1
    assert (await node.ask("GET", "/v1/pools/p/why?pod_ref=t%2Fa")).status == 200
    assert (await node.ask("GET", "/v1/nodes/w1")).json["bound"] == 1
    assert (await node.ask("GET", "/v1/nodes/w2")).status == 404
    await stack.cni("add", conf(), tcp=False, **{"CNI-Args": "K8S_POD_NAMESPACE=t;K8S_POD_NAME=b"})
    assert (await node.ask("GET", "/v1/nodes/node-1")).status == 403
    refused = await node.ask("POST", "/v1/pools", {"name": "q", "subnet": "10.0.0.0/24"})
    assert (refused.status, refused.json["code"]) == (403, "forbidden")
    other = await node.cni("add", Ipamd_Node="w2")
    assert (other.status, other.json["code"]) == (403, 112)


async def test_what_the_agent_knows_itself(node: Node) -> None:
    await node.cni("add")
    assert (await node.ask("GET", "/livez")).json == {"status": "ok"}
    assert (await node.ask("GET", "/readyz")).status == 200
    listed = (await node.ask("GET", "/v1/calls?limit=1")).json
    assert (listed["items"][0]["verb"], listed["items"][0]["pod_ref"], listed["spooled"]) == ("add", "t/a", 0)
    assert (await node.ask("GET", "/v1/calls?limit=x")).json["code"] == "invalid_request"
    assert (await node.ask("PATCH", "/v1/pools")).json["code"] == "method_not_allowed"


async def test_gc_spares_what_this_host_sees_alive(node: Node, stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "ns").touch()
    gone = tmp_path / "gone"
    gone.touch()
    for number, netns in enumerate((str(tmp_path / "ns"), str(gone), NETNS)):
        pod = f"K8S_POD_NAMESPACE=t;K8S_POD_NAME=p{number}"
        added = await node.cni("add", CNI_ContainerID=f"c{number}", CNI_Args=pod, CNI_Netns=netns)
        assert added.status == 200
    gone.unlink()
    collected = await node.cni("gc", conf(**{"cni.dev/valid-attachments": None}), Ipamd_Started="5000")
    assert collected.status == 200
    assert {one["container_id"] for one in await bound_on(stack)} == {"c0", "c2"}
    without = await node.cni("gc", conf(), Ipamd_Started="6000")
    assert without.json["code"] == 7


async def test_gc_spares_what_is_bound_after_this_host_has_looked(
    node: Node, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ADD began before the GC, and no list could name it."""
    await node.cni("add", CNI_ContainerID="c0", CNI_Args="", CNI_Netns="/nowhere")
    look = Sandboxes.look

    async def then_binds(*args: Any, **more: Any) -> Any:
        seen = await look(*args, **more)
        assert (await node.cni("add", CNI_ContainerID="c1", CNI_Args="", CNI_Netns="/nowhere")).status == 200
        return seen

    monkeypatch.setattr(Sandboxes, "look", then_binds)
    collected = await node.cni("gc", conf(**{"cni.dev/valid-attachments": None}), Ipamd_Started="5000")
    assert collected.status == 200
    assert {one["container_id"] for one in await bound_on(stack)} == {"c1"}


async def test_an_address_that_was_given_up_while_its_container_lives_is_told_on_its_host(
    stack: Stack, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = await config_for(stack, tmp_path / "w1", heartbeat_every_s=1, report_every_s=1)
    async with attended(config) as node:
        assert (await node.cni("add")).status == 200
        await until_shown(stack, lambda shown: shown["attachments"][0]["alive"] is True)
        assert (await stack.ask("POST", "/v1/nodes/w1/release")).json["released"] == 1
        await until_shown(stack, lambda shown: shown["conflicts"] == 1)
        assert "conflict: a container here still uses 192.0.2.1, which was given to nobody yet" in caplog.text
        assert (await node.cni("add", Ipamd_Started="2000")).status == 200
        await until_shown(stack, lambda shown: shown["conflicts"] == 0)


async def test_a_dels_own_mistakes_are_never_put_aside(stack: Stack, tmp_path: Path) -> None:
    config = await config_for(stack, tmp_path / "w1", server=("http://127.0.0.1:9",))
    async with attended(config) as node:
        assert (await node.cni("del", CNI_ContainerID=None)).json["code"] == 4
        assert (await node.cni("del", b"{")).json["code"] == 6
        assert (await node.cni("del", conf(version="9.9.9"))).json["code"] == 1
        assert node.spooled == []


async def test_a_del_that_no_server_takes_is_put_aside_and_delivered(stack: Stack, tmp_path: Path) -> None:
    config = await config_for(stack, tmp_path / "w1")
    async with attended(config) as node:
        await node.cni("add")
    (config.spool_dir / "agent.json").write_text('{"node_name": "w1"}')
    async with attended(replace(config, server=("http://127.0.0.1:9",))) as node:
        watch = Stopwatch()
        assert (await node.cni("del", Ipamd_Started="2000")).status == 200
        assert watch.spent_s() < 1
        assert len(node.spooled) == 1
        listed = (await node.ask("GET", "/v1/calls")).json
        assert (listed["spooled"], listed["items"][0]["spooled"], listed["items"][0]["code"]) == (1, True, 0)
        add = await node.cni("add", CNI_ContainerID="c2", Ipamd_Deadline_Ms="400")
        assert add.json["code"] == 11
        assert "a DEL waits to be delivered before this" in add.json["msg"]
        gc = await node.cni("gc", conf(**{"cni.dev/valid-attachments": None}), Ipamd_Deadline_Ms="400")
        assert (gc.json["code"], "a DEL waits to be delivered before this" in gc.json["msg"]) == (11, True)
        status = await node.cni("status", Ipamd_Deadline_Ms="600")
        assert (status.status, status.json["code"]) == (503, 50)
        assert (await node.ask("GET", "/readyz", headers={"Ipamd-Deadline-Ms": "300"})).status == 503
    assert [one["container_id"] for one in await bound_on(stack)] == ["c1"]
    async with attended(config) as node:
        added = await node.cni("add", CNI_ContainerID="c2", Ipamd_Started="3000")
        assert added.json["ips"][0]["address"] == "192.0.2.1/24"
        await until_empty(node)
        assert [one["container_id"] for one in await bound_on(stack)] == ["c2"]


async def test_with_the_other_policy_a_del_waits_itself(stack: Stack, tmp_path: Path) -> None:
    config = await config_for(stack, tmp_path / "w1", server=("http://127.0.0.1:9",), del_policy="error")
    async with attended(config) as node:
        got = await node.cni("del", Ipamd_Deadline_Ms="300")
        assert (got.status, got.json["code"]) == (503, 11)
        assert node.spooled == []


@pytest.mark.parametrize("policy", ["spool", "error"])
async def test_what_a_del_let_go_is_no_conflict(
    stack: Stack, tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, reports = Reporting.report, 0

    async def counted(reporting: Reporting) -> None:
        nonlocal reports
        await report(reporting)
        reports += 1

    monkeypatch.setattr(Reporting, "report", counted)
    config = await config_for(stack, tmp_path / "w1", heartbeat_every_s=1, report_every_s=1, del_policy=policy)
    async with attended(config) as node:
        assert (await node.cni("add")).status == 200
        await until_shown(stack, lambda shown: any(one["alive"] for one in shown["attachments"]))
        assert (await node.cni("del", Ipamd_Started="2000")).status == 200
        await until_empty(node)
        before = reports
        await until(lambda: reports >= before + 2)  # one may have begun before the DEL; the namespace is there still
        assert (await stack.ask("GET", "/v1/nodes/w1")).json["conflicts"] == 0


async def test_a_revoked_token_keeps_dels_until_there_is_a_good_one(stack: Stack, tmp_path: Path) -> None:
    config = await config_for(stack, tmp_path / "w1")
    good = (tmp_path / "w1" / "token").read_text()
    async with attended(config) as node:
        await node.cni("add")
        (tmp_path / "w1" / "token").write_text("wrong")
        assert (await node.cni("add", CNI_ContainerID="c9", Ipamd_Started="1500")).json["code"] == 112
        assert (await node.cni("del", Ipamd_Started="2000")).status == 200
        assert len(node.spooled) == 1
        (tmp_path / "w1" / "token").write_text(good)
        await until_empty(node)
    assert await bound_on(stack) == []


async def test_a_del_refused_for_good_is_put_away_with_an_event(stack: Stack, tmp_path: Path) -> None:
    """Another node's name, which this node's token is not for."""
    config = await config_for(stack, tmp_path / "w1")
    async with attended(config) as node:
        assert (await node.cni("del", Ipamd_Node="w2")).status == 200
        await until_empty(node)
        assert len(node.refused) == 1
        assert (await node.cni("add")).status == 200
    events = (await stack.ask("GET", "/v1/events")).json["items"]
    refused = [one for one in events if one["kind"] == "del_refused"]
    assert [(one["node"], "bound to node w1" in one["detail"]) for one in refused] == [("w2", True)]


async def test_an_agent_keeps_its_nodes_name(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agenting, "RENAME_S", PATIENCE_S)
    config = await config_for(stack, tmp_path / "w1")
    async with attended(config) as node:
        await node.cni("add")
    renamed = replace(config, node_name="w9")
    with pytest.raises(DataDirError, match=r"this host is node w1, not w9: .* ipamctl node rename w1 w9"):
        async with attended(renamed):
            pass
    assert (await stack.ask("POST", "/v1/nodes/w1/rename", {"to": "w9"})).status == 200
    (tmp_path / "w1" / "token").write_text(await token_for(stack, "w9"))
    async with attended(renamed) as node:
        assert (await node.cni("del", Ipamd_Started="2000")).status == 200
        await until_empty(node)
    assert await bound_on(stack, "w9") == []
    async with attended(renamed):
        pass


async def test_several_clusters_share_the_servers(stack: Stack, tmp_path: Path) -> None:
    config = await config_for(stack, tmp_path / "w1", node="blue:w1", node_name="w1", cluster="blue")
    async with attended(config) as node:
        assert (await node.cni("add")).status == 200
    held = await bound_on(stack, "blue:w1")
    assert [one["pod_ref"] for one in held] == ["blue:t/a"]
    with pytest.raises(DataDirError, match=r"ipamctl node rename blue:w1 blue:w9"):
        async with attended(replace(config, node_name="w9")):
            pass


async def test_the_members_are_learned_and_kept(stack: Stack, tmp_path: Path) -> None:
    config = await config_for(stack, tmp_path / "w1")
    async with attended(config) as node:
        await node.cni("add")
        file = node.config.spool_dir / "agent.json"
        await until(lambda: json.loads(file.read_text())["servers"])
    kept = json.loads(file.read_text())
    assert kept == {"node_name": "w1", "cluster_id": "cluster-1", "servers": ["http://127.0.0.1:7480"]}
