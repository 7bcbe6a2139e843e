"""Every route, with every kind of caller, on real servers with certificates: who gets in, and how the others are refused.

The table is written down from the interface, and not taken from the routes: a route without a row fails.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ipamctl.tls.authority import Wanted, issue
from tests.support.agent import Agent
from tests.support.certificates import Shop
from tests.support.cluster import Away, Cluster, Got, MemberServer, ask_socket
from tests.support.wire import cni_conf

PEOPLE = ("reader", "operator", "admin", "socket")
"""From the least to the most: `socket` is the server's own, which is admin by its file's mode."""

NODES = ("node", "agent")
"""A token of the node w1, and the socket of its agent."""

OTHER = "node of another"
KNOWN = (*PEOPLE, *NODES, OTHER, "enrol")
STRANGERS = ("nobody", "wrong", "expired", "revoked", "not bearer", "member's certificate", "client's certificate")
OUTSIDE = ("foreign certificate", "plain HTTP")
"""Who is not even heard: one shows a valid token, the other speaks no TLS."""

ANYBODY = frozenset({*STRANGERS, *KNOWN})
READER = frozenset(PEOPLE)
OPERATOR, ADMIN = READER - {"reader"}, READER - {"reader", "operator"}
OF_ANY_NODE = frozenset({*NODES, OTHER})
OF_ITSELF = frozenset(NODES)
MEMBER = frozenset({"member's certificate"})

TABLE: dict[str, frozenset[str]] = {
    "GET /livez": ANYBODY,
    "GET /readyz": ANYBODY,
    "GET /openapi.json": READER,
    "GET /ui/": ANYBODY,
    "GET /metrics": READER | {"agent"},
    "GET /v1/pools": READER,
    "POST /v1/pools": OPERATOR,
    "GET /v1/pools/{pool}": READER,
    "PUT /v1/pools/{pool}": OPERATOR,
    "DELETE /v1/pools/{pool}": OPERATOR,
    "GET /v1/pools/{pool}/usage": READER | OF_ANY_NODE,
    "GET /v1/pools/{pool}/why": READER | OF_ANY_NODE,
    "POST /v1/pools/{pool}/confirm": OPERATOR,
    "GET /v1/backup": ADMIN,
    "GET /v1/reservations": READER | OF_ITSELF,
    "POST /v1/reservations": OPERATOR,
    "GET /v1/reservations/{pool}/{pod_ref}": READER,
    "DELETE /v1/reservations/{pool}/{pod_ref}": OPERATOR,
    "GET /v1/addresses/{address}": READER,
    "GET /v1/addresses/{address}/history": READER,
    "POST /v1/addresses/{address}/quarantine": OPERATOR,
    "DELETE /v1/addresses/{address}/quarantine": OPERATOR,
    "GET /v1/nodes": READER,
    "GET /v1/nodes/{node}": READER | OF_ITSELF,
    "POST /v1/nodes/{node}/inventory": OPERATOR | OF_ITSELF,
    "POST /v1/nodes/{node}/heartbeat": OPERATOR | OF_ITSELF,
    "POST /v1/nodes/{node}/release": OPERATOR,
    "POST /v1/nodes/{node}/rename": ADMIN,
    "DELETE /v1/nodes/{node}": ADMIN,
    "POST /v1/nodes/confirm": OPERATOR,
    "POST /v1/nodes/release-unclaimed": OPERATOR,
    "GET /v1/events": READER,
    "POST /v1/events": OPERATOR,
    "GET /v1/calls": READER | {"agent"},
    "POST /v1/import": OPERATOR,
    "POST /v1/cni/test": READER,
    "GET /v1/cluster": READER | OF_ANY_NODE,
    "POST /v1/cluster/members": ADMIN,
    "DELETE /v1/cluster/members/{name}": ADMIN,
    "POST /v1/cluster/verify": OPERATOR,
    "POST /v1/cluster/leader": ADMIN,
    "GET /v1/settings": READER,
    "PUT /v1/settings": ADMIN,
    "GET /v1/tokens": ADMIN,
    "POST /v1/tokens": ADMIN,
    "POST /v1/tokens/enrol": ADMIN | {"enrol"},
    "DELETE /v1/tokens/{id}": ADMIN,
    **{f"POST /cni/v1/{verb}": OPERATOR | OF_ITSELF for verb in ("add", "del", "check", "gc", "status")},
    **{f"POST /internal/v1/{name}": MEMBER for name in ("propose", "barrier", "hand-over", "heartbeat")},
    **{f"GET /internal/v1/{name}": MEMBER for name in ("member", "snapshot")},
}

PLACES = {
    "pool": "nosuch",
    "pod_ref": "t%2Fnobody",
    "address": "192.0.2.1",
    "node": "w1",
    "id": "none",
    "name": "nobody",
}
"""Whatever gets in changes nothing: what is named is not there, and what must be said is not said."""

ELSEWHERE = frozenset({"POST /v1/nodes/{node}/release", "POST /v1/nodes/{node}/rename", "DELETE /v1/nodes/{node}"})
"""With these the node is one that is not there."""

CNI = {
    "CNI-ContainerID": "c1",
    "CNI-IfName": "eth0",
    "CNI-Netns": "/run/netns/x",
    "Ipamd-Node": "w1",
    "Ipamd-Deadline-Ms": "2000",
}


class Door(NamedTuple):
    """One kind of caller."""

    ask: Any
    """(method, target, headers) -> Got; raises Away where nobody listens to it."""


@pytest.fixture(scope="module")
def member(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemberServer]:
    with Cluster(tmp_path_factory.mktemp("alone"), 1) as cluster:
        yield cluster["n1"]


@pytest.fixture(scope="module")
def doors(member: MemberServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Door]]:
    directory = tmp_path_factory.mktemp("doors")
    made = {role: make_token(member, role) for role in ("reader", "operator", "admin", "enrol")}
    made |= {"node": make_token(member, "node", node="w1"), OTHER: make_token(member, "node", node="w2")}
    made |= {"expired": make_token(member, "admin", ttl_s=1), "revoked": make_token(member, "admin")}
    assert member.ask("DELETE", f"/v1/tokens/{made['revoked']['id']}").status == 204
    tokens = {name: token["secret"] for name, token in made.items()}
    found = {name: over_tls(member, member.visitor, f"Bearer {token}") for name, token in tokens.items()}
    found["nobody"] = over_tls(member, member.visitor)
    found["wrong"] = over_tls(member, member.visitor, "Bearer ipamd_wrong")
    found["not bearer"] = over_tls(member, member.visitor, f"Basic {tokens['admin']}")
    found["member's certificate"] = over_tls(member, holding(member, member.shop, "n1", directory))
    found["client's certificate"] = over_tls(member, holding(member, member.shop, "bob", directory, client=True))
    stranger = Shop(directory / "foreign")
    found["foreign certificate"] = over_tls(
        member, holding(member, stranger, "n1", directory), f"Bearer {tokens['admin']}"
    )
    found["plain HTTP"] = in_the_clear(member, f"Bearer {tokens['admin']}")
    found["socket"] = Door(
        lambda method, target, headers: ask_socket(member.socket, method, target, body_of(target), 5, **headers)
    )
    token_file = directory / "w1.token"
    token_file.write_text(tokens["node"])
    flags = ("--token-file", str(token_file), "--tls-ca", str(member.shop.ca))
    with Agent(directory / "agent", "w1", [member.url], *flags) as agent:
        found["agent"] = Door(
            lambda method, target, headers: ask_socket(agent.socket, method, target, body_of(target), 5, **headers)
        )
        wait_for_expiry(found["expired"])
        yield found


def make_token(member: MemberServer, role: str, **more: Any) -> dict[str, Any]:
    made = member.ask("POST", "/v1/tokens", {"name": role, "role": role, **more})
    assert made.status == 201, made.body
    token: dict[str, Any] = made.json
    return token


def holding(member: MemberServer, shop: Shop, name: str, directory: Path, *, client: bool = False) -> ssl.SSLContext:
    """Trusts the cluster, and shows a certificate of this authority."""
    made = issue(shop.authority, Wanted(name, client=client))
    file = directory / f"{shop.directory.name}-{name}.pem"
    file.write_bytes(made.certificate + made.key)
    context = member.visitor
    context.load_cert_chain(file)
    return context


def over_tls(member: MemberServer, context: ssl.SSLContext, authorization: str | None = None) -> Door:
    def ask(method: str, target: str, headers: dict[str, str]) -> Got:
        connection = http.client.HTTPSConnection("localhost", member.port, timeout=60, context=context)
        return exchange(connection, method, target, with_authorization(headers, authorization))

    return Door(ask)


def in_the_clear(member: MemberServer, authorization: str) -> Door:
    def ask(method: str, target: str, headers: dict[str, str]) -> Got:
        connection = http.client.HTTPConnection("127.0.0.1", member.port, timeout=60)
        return exchange(connection, method, target, with_authorization(headers, authorization))

    return Door(ask)


def headers_for(route: str) -> dict[str, str]:
    if "/cni/v1/" in route:
        return CNI
    return {"Ipamd-Deadline-Ms": "1000"} if "/internal/" in route else {}


def body_of(target: str) -> bytes | None:
    """A CNI call says who it is of in its body too; all others say nothing."""
    if not target.startswith("/cni/"):
        return None
    conf = json.loads(cni_conf("nosuch", version="1.1.0"))
    previous = {"cniVersion": "1.1.0", "ips": [{"address": "192.0.2.1/24"}]}
    return json.dumps({**conf, "prevResult": previous, "cni.dev/valid-attachments": []}).encode()


def with_authorization(headers: dict[str, str], authorization: str | None) -> dict[str, str]:
    return headers if authorization is None else {**headers, "Authorization": authorization}


def exchange(connection: http.client.HTTPConnection, method: str, target: str, headers: dict[str, str]) -> Got:
    with closing(connection):
        try:
            connection.request(method, target, body_of(target), headers)
            answer = connection.getresponse()
            return Got(answer.status, dict(answer.getheaders()), answer.read())
        except (OSError, http.client.HTTPException) as error:
            raise Away(repr(error)) from error


def wait_for_expiry(door: Door) -> None:
    deadline_s = time.monotonic() + 60
    while door.ask("GET", "/v1/pools", {}).status != 401:
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def target_of(route: str) -> tuple[str, str]:
    method, path = route.split(" ", 1)
    places = {**PLACES, "node": "nowhere"} if route in ELSEWHERE else PLACES
    target = re.sub(r"\{(\w+)\}", lambda found: places[found[1]], path)
    return method, f"{target}?node=w1" if route == "GET /v1/reservations" else target


def is_refused(got: Got, route: str) -> bool:
    """Whether somebody was turned away for who it is; in the shape that errors have there."""
    if route.startswith("POST /cni/"):
        assert got.headers["Content-Type"] == "application/cni+json"
        return got.status != 200 and bool(got.json["code"] == 112)
    if got.status not in (401, 403):
        return False
    problem = got.json
    assert got.headers["Content-Type"] == "application/problem+json"
    assert problem["code"] == {401: "unauthorized", 403: "forbidden"}[got.status]
    assert got.status == 403 or got.headers["WWW-Authenticate"].startswith("Bearer")
    return True


def routes_of(door: Door) -> set[str]:
    """What the document says that there is."""
    document = door.ask("GET", "/openapi.json", {}).json
    return {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}


def test_the_table_has_every_route_and_no_other(doors: dict[str, Door]) -> None:
    served = routes_of(doors["reader"]) | {"GET /openapi.json", "GET /ui/"}
    public = {route for route in TABLE if not route.split(" ")[1].startswith(("/cni/", "/internal/"))}
    assert served - public == set(), "these have no row"
    assert public - served == set(), "these are not served"


@pytest.mark.parametrize("caller", [*STRANGERS, *KNOWN])
def test_who_gets_in_and_who_is_refused(doors: dict[str, Door], caller: str) -> None:
    wrong = []
    for route, allowed in TABLE.items():
        method, target = target_of(route)
        got = doors[caller].ask(method, target, headers_for(route))
        assert got.status < 500 or got.status == 503, (route, got)
        if caller == "socket" and "/internal/" in route:
            assert got.status == 404, "members do not meet there"
        elif is_refused(got, route) == (caller in allowed):
            wrong.append((route, got.status, got.body[:200]))
        elif caller not in allowed and "/internal/" not in route and "/cni/v1/" not in route:
            assert got.status == (401 if caller in STRANGERS else 403), (route, got)
    assert wrong == []


@pytest.mark.parametrize("caller", OUTSIDE)
def test_who_is_not_heard_at_all(doors: dict[str, Door], member: MemberServer, caller: str) -> None:
    before = len(member.log.splitlines())
    for route in TABLE:
        method, target = target_of(route)
        with pytest.raises(Away):
            doors[caller].ask(method, target, {})
    assert doors["reader"].ask("GET", "/v1/pools", {}).status == 200
    said = member.log.splitlines()[before:]
    assert not [line for line in said if "raceback" in line]
    assert len(said) < 5, said


def test_a_slow_stranger_in_the_clear_is_let_go(member: MemberServer) -> None:
    with socket.create_connection(("127.0.0.1", member.port), 60) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\n")
        sock.settimeout(60)
        while sock.recv(4096):
            pass


def test_nothing_was_changed_by_all_that(member: MemberServer) -> None:
    """Whoever got in named what is not there; whoever was refused changed nothing in any case."""
    assert member.ask("GET", "/v1/pools").json["items"] == []
    assert member.ask("GET", "/v1/reservations").json["items"] == []
    kinds = [one["kind"] for one in member.ask("GET", "/v1/events?limit=5000").json["items"]]
    assert set(kinds) <= {"token_created", "token_revoked", "member_bound"}, json.dumps(kinds)
