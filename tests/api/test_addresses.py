"""Single addresses over HTTP: every state, the history, and quarantine."""

from __future__ import annotations

import re

import pytest

from tests.api.test_shapes import check_problem
from tests.support.stack import Stack, conf


async def test_every_state_has_its_reason(stack: Stack) -> None:
    await stack.pool(subnet="192.0.2.0/28", gateway="192.0.2.1", exclude=["192.0.2.14"], range_end="192.0.2.15")
    for pod in "abc":
        await stack.cni("add", conf(), CNI_ContainerID=pod, CNI_Args=f"IPAMD_POD_REF=t/{pod}")
    await stack.cni("del", conf(), CNI_ContainerID="b")
    await stack.ask("POST", "/v1/reservations", {"pool": "p", "pod_ref": "t/h", "addresses": ["192.0.2.9"]})
    await stack.ask("POST", "/v1/addresses/192.0.2.10/quarantine", {"for_s": 6000, "note": "seen twice"})
    await stack.ask("POST", "/v1/addresses/192.0.2.2/quarantine", {})
    expected = {
        "192.0.2.1": ("gateway", "gateway"),
        "192.0.2.2": ("bound", "quarantine once"),
        "192.0.2.3": ("cooling", "t/b"),
        "192.0.2.4": ("bound", "node-1"),
        "192.0.2.9": ("held", "t/h"),
        "192.0.2.10": ("quarantined", "seen twice"),
        "192.0.2.11": ("free", "hand it out"),
        "192.0.2.14": ("excluded", "excludes"),
        "192.0.2.0": ("outside", "hands out 192.0.2.1 to 192.0.2.14"),
        "198.51.100.1": ("outside", "no pool"),
        "2001:db8::1": ("outside", "no pool"),
    }
    for address, (state, word) in expected.items():
        shown = (await stack.ask("GET", f"/v1/addresses/{address}")).json
        assert (shown["address"], shown["space"], shown["state"]) == (address, "default", state), shown
        assert word in shown["reason"]
        assert shown["pools"] == ([] if "no pool" in shown["reason"] else ["p"])
    bound = (await stack.ask("GET", "/v1/addresses/192.0.2.4")).json
    assert (bound["pod_ref"], bound["ifname"], bound["node"]) == ("t/c", "eth0", "node-1")
    assert bound["since"].endswith("Z")


async def test_the_reason_tells_how_long_and_what_people_noted(stack: Stack) -> None:
    await stack.pool(subnet="192.0.2.0/28")
    body = {"pool": "p", "pod_ref": "t/pin", "addresses": ["192.0.2.8"], "pin": True, "note": "rule 7"}
    await stack.ask("POST", "/v1/reservations", body)
    await stack.ask(
        "POST", "/v1/reservations", {"pool": "p", "pod_ref": "t/ttl", "addresses": ["192.0.2.9"], "ttl_s": 6000}
    )
    await stack.ask("POST", "/v1/addresses/192.0.2.10/quarantine", {"for_s": 6000})
    await stack.ask("POST", "/v1/addresses/192.0.2.11/quarantine", {"note": "seen twice"})
    reasons = [(await stack.ask("GET", f"/v1/addresses/192.0.2.{n}")).json["reason"] for n in (8, 9, 10, 11)]
    assert reasons[0].endswith(
        "has it held, without a container, until it is released, through pool p, pinned (rule 7)"
    )
    assert re.search(r"has it held, without a container, for (6000|59\d\d) s more, through pool p$", reasons[1])
    assert re.fullmatch(r"socket:node-1 took it out of use for (6000|59\d\d) s more", reasons[2])
    assert reasons[3] == "socket:node-1 took it out of use until it is lifted: seen twice"


async def test_the_history_is_newest_first_and_in_pages(stack: Stack) -> None:
    await stack.pool(subnet="192.0.2.9/32", cooldown_s=0)
    for pod in "abc":
        await stack.cni("add", conf(), CNI_ContainerID=pod, CNI_Args=f"IPAMD_POD_REF=t/{pod}")
        if pod != "c":
            await stack.cni("del", conf(), CNI_ContainerID=pod)
    whole = (await stack.ask("GET", "/v1/addresses/192.0.2.9/history")).json["items"]
    assert [one["pod_ref"] for one in whole] == ["t/c", "t/b", "t/a"]
    assert (whole[0]["to"], whole[0]["to_index"]) == (None, None)
    assert whole[1]["to_index"] < whole[0]["from_index"]
    first = (await stack.ask("GET", "/v1/addresses/192.0.2.9/history?limit=2")).json
    rest = (await stack.ask("GET", f"/v1/addresses/192.0.2.9/history?limit=2&cursor={first['next']}")).json
    assert (first["items"] + rest["items"], rest["next"]) == (whole, None)


async def test_quarantine_takes_an_address_out_of_use_until_it_is_lifted(stack: Stack) -> None:
    await stack.pool(subnet="192.0.2.9/32")
    made = await stack.ask("POST", "/v1/addresses/192.0.2.9/quarantine", {"for_s": 3600, "note": "n"})
    assert (made.status, made.json["by"], made.json["note"], made.json["address"]) == (
        200,
        "socket:node-1",
        "n",
        "192.0.2.9",
    )
    assert made.json["until"] > made.json["since"]
    check_problem(await stack.ask("POST", "/v1/reservations", {"pool": "p", "pod_ref": "t/a"}), "pool_exhausted")
    assert (await stack.ask("DELETE", "/v1/addresses/192.0.2.9/quarantine")).status == 204
    assert (await stack.ask("POST", "/v1/reservations", {"pool": "p", "pod_ref": "t/a"})).status == 201
    check_problem(await stack.ask("DELETE", "/v1/addresses/192.0.2.9/quarantine"), "not_found")
    check_problem(await stack.ask("POST", "/v1/addresses/10.0.0.1/quarantine", {}), "not_found")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("method", "path", "body", "word"),
    [
        ("GET", "/v1/addresses/bogus", None, "bogus"),
        ("GET", "/v1/addresses/10.0.0.1%2F24", None, "address"),
        ("GET", "/v1/addresses/::ffff:10.0.0.1", None, "mapped"),
        ("GET", "/v1/addresses/10.0.0.1?space=a%20b", None, "space"),
        ("GET", "/v1/addresses/10.0.0.256/history", None, "256"),
        ("POST", "/v1/addresses/10.0.0.1/quarantine", {"for_s": -1}, "for_s"),
        ("POST", "/v1/addresses/10.0.0.1/quarantine", {"for_s": 10**12}, "for_s"),
        ("POST", "/v1/addresses/10.0.0.1/quarantine", {"for": 1}, "for"),
    ],
)
async def test_bad_addresses_are_refused(shared: Stack, method: str, path: str, body: object, word: str) -> None:
    assert word in check_problem(await shared.ask(method, path, body), "invalid_request")["detail"]
