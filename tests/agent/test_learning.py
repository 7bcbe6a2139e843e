"""The cluster says who its members are; what is new is kept, what is no answer is said once."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from ipamd.agent.learning import Learning
from ipamd.agent.servers import Servers
from ipamd.agent.upstream import Upstream
from ipamd.core.ports import Unavailable
from ipamd.service.wire import Asked, Said
from tests.support.scripted import TurnedClock, counting_bytes

A, B = "https://a:7480", "https://b:7480"


class OneServer:
    """Says what it is told to say."""

    def __init__(self, clock: TurnedClock) -> None:
        self.clock = clock
        self.said: Said | None = None

    async def exchange(self, url: str, asked: Asked, timeout_s: float) -> Said:  # noqa: ARG002 - the port
        self.clock.now_s += 1
        if self.said is None:
            raise Unavailable("connection refused", "none")
        return self.said


class ManyServers:
    """Each says what it is told to say; None: it does not answer."""

    def __init__(self, clock: TurnedClock, **said: Said | None) -> None:
        self.clock = clock
        self.said = {f"https://{name}:7480": one for name, one in said.items()}

    async def exchange(self, url: str, asked: Asked, timeout_s: float) -> Said:  # noqa: ARG002 - the port
        self.clock.now_s += 1
        found = self.said[url]
        if found is None:
            raise Unavailable("connection refused", "none")
        return found


class Kept:
    def __init__(self) -> None:
        self.all: list[tuple[str, tuple[str, ...]]] = []

    def __call__(self, cluster_id: str, servers: Sequence[str]) -> None:
        self.all.append((cluster_id, tuple(servers)))


def cluster(cluster_id: str | None, *urls: str) -> Said:
    members = [{"name": "n", "api": url, "voter": True} for url in urls]
    return Said(200, {}, json.dumps({"cluster_id": cluster_id, "members": members, "term": 3}).encode())


def build(cluster_id: str | None = None) -> tuple[Learning, OneServer, Kept]:
    clock, kept = TurnedClock(), Kept()
    server = OneServer(clock)
    upstream = Upstream(server, Servers([A]), clock=clock, random=counting_bytes())
    return Learning(upstream, clock, kept, cluster_id), server, kept


async def test_members_are_kept_when_they_change_and_only_then() -> None:
    learning, server, kept = build()
    for urls in ((A, B), (A, B), (B,)):
        server.said = cluster("c1", *urls)
        assert await learning.look()
    assert kept.all == [("c1", (A, B)), ("c1", (B,))]


async def test_a_cluster_that_was_known_is_not_kept_again() -> None:
    learning, server, kept = build("c1")
    server.said = cluster("c1")
    assert await learning.look()
    assert kept.all == []


async def test_another_cluster_is_said(caplog: pytest.LogCaptureFixture) -> None:
    learning, server, _ = build("c1")
    server.said = cluster("c2", A)
    assert await learning.look()
    assert "another cluster than before: c2, not c1" in caplog.text
    assert learning.cluster_id == "c2"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (None, "connection refused"),
        (Said(401, {}, b"{}"), "status 401: is the token that of this node?"),
        (Said(200, {}, b"<html>"), "no server that this program knows"),
        (Said(200, {}, b'{"members": [7]}'), "no server that this program knows"),
    ],
)
async def test_silence_is_said_once_and_so_is_its_end(
    said: Said | None, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    learning, server, _ = build()
    server.said = said
    assert not await learning.look()
    assert not await learning.look()
    assert caplog.text.count("the cluster does not answer") == 1
    assert why in caplog.text
    server.said = cluster("c1", A)
    assert await learning.look()
    assert "the cluster answers again" in caplog.text


def given(*urls: str, cluster_id: str | None = None, **said: Said | None) -> tuple[Learning, ManyServers, Servers]:
    clock, servers = TurnedClock(), Servers(urls)
    transport = ManyServers(clock, **said)
    upstream = Upstream(transport, servers, clock=clock, random=counting_bytes())
    return Learning(upstream, clock, Kept(), cluster_id), transport, servers


async def test_a_server_of_another_cluster_is_not_asked_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    learning, transport, servers = given(A, B, a=cluster("c1", A), b=cluster("c2", B))
    for _ in range(2):
        assert await learning.look()
        assert servers.order() == (A,)
        transport.said[B] = None  # it may come back
    assert caplog.text.count("https://b:7480 is of another cluster, c2") == 1
    transport.said[A] = None
    assert not await learning.look(), "rather nobody than another cluster"
    transport.said |= {A: cluster("c1", A), B: cluster("c1", A, B)}
    assert await learning.look()
    assert set(servers.order()) == {A, B}


async def test_another_name_of_the_cluster_is_asked_on(caplog: pytest.LogCaptureFixture) -> None:
    learning, _, servers = given(B, a=cluster("c1", A), b=cluster("c1", A))
    assert await learning.look()
    assert set(servers.order()) == {A, B}
    assert "another cluster" not in caplog.text


async def test_the_cluster_of_before_is_looked_for_before_another_is_followed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    learning, transport, servers = given(B, A, cluster_id="c1", a=cluster("c1", A), b=cluster("c2", B))
    assert await learning.look()
    assert (learning.cluster_id, servers.order()) == ("c1", (A,))
    transport.said[A] = cluster("c2", A, B)
    assert await learning.look(), "it was made anew, and nobody is of the one before"
    assert (learning.cluster_id, set(servers.order())) == ("c2", {A, B})
    assert "another cluster than before: c2, not c1" in caplog.text
