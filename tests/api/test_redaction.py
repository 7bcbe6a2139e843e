"""Who sees the ids of containers: operators and administrators all, a node its own, a reader none; on every route."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from ipamd.api.access import Caller
from ipamd.api.redaction import redacted, redacted_sentence
from ipamd.api.routes import ROUTES
from ipamd.core.model import Role
from tests.support.stack import Got, Stack, conf

LONG = "3f9c0d5a" + "7e" * 28
MINE, OTHERS = f"mine-{LONG}", f"others-{LONG}"
NAMELESS = "nameless7c1e"
IDS = (MINE, OTHERS, NAMELESS)

READER = Caller("r", "r", Role.READER)
NODE = Caller("n", "n", Role.NODE, "box")


@pytest_asyncio.fixture
async def full(stack: Stack) -> AsyncIterator[Stack]:
    """Two nodes with a pod each, one without a name of its own, a moved and a rebooted one: all kinds of traces."""
    await stack.pool(cooldown_s=0)
    for node, container, args in (
        ("box", MINE, "IPAMD_POD_REF=t/mine"),
        ("other", OTHERS, "IPAMD_POD_REF=t/others"),
        ("other", NAMELESS, ""),
        ("other", OTHERS, "IPAMD_POD_REF=t/moved"),
        ("other", f"{OTHERS}-2", "IPAMD_POD_REF=t/moved"),
        ("box", f"{MINE}-3", "IPAMD_POD_REF=t/moved"),
    ):
        ifname = "net1" if "moved" in args else "eth0"
        added = await stack.cni(
            "add", conf(), CNI_ContainerID=container, CNI_Args=args, Ipamd_Node=node, CNI_IfName=ifname
        )
        assert added.status == 200, added.raw
    yield stack


async def secret_of(stack: Stack, role: str, **more: object) -> str:
    secret: str = (await stack.ask("POST", "/v1/tokens", {"name": role, "role": role, **more})).json["secret"]
    return secret


def filled(path: str) -> list[str]:
    nodes = ["box", "other"] if "{node}" in path else [""]
    pods = ["t%2Fmine", "t%2Fothers", f"_%2Fother%2F{NAMELESS}"] if "{pod_ref}" in path else [""]
    return [
        path.replace("{node}", node)
        .replace("{pod_ref}", pod)
        .replace("{pool}", "p")
        .replace("{address}", f"192.0.2.{number}")
        .replace("{name}", "n1")
        for node in nodes
        for pod in pods
        for number in ((1, 2, 3, 4) if "{address}" in path else (1,))
    ]


async def read_all(stack: Stack, token: str | None) -> dict[str, list[Got]]:
    """Every route that reads, and what says whose an address is."""
    targets = {f"{route.method} {route.path}": filled(route.path) for route in ROUTES if not route.writes}
    targets["GET /v1/pools/{pool}/why"] += [
        f"/v1/pools/p/why?pod_ref=t/x&addresses=192.0.2.{number}" for number in (1, 2, 3)
    ]
    targets["GET /v1/reservations"] += [
        f"/v1/reservations?container_id={OTHERS}",
        "/v1/reservations?node=other&limit=1",
    ]
    asked = {}
    for route, paths in targets.items():
        one = stack.ask if token is None else None
        asked[route] = [
            await (one("GET", path) if one is not None else stack.ask_tcp("GET", path, token=token)) for path in paths
        ]
    body: Any = {"conf": conf(), "args": "IPAMD_POD_REF=t/x;IP=192.0.2.3"}
    asked["POST /v1/cni/test"] = [
        await stack.ask_tcp("POST", "/v1/cni/test", body, **({"token": token} if token else {}))
    ]
    return asked


def text_of(got: Got) -> str:
    """The answer with what its cursor says."""
    text = got.raw.decode()
    cursor = got.json.get("next") if got.headers["Content-Type"].startswith("application/json") else None
    return text + (base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode() if cursor else "")


def shown(asked: dict[str, list[Got]], container: str) -> set[str]:
    return {route for route, answers in asked.items() if any(container in text_of(got) for got in answers)}


async def test_a_reader_sees_no_container_on_any_route(full: Stack) -> None:
    asked = await read_all(full, await secret_of(full, "reader"))
    assert {container: shown(asked, container) for container in IDS} == {container: set() for container in IDS}
    assert {got.status for got in asked["GET /v1/nodes/{node}"]} == {200}
    (first, *_) = asked["GET /v1/reservations"][0].json["items"]
    assert first["pod_ref"] == "_/other/..."
    assert [one["container_id"] for one in first["attachments"]] == [None]


async def test_a_node_sees_its_own_and_no_others(full: Stack) -> None:
    asked = await read_all(full, await secret_of(full, "node", node="box"))
    assert shown(asked, OTHERS) == shown(asked, NAMELESS) == set()
    assert shown(asked, MINE) == {"GET /v1/nodes/{node}", "GET /v1/reservations"}


async def test_operators_and_administrators_see_all(full: Stack) -> None:
    """And what is to be hidden is there to be seen: without that the other tests prove nothing."""
    everywhere = {
        "GET /v1/addresses/{address}",
        "GET /v1/calls",
        "GET /v1/events",
        "GET /v1/nodes/{node}",
        "GET /v1/reservations",
    }
    by_name = {"GET /v1/pools/{pool}/why", "POST /v1/cni/test"}
    for token in (await secret_of(full, "operator"), await secret_of(full, "admin"), None):
        asked = await read_all(full, token)
        assert shown(asked, OTHERS) >= everywhere
        assert shown(asked, NAMELESS) >= everywhere | by_name


async def test_a_reader_walks_the_whole_list_by_cursors_that_tell_nothing(full: Stack) -> None:
    for number in range(3):
        await full.cni("add", conf(), CNI_ContainerID=f"bare{number}", Ipamd_Node="other")
    reader = await secret_of(full, "reader")
    whole = (await full.ask_tcp("GET", "/v1/reservations", token=reader)).json["items"]
    found, cursor = [], ""
    for _ in range(len(whole) + 1):
        got = await full.ask_tcp("GET", f"/v1/reservations?limit=1{cursor}", token=reader)
        assert "bare" not in text_of(got)
        found += got.json["items"]
        if got.json["next"] is None:
            break
        cursor = f"&cursor={got.json['next']}"
    assert found == whole


async def test_a_list_goes_on_where_its_last_item_has_gone(full: Stack) -> None:
    first = (await full.ask("GET", "/v1/reservations?limit=2")).json
    last = first["items"][-1]
    pod = last["pod_ref"].replace("/", "%2F")
    assert (await full.ask("DELETE", f"/v1/reservations/p/{pod}?force=true")).status == 200
    rest = (await full.ask("GET", f"/v1/reservations?cursor={first['next']}")).json["items"]
    whole = (await full.ask("GET", "/v1/reservations")).json["items"]
    assert [*first["items"][:-1], *rest] == whole


async def test_what_a_node_is_told_of_another_ones_pod_names_the_node_alone(full: Stack) -> None:
    """Node `other` sees its pod alive: the claim of `box` is contested."""
    attachments = (await full.ask("GET", "/v1/nodes/other")).json["attachments"]
    listed = [
        {"cni_network": one["cni_network"], "container_id": one["container_id"], "ifname": one["ifname"], "alive": True}
        for one in attachments
    ]
    index = int((await full.ask("GET", "/v1/nodes/other")).headers["Ipamd-Index"])
    body = {"boot_id": "b", "index": index, "attachments": listed}
    assert (await full.ask("POST", "/v1/nodes/other/inventory", body)).status == 200
    own = await secret_of(full, "node", node="box")
    got = await full.cni(
        "add", conf(), tcp=True, token=own, CNI_ContainerID="new", CNI_Args="IPAMD_POD_REF=t/others", Ipamd_Node="box"
    )
    assert got.json["code"] == 11, got.raw
    assert "other" in got.json["msg"]
    assert OTHERS not in got.raw.decode()
    contested = (await full.ask("GET", "/v1/events?limit=5000")).json["items"]
    assert any(one["kind"] == "contested" and OTHERS in json.dumps(one) for one in contested)


async def test_a_report_of_an_address_does_not_tell_whose_container_has_it(full: Stack) -> None:
    """A pod without a name has that of its container; whoever reports its address is told of a conflict with it."""
    own = await secret_of(full, "node", node="box")
    (there,) = (await full.ask("GET", f"/v1/reservations?container_id={NAMELESS}")).json["items"]
    (address,) = there["attachments"][0]["addresses"]
    listed = [{"container_id": "mine-too", "ifname": "eth0", "alive": True, "addresses": [address]}]
    body = {"boot_id": "b", "index": 1, "attachments": listed}
    told = [
        await full.ask("POST", "/v1/nodes/box/inventory", body),
        await full.ask_tcp("POST", "/v1/nodes/box/inventory", body, token=own),
    ]
    pods = [[one["pod_ref"] for one in got.json["conflicts"]] for got in told]
    assert pods == [[f"_/other/{NAMELESS}"], ["_/other/..."]]


@pytest.mark.parametrize(
    ("text", "as_reader", "as_node"),
    [
        ("bound to container c1 on node x", "bound to container ... on node x", None),
        (f"from node x container {LONG}", "from node x container 3f9c0d5a...", None),
        ("DEL of container 'c1' after", "DEL of container '...' after", None),
        ("held, without a container, for 3 s", "held, without a container, for 3 s", None),
        ("_/box/c1", "_/box/...", "_/box/c1"),
        ("pod _/other/c1 is", "pod _/other/... is", None),
        ("east:_/box/c1", "east:_/box/...", "east:_/box/..."),
        ("t/_/x", "t/_/x", None),
        ("10.0.0.0/24", "10.0.0.0/24", None),
    ],
)
def test_sentences_and_names(text: str, as_reader: str, as_node: str | None) -> None:
    assert redacted(text, READER) == as_reader
    assert redacted(text, NODE) == (as_reader if as_node is None else as_node)
    assert redacted(text, Caller("o", "o", Role.OPERATOR)) == text


def test_a_caller_is_told_of_the_container_that_it_asks_for() -> None:
    text = "eth0 of container c1 was deleted; c2 is container c2"
    assert redacted_sentence(text, NODE, "c1") == "eth0 of container c1 was deleted; c2 is container ..."
