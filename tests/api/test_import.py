"""Imports over HTTP: all of it or nothing, every reason listed, and what is open is claimed by the first call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ipamd.service import imports
from tests.support.dumps import GROUP
from tests.support.stack import Got, Stack

WHEREABOUTS, HOST_LOCAL = "/v1/import?format=whereabouts", "/v1/import?format=host-local"
CONF = {
    "cniVersion": "1.0.0",
    "name": "pods",
    "type": "bridge",
    "ipam": {"type": "ipamd", "ranges": [[{"subnet": "192.0.2.0/24"}]]},
}


def dump(allocations: dict[str, Any], subnet: str = "192.0.2.0/24") -> dict[str, Any]:
    metadata = {"name": subnet.replace("/", "-"), "namespace": "kube-system"}
    spec = {"range": subnet, "allocations": allocations}
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [{"apiVersion": GROUP, "kind": "IPPool", "metadata": metadata, "spec": spec}],
    }


def bundle(files: dict[str, str], *confs: Any) -> dict[str, Any]:
    return {"networks": {"pods": files}, "confs": list(confs)}


def check_done(got: Got) -> dict[str, Any]:
    assert got.status == 200, got.raw
    answer: dict[str, Any] = got.json
    return answer


def check_refused(got: Got, status: int, code: str) -> dict[str, Any]:
    assert got.headers["Content-Type"] == "application/problem+json"
    answer: dict[str, Any] = got.json
    assert (got.status, answer["code"]) == (status, code), answer
    return answer


async def attachments(stack: Stack) -> list[dict[str, Any]]:
    return [
        {"pod_ref": item["pod_ref"], **one}
        for item in (await stack.ask("GET", "/v1/reservations")).json["items"]
        for one in item["attachments"]
    ]


async def test_what_an_import_did_not_know_is_null(stack: Stack) -> None:
    done = check_done(await stack.ask("POST", HOST_LOCAL, bundle({"192.0.2.5": "c1"}, CONF)))
    assert (done["made"], done["pools"][0]["pool"], done["pools"][0]["created"]) == (1, "192.0.2.0-24", True)
    assert "entries" not in done
    (one,) = await attachments(stack)
    assert (one["pod_ref"], one["ifname"], one["node"], one["cni_network"]) == (None, None, None, "pods")
    assert (one["container_id"], one["state"], one["addresses"]) == ("c1", "bound", ["192.0.2.5/24"])
    shown = (await stack.ask("GET", "/v1/addresses/192.0.2.5")).json
    assert shown["reason"].startswith("an interface of _//c1 has it bound to container c1")
    assert "ifname" not in shown
    listed = (await stack.ask("GET", "/v1/nodes")).json
    assert listed == {"items": [], "mass_silence": None, "next": None, "unclaimed": 1}
    gone = await stack.ask("DELETE", "/v1/reservations/192.0.2.0-24/_%2F%2Fc1?container_id=c1")
    assert gone.json["items"][0]["ifname"] is None
    assert await attachments(stack) == []


async def test_a_check_fills_in_what_was_open(stack: Stack) -> None:
    await stack.ask("POST", HOST_LOCAL, bundle({"192.0.2.5": "c1", "192.0.2.6": "c2\r\neth0"}, CONF))
    previous = {**CONF, "prevResult": {"cniVersion": "1.0.0", "ips": [{"address": "192.0.2.5/24"}]}}
    checked = await stack.cni("check", previous, CNI_IfName="net7")
    assert checked.status == 200, checked.raw
    by_container = {one["container_id"]: one for one in await attachments(stack)}
    one = by_container["c1"]
    assert (one["pod_ref"], one["ifname"], one["node"]) == ("_/node-1/c1", "net7", "node-1")
    assert by_container["c2"]["node"] is None
    assert (await stack.ask("GET", "/v1/nodes")).json["unclaimed"] == 1
    wrong = {**CONF, "prevResult": {"cniVersion": "1.0.0", "ips": [{"address": "192.0.2.9/24"}]}}
    assert (await stack.cni("check", wrong, CNI_ContainerID="c2")).json["code"] == 113
    assert (await attachments(stack))[0]["node"] is None


async def test_a_check_finds_what_lies_in_the_pool_of_another_subnet(stack: Stack) -> None:
    await stack.ask("POST", HOST_LOCAL, bundle({"192.0.2.5": "c1\r\neth0"}))
    wide = {**CONF, "ipam": {"type": "ipamd", "ranges": [[{"subnet": "192.0.0.0/16"}]]}}
    previous = {**wide, "prevResult": {"cniVersion": "1.0.0", "ips": [{"address": "192.0.2.5/16"}]}}
    assert (await stack.cni("check", previous)).status == 200
    added = await stack.cni("add", wide, CNI_Args="K8S_POD_NAMESPACE=t;K8S_POD_NAME=a")
    assert added.json["ips"][0]["address"] == "192.0.2.5/16"


async def test_a_gc_spares_an_open_interface_of_a_container_that_lives(stack: Stack) -> None:
    await stack.ask("POST", f"{HOST_LOCAL}&node=node-1", bundle({"192.0.2.5": "c1", "192.0.2.6": "c2"}, CONF))
    valid = [{"containerID": "c1", "ifname": "eth0"}]
    assert (await stack.cni("gc", {**CONF, "cniVersion": "1.1.0", "cni.dev/valid-attachments": valid})).status == 200
    assert [one["container_id"] for one in await attachments(stack)] == ["c1"]


async def test_a_dry_run_tells_of_every_entry_and_changes_nothing(stack: Stack) -> None:
    await stack.ask("POST", WHEREABOUTS, dump({"1": {"id": "c1", "podref": "t/a", "ifname": "net1"}}))
    more = {
        "1": {"id": "c1", "podref": "t/a", "ifname": "net1"},
        "2": {"id": "c2", "podref": "t/b", "ifname": "net1"},
        "999": {"id": "c3", "podref": "t/c"},
    }
    done = check_done(await stack.ask("POST", f"{WHEREABOUTS}&dry_run=true", dump(more)))
    assert [(one["address"], one["fate"]) for one in done["entries"]] == [("192.0.2.1", "kept"), ("192.0.2.2", "made")]
    assert (done["made"], done["kept"], done["refused"]) == (1, 1, 1)
    assert [one["place"] for one in done["conflicts"]] == ["IPPool kube-system/192.0.2.0-24 offset 999"]
    assert len(await attachments(stack)) == 1


async def test_every_conflict_is_listed_those_of_the_source_and_those_with_what_is_there(stack: Stack) -> None:
    await stack.ask("POST", WHEREABOUTS, dump({"1": {"id": "c1", "podref": "t/a", "ifname": "net1"}}))
    other = {
        "1": {"id": "c9", "podref": "t/z", "ifname": "net1"},
        "999": {"id": "c3", "podref": "t/c"},
        "2": {"id": "c2"},
    }
    problem = check_refused(await stack.ask("POST", WHEREABOUTS, dump(other)), 409, "import_conflict")
    assert [one["address"] for one in problem["conflicts"]] == ["192.0.5.231", "192.0.2.1"]
    assert problem["detail"].startswith("nothing was imported: ")
    assert len(await attachments(stack)) == 1
    del other["999"]
    problem = check_refused(await stack.ask("POST", WHEREABOUTS, dump(other)), 409, "import_conflict")
    assert problem["conflicts"] == [
        {
            "place": "IPPool kube-system/192.0.2.0-24 offset 1",
            "address": "192.0.2.1",
            "why": "is held by net1 of t/a, container c1",
        }
    ]


async def test_what_cannot_be_read_is_listed_too(stack: Stack) -> None:
    bad = dump({"x": {"id": "c1", "podref": "t/a"}, "2": {"id": "c 2", "podref": "t/b"}})
    problem = check_refused(await stack.ask("POST", WHEREABOUTS, bad), 400, "invalid_request")
    assert [one["place"].rpartition(" ")[2] for one in problem["faults"]] == ["x", "2"]
    assert await attachments(stack) == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (WHEREABOUTS, b'{"kind": "List", "items": ['),
        (WHEREABOUTS, b"[]"),
        (WHEREABOUTS, {"kind": "PodList", "items": [{}]}),
        (HOST_LOCAL, {"networks": {"pods": {"192.0.2.5": 7}}}),
        (HOST_LOCAL, {"networks": {}, "more": 1}),
        (HOST_LOCAL, {}),
        ("/v1/import?format=calico", {}),
        ("/v1/import", {}),
        (f"{HOST_LOCAL}&node=a%20b", {"networks": {"pods": {"192.0.2.5": "c1"}}}),
        (f"{HOST_LOCAL}&cluster=a%20b", {"networks": {"pods": {"192.0.2.5": "c1"}}}),
    ],
)
async def test_what_is_something_else_is_refused(stack: Stack, path: str, body: Any) -> None:
    check_refused(await stack.ask("POST", path, body), 400, "invalid_request")


async def test_a_repetition_under_its_key_is_answered_as_the_first(stack: Stack) -> None:
    body = dump({str(at): {"id": f"c{at}", "podref": f"t/p{at}", "ifname": "net1"} for at in range(1, 200)})
    first = await stack.ask("POST", WHEREABOUTS, body, headers={"Idempotency-Key": "k1"})
    again = await stack.ask("POST", WHEREABOUTS, body, headers={"Idempotency-Key": "k1"})
    assert check_done(first)["made"] == 199
    assert again.json == first.json
    assert check_done(await stack.ask("POST", WHEREABOUTS, body))["kept"] == 199


async def test_a_body_may_be_larger_than_elsewhere_but_not_endless(stack: Stack) -> None:
    note = "x" * (2 * 1024 * 1024)
    large = dump({"1": {"id": "c1", "podref": "t/a", "ifname": "net1"}})
    large["items"][0]["metadata"]["annotations"] = {"note": note}
    assert check_done(await stack.ask("POST", WHEREABOUTS, large))["made"] == 1
    endless = json.dumps({"kind": "List", "items": [], "note": "x" * (64 * 1024 * 1024)}).encode()
    check_refused(await stack.ask("POST", WHEREABOUTS, endless), 413, "too_large")
    check_refused(await stack.ask("POST", "/v1/pools", {"name": note}), 413, "too_large")


async def test_an_import_has_no_more_addresses_than_members_can_take_at_once(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "MOST", 2)
    many = dump({str(at): {"id": f"c{at}", "podref": f"t/p{at}"} for at in range(1, 4)})
    problem = check_refused(await stack.ask("POST", WHEREABOUTS, many), 413, "too_large")
    assert "pool by pool" in problem["detail"]
    assert await attachments(stack) == []


async def test_pods_and_nodes_bear_the_name_of_their_cluster(stack: Stack) -> None:
    files = bundle({"192.0.2.5": "c1\r\neth0"}, CONF)
    await stack.ask("POST", f"{HOST_LOCAL}&node=n1&cluster=east", files)
    (one,) = await attachments(stack)
    assert (one["pod_ref"], one["node"]) == ("east:_/n1/c1", "east:n1")


async def test_an_import_wants_an_operator(stack: Stack) -> None:
    minted = await stack.ask("POST", "/v1/tokens", {"name": "r", "role": "reader"})
    got = await stack.ask_tcp("POST", WHEREABOUTS, dump({}), token=minted.json["secret"])
    check_refused(got, 403, "forbidden")


async def test_the_history_of_an_address_names_whom_it_turned_out_to_be(stack: Stack) -> None:
    await stack.ask("POST", HOST_LOCAL, bundle({"192.0.2.5": "c1"}, CONF))
    await stack.cni("add", CONF, CNI_Args="K8S_POD_NAMESPACE=t;K8S_POD_NAME=a")
    (row,) = (await stack.ask("GET", "/v1/addresses/192.0.2.5/history")).json["items"]
    assert (row["pod_ref"], row["ifname"], row["node"], row["to"]) == ("t/a", "eth0", "node-1", None)
