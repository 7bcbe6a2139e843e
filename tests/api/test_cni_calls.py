"""CNI calls over HTTP: whatever is sent, the answer is a result or an error object, and says so in its type."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from ipamd.api.handlers import cni as handler
from ipamd.cni.call import DelCall
from ipamd.core.ports import Unavailable
from tests.support.stack import Got, Stack, conf

POD_A: dict[str, Any] = {"CNI_Args": "K8S_POD_NAMESPACE=t;K8S_POD_NAME=a"}


def check_error(got: Got, code: int, *words: str) -> dict[str, Any]:
    assert got.headers["Content-Type"] == "application/cni+json", got.raw
    assert got.status >= 400
    assert int(got.headers["Ipamd-Index"]) > 0
    error: dict[str, Any] = got.json
    assert error["code"] == code, error
    assert error["cniVersion"]
    assert got.headers["X-Request-Id"] in error["msg"]
    assert all(word in error["msg"] for word in words), error
    assert "Traceback" not in got.raw.decode()
    return error


def check_done(got: Got) -> bytes:
    assert (got.status, got.headers["Content-Type"]) == (200, "application/cni+json"), got.raw
    return got.raw


async def test_a_pod_keeps_its_address_through_a_restart_and_a_late_del(stack: Stack) -> None:
    await stack.pool(cooldown_s=0)
    first = check_done(await stack.cni("add", conf(), **POD_A))
    second = check_done(await stack.cni("add", conf(), CNI_ContainerID="c2", **POD_A))
    assert first == second
    assert check_done(await stack.cni("del", conf())) == b""
    assert (await stack.ask("GET", "/v1/reservations/p/t%2Fa")).json["attachments"][0]["container_id"] == "c2"
    assert check_done(await stack.cni("del", conf(), CNI_ContainerID="c2")) == b""
    assert (await stack.ask("GET", "/v1/reservations")).json["items"] == []


async def test_path_and_inode_of_the_namespace_are_kept_by_who_can_see_it(stack: Stack) -> None:
    await stack.pool()
    stack.namespaces.inodes = {"/run/netns/x": 41, "/opt/odd/netns": 42}
    check_done(await stack.cni("add", conf(), **POD_A))
    odd: dict[str, Any] = {"CNI_ContainerID": "c2", "CNI_Netns": "/opt/odd/netns", "CNI_Args": "IPAMD_POD_REF=t/b"}
    check_done(await stack.cni("add", conf(), **odd))
    check_done(await stack.cni("add", conf(), tcp=True, CNI_ContainerID="c3", CNI_Args="IPAMD_POD_REF=t/c"))

    def inodes(snapshot: Any) -> list[Any]:
        return [one.owner.netns_inode for one in snapshot.attachments_of_node("node-1", 0, 10)]

    assert stack.services.reader.glance(inodes).value == [41, 42, None]


async def test_check_compares_the_binding_with_the_previous_result(stack: Stack) -> None:
    await stack.pool()
    result = json.loads(check_done(await stack.cni("add", conf(), **POD_A)))
    assert check_done(await stack.cni("check", conf(prevResult=result))) == b""
    more = {**result, "ips": [*result["ips"], {"address": "10.0.0.1/24"}]}
    assert check_done(await stack.cni("check", conf(prevResult=more))) == b""
    less = {**result, "ips": [{"address": "192.0.2.77/24"}]}
    check_error(await stack.cni("check", conf(prevResult=less)), 113, "192.0.2.1")
    check_error(await stack.cni("check", conf(prevResult=result), CNI_ContainerID="c2"), 113, "c2")
    check_error(await stack.cni("check", conf(prevResult=result), CNI_IfName="net1"), 113, "net1")
    check_error(await stack.cni("check", conf(prevResult=result), Ipamd_Node="other"), 113, "other")
    check_error(await stack.cni("check", conf(prevResult=result, network="else")), 113, "else")
    check_error(await stack.cni("check", conf()), 7)
    check_done(await stack.cni("del", conf()))
    check_error(await stack.cni("check", conf(prevResult=result)), 113)


async def test_gc_keeps_what_is_listed_seen_alive_or_of_another_network(stack: Stack) -> None:
    await stack.pool(cooldown_s=0)
    stack.namespaces.inodes = {f"/run/netns/{name}": number for number, name in enumerate("abcd", 1)}
    for name in "abcd":
        call: dict[str, Any] = {
            "CNI_ContainerID": name,
            "CNI_Netns": f"/run/netns/{name}",
            "CNI_Args": f"IPAMD_POD_REF=t/{name}",
        }
        check_done(await stack.cni("add", conf(network="other" if name == "d" else "net"), **call))
    await stack.ask("POST", "/v1/reservations", {"pool": "p", "pod_ref": "t/pin", "pin": True})
    del stack.namespaces.inodes["/run/netns/b"]  # gone
    stack.namespaces.inodes["/run/netns/d"] = 99  # a successor at the same path
    listed = {"cni.dev/valid-attachments": [{"containerID": "a", "ifname": "eth0"}]}
    assert check_done(await stack.cni("gc", conf(**listed))) == b""
    left = [row["pod_ref"] for row in (await stack.ask("GET", "/v1/reservations")).json["items"]]
    assert left == ["t/a", "t/c", "t/d", "t/pin"]
    check_error(await stack.cni("gc", conf()), 7)


async def test_gc_leaves_what_started_after_it(stack: Stack) -> None:
    await stack.pool(cooldown_s=0)
    boot: dict[str, Any] = {"Ipamd_Boot_Id": "b1"}
    check_done(await stack.cni("add", conf(), **POD_A, **boot, Ipamd_Started="100"))
    later: dict[str, Any] = {"CNI_ContainerID": "c2", "CNI_Args": "IPAMD_POD_REF=t/b"}
    check_done(await stack.cni("add", conf(), **later, **boot, Ipamd_Started="300"))
    nothing = {"cni.dev/valid-attachments": None}
    check_done(await stack.cni("gc", conf(**nothing), **boot, Ipamd_Started="200"))
    assert [row["pod_ref"] for row in (await stack.ask("GET", "/v1/reservations")).json["items"]] == ["t/b"]


async def test_gc_frees_more_than_fits_one_command(stack: Stack) -> None:
    await stack.pool(subnet="10.0.0.0/20", cooldown_s=0)
    calls = (stack.cni("add", conf(), CNI_ContainerID=f"c{n}", CNI_Args=f"IPAMD_POD_REF=t/{n}") for n in range(620))
    for got in await asyncio.gather(*calls):
        check_done(got)
    check_done(await stack.cni("gc", conf(**{"cni.dev/valid-attachments": [{"containerID": "c7", "ifname": "eth0"}]})))
    assert [row["pod_ref"] for row in (await stack.ask("GET", "/v1/reservations")).json["items"]] == ["t/7"]


async def test_a_pinned_reservation_loses_its_dead_container_and_nothing_else(stack: Stack) -> None:
    await stack.pool()
    await stack.ask(
        "POST", "/v1/reservations", {"pool": "p", "pod_ref": "t/a", "pin": True, "addresses": ["192.0.2.9"]}
    )
    check_done(await stack.cni("add", conf(), **POD_A))
    check_done(await stack.cni("gc", conf(**{"cni.dev/valid-attachments": []})))
    row = (await stack.ask("GET", "/v1/reservations/p/t%2Fa")).json
    assert (row["attachments"][0]["state"], row["attachments"][0]["addresses"]) == ("held", ["192.0.2.9/24"])


async def test_status_says_whether_an_add_could_be_served(stack: Stack) -> None:
    await stack.pool(subnet="192.0.2.1/32")
    check_done(await stack.cni("add", conf(), **POD_A))
    assert check_done(await stack.cni("status", conf())) == b""
    check_error(await stack.cni("status", conf("nosuch")), 50, "nosuch")


async def test_refusals_have_their_codes(stack: Stack) -> None:
    await stack.pool(subnet="192.0.2.0/30", cooldown_s=0)
    check_done(await stack.cni("add", conf(), **POD_A))
    pod_b: dict[str, Any] = {"CNI_ContainerID": "c2", "CNI_Args": "IPAMD_POD_REF=t/b"}
    check_error(await stack.cni("add", conf(runtimeConfig={"ips": ["192.0.2.1"]}), **pod_b), 111, "t/a")
    check_error(await stack.cni("add", conf(runtimeConfig={"ips": ["192.0.2.3"]}), **pod_b), 111, "192.0.2.3")
    check_error(await stack.cni("add", conf("nosuch"), **pod_b), 7, "nosuch")
    check_done(await stack.cni("add", conf(), **pod_b))
    pod_c: dict[str, Any] = {"CNI_ContainerID": "c3", "CNI_Args": "IPAMD_POD_REF=t/c"}
    error = check_error(await stack.cni("add", conf(), **pod_c), 110, "pool p", "2 bound", "node node-1")
    assert error["cniVersion"] == "1.1.0"


async def test_two_of_one_family_are_refused_before_anything_is_kept(stack: Stack) -> None:
    await stack.pool("p", "10.0.0.0/24")
    await stack.pool("q", "10.0.1.0/24")
    check_error(await stack.cni("add", conf(["p", "q"], "0.2.0"), **POD_A), 7, "0.2.0")
    assert (await stack.ask("GET", "/v1/reservations")).json["items"] == []
    check_done(await stack.cni("add", conf(["p", "q"], "0.3.1"), **POD_A))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", 6),
        (b"{", 6),
        (b"\xff\xfe", 6),
        (b"[]", 6),
        (b"[" * 100_000, 6),
        (b'{"cniVersion":"9.9.9","name":"n","type":"t","ipam":{"type":"ipamd","pool":"p"}}', 1),
        (b'{"cniVersion":"1.0.0","name":"n","type":"t","ipam":{"type":"ipamd"}}', 7),
        (b" " * (1024 * 1024 + 1), 7),
    ],
)
async def test_bad_configurations_are_errors_of_cni(shared: Stack, body: bytes, code: int) -> None:
    await shared.pool()
    check_error(await shared.cni("add", body, **POD_A), code)


async def test_unknown_verbs_and_methods_are_errors_of_cni(stack: Stack) -> None:
    check_error(await stack.cni("fly", conf()), 7)
    check_error(await stack.ask("GET", "/cni/v1/add"), 7)


async def test_over_tcp_a_token_is_needed_and_a_node_token_is_bound(stack: Stack) -> None:
    await stack.pool()
    check_error(await stack.cni("add", conf(), tcp=True, token="wrong", **POD_A), 112, "token")
    node = (await stack.ask("POST", "/v1/tokens", {"name": "n", "role": "node", "node": "box"})).json["secret"]
    check_error(await stack.cni("add", conf(), tcp=True, token=node, **POD_A), 112, "box")
    check_done(await stack.cni("add", conf(), tcp=True, token=node, Ipamd_Node="box", **POD_A))
    reader = (await stack.ask("POST", "/v1/tokens", {"name": "r", "role": "reader"})).json["secret"]
    check_error(await stack.cni("del", conf(), tcp=True, token=reader, Ipamd_Node="box"), 112)


async def test_calls_are_remembered(stack: Stack) -> None:
    await stack.pool()
    await stack.cni("add", conf(), **POD_A)
    await stack.cni("add", conf("nosuch"), **POD_A)
    await stack.cni("del", conf())
    calls = (await stack.ask("GET", "/v1/calls")).json["items"]
    assert [(call["verb"], call["code"]) for call in calls] == [("del", 0), ("add", 7), ("add", 0)]
    assert (calls[2]["pod_ref"], calls[2]["pools"], calls[2]["node"]) == ("t/a", ["p"], "node-1")
    assert all(call["ms"] >= 0 and call["request_id"] for call in calls)


async def test_a_mistake_of_the_server_is_an_error_object_and_a_line_in_the_log(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> bytes:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setitem(handler._VERBS, DelCall, broken)
    error = check_error(await stack.cni("del", conf()), 11)
    assert "secret detail" not in error["msg"]
    (line,) = (record for record in caplog.records if record.exc_info)
    assert line.__dict__["request_id"] in error["msg"]


async def test_no_answer_of_the_log_is_try_again(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: object) -> None:
        raise Unavailable("there is no leader", "none", 2.5)

    await stack.pool()
    monkeypatch.setattr(stack.services.log, "propose", away)
    monkeypatch.setattr(stack.services.log, "barrier", away)
    check_error(await stack.cni("add", conf(), **POD_A), 11, "no leader")
    check_error(await stack.cni("status", conf()), 50, "no leader")
    got = await stack.ask("POST", "/v1/pools", {"name": "q", "subnet": "10.0.0.0/24"})
    assert (got.status, got.json["outcome"], got.headers["Retry-After"]) == (503, "none", "3")
    assert (await stack.ask("GET", "/v1/pools")).status == 503
    assert (await stack.ask("GET", "/v1/pools?stale=ok")).status == 200
    assert (await stack.ask_tcp("GET", "/readyz", token=None)).status == 503
    assert (await stack.ask_tcp("GET", "/livez", token=None)).status == 200


async def test_a_deadline_that_is_over_is_try_again(stack: Stack) -> None:
    await stack.pool()
    check_error(await stack.cni("add", conf(), Ipamd_Deadline_Ms="0", **POD_A), 11)
    check_error(await stack.cni("add", conf(), Ipamd_Deadline_Ms="soon", **POD_A), 4)
    got = await stack.ask("GET", "/v1/pools", headers={"Ipamd-Deadline-Ms": "0"})
    assert (got.status, got.json["outcome"]) == (503, "none")
    assert (await stack.ask("GET", "/v1/pools", headers={"Ipamd-Deadline-Ms": "x"})).status == 400
