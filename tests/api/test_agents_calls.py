"""What agents send a server: one call through several, what they saw themselves, and DELs that waited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.dialects import section
from tests.support.stack import Got, Stack, conf

POD = {"CNI-Args": "K8S_POD_NAMESPACE=t;K8S_POD_NAME=a", "Ipamd-Boot-Id": "b1"}


async def add(stack: Stack, *, started: int = 1000, **headers: str) -> Got:
    sent = {**POD, "Ipamd-Started": str(started), **{name.replace("_", "-"): text for name, text in headers.items()}}
    return await stack.cni("add", conf(), tcp=True, **{"Ipamd-Node": "w1", **sent})


async def bound(stack: Stack, node: str = "w1") -> list[Any]:
    return list((await stack.ask("GET", f"/v1/nodes/{node}")).json["attachments"])


async def events(stack: Stack, kind: str) -> list[Any]:
    return [one for one in (await stack.ask("GET", "/v1/events")).json["items"] if one["kind"] == kind]


async def test_an_agents_call_is_carried_out_once_under_its_key(stack: Stack) -> None:
    await stack.pool()
    again = [await add(stack, Ipamd_Agent="agent", Idempotency_Key="k1") for _ in range(3)]
    assert len({got.raw for got in again}) == 1
    assert [one["generation"] for one in await bound(stack)] == [1]
    assert (await add(stack, Ipamd_Agent="agent", Idempotency_Key="k2")).status == 200
    assert [one["generation"] for one in await bound(stack)] == [2]


async def test_an_agents_gc_is_carried_out_once_under_its_key(stack: Stack) -> None:
    await stack.pool()
    await add(stack)
    sweep = {"Ipamd-Node": "w1", "Ipamd-Boot-Id": "b1", "Ipamd-Agent": "agent", "Idempotency-Key": "g1"}
    body = conf(**{"cni.dev/valid-attachments": []})
    for started in ("2000", "2000"):
        assert (await stack.cni("gc", body, tcp=True, **{**sweep, "Ipamd-Started": started})).status == 200
    assert await bound(stack) == []
    assert len(await events(stack, "released")) == 1


async def test_a_plugins_calls_have_no_keys(stack: Stack) -> None:
    await stack.pool()
    for _ in range(2):
        assert (await add(stack, Idempotency_Key="k1")).status == 200
    assert [one["generation"] for one in await bound(stack)] == [2]


async def test_the_inode_is_what_the_agent_saw_and_the_servers_own_look_is_stronger(stack: Stack) -> None:
    await stack.pool()
    await add(stack, Ipamd_Netns_Inode="4026532345")
    assert [one["netns_inode"] for one in await bound(stack)] == [4026532345]
    bad = await add(stack, Ipamd_Netns_Inode="-1")
    assert bad.json["code"] == 4
    local = await stack.cni("add", conf(), tcp=False, **{**POD, "Ipamd-Started": "1", "Ipamd-Netns-Inode": "7"})
    assert local.status == 200
    assert [one["netns_inode"] for one in await bound(stack, "node-1")] == [None]


async def test_a_spooled_del_is_older_than_what_came_after_it(stack: Stack) -> None:
    await stack.pool()
    await add(stack, started=1000)
    await add(stack, started=3000)
    late = {**POD, "Ipamd-Node": "w1", "Ipamd-Started": "2000", "Ipamd-Spooled": "true", "Ipamd-Agent": "agent"}
    assert (await stack.cni("del", conf(), tcp=True, **late)).status == 200
    assert len(await bound(stack)) == 1


async def test_a_spooled_del_that_nobody_will_take_is_an_event_and_others_are_not(stack: Stack) -> None:
    await stack.pool()
    bad = {"Ipamd-Node": "w1", "CNI-ContainerID": "-x", "Ipamd-Boot-Id": "b1", "Ipamd-Started": "1"}
    assert (await stack.cni("del", conf(), tcp=True, **bad)).json["code"] == 4
    assert await events(stack, "del_refused") == []
    refused = await stack.cni("del", conf(), tcp=True, **{**bad, "Ipamd-Spooled": "true", "Ipamd-Agent": "agent"})
    assert refused.json["code"] == 4
    (event,) = await events(stack, "del_refused")
    assert (event["node"], event["by"]) == ("w1", "token:admin")
    assert "DEL of container '-x'" in event["detail"]


async def test_a_call_that_cannot_be_read_is_of_the_node_that_made_it(stack: Stack) -> None:
    """The server that answers it is another one, and nobody would look there for the reason."""
    sent = {"Ipamd-Node": "w1", "Ipamd-Cluster": "k8s", "Ipamd-Agent": "agent", "Ipamd-Spooled": "true"}
    refused = await stack.cni("del", b"{", tcp=True, **sent, **{"X-Request-Id": "r-1"})
    assert refused.json["msg"].endswith("(node k8s:w1, request r-1)")
    assert (await stack.ask("GET", "/v1/calls")).json["items"][0]["node"] == "k8s:w1"
    assert [event["node"] for event in await events(stack, "del_refused")] == ["k8s:w1"]
    unnamed = await stack.cni("del", b"{", tcp=True, **{"Ipamd-Node": "w 1", "X-Request-Id": "r-2"})
    assert unnamed.json["msg"].endswith("(node node-1, request r-2)")


async def test_nobody_without_a_token_makes_such_events(stack: Stack) -> None:
    await stack.pool()
    headers = {"CNI-ContainerID": "-x", "Ipamd-Spooled": "true", "Ipamd-Agent": "agent"}
    assert (await stack.cni("del", conf(), tcp=True, token="wrong", **headers)).json["code"] == 112
    assert await events(stack, "del_refused") == []


async def test_what_passes_is_told_from_what_does_not(stack: Stack) -> None:
    """An agent asks another server only where that may help."""
    await stack.pool()
    unknown = await stack.cni("status", conf(pool="nowhere"))
    assert (unknown.status, "Retry-After" in unknown.headers) == (503, False)
    hasty = await stack.cni("add", conf(), tcp=False, **{**POD, "Ipamd-Started": "1", "Ipamd-Deadline-Ms": "0"})
    assert (hasty.status, hasty.json["code"], hasty.headers["Retry-After"]) == (503, 11, "1")


async def test_an_agents_pods_get_the_name_servers_of_the_agents_host(stack: Stack, tmp_path: Path) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver 192.0.2.53\n")
    config = section(subnet="192.0.2.0/29", resolvConf=str(path))
    sent = {"Ipamd-Node": "w1", "Ipamd-Started": "1000", **POD}
    without = await stack.cni("add", config, tcp=True, **sent, **{"Ipamd-Agent": "agent"})
    assert (without.json["code"], f"did not hand on what ipam.resolvConf {path} says" in without.json["msg"]) == (
        7,
        True,
    )
    handed = {"Ipamd-Agent": "agent", "Ipamd-Dns": "[[%22198.51.100.53%22],%22a.test%22,[],[]]"}
    added = await stack.cni("add", config, tcp=True, **sent, **handed)
    assert added.json["dns"] == {"nameservers": ["198.51.100.53"], "domain": "a.test"}
