"""What members ask each other over HTTP: proposals, barriers, who one is, state files; and nobody else may."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from ipamd.api import internal, snapshots
from ipamd.api.app import Access, build
from ipamd.api.peers import HttpPeers
from ipamd.api.server import Listener
from ipamd.api.snapshots import HttpSnapshots
from ipamd.core.commands import CreatePool, Expire, Origin, encode_command
from ipamd.core.definition import PoolText, RangeText, define
from ipamd.core.entries import Item
from ipamd.core.model import Member
from ipamd.core.outcomes import Done, PoolStored
from ipamd.core.ports import Unavailable
from ipamd.service.inside import Inside, StateFile
from tests.support.certificates import Shop
from tests.support.stack import SECRET, Stack, running

OP = b"0123456789abcdef"


@dataclass
class Pair:
    """A server as n1 that knows n1 and n2, and n2's way to it."""

    stack: Stack
    shop: Shop
    n1: Member
    n2: HttpPeers

    @property
    def url(self) -> str:
        return self.n1.api


@asynccontextmanager
async def inside_of(stack: Stack, shop: Shop | None, directory: Path) -> AsyncIterator[str]:
    """Serve the routes between members on a port of its own; its URL."""
    members = tuple(Member(name, f"id-{name}", "h:1", "http://h:1") for name in ("n1", "n2"))
    (directory / "state").write_bytes(b"state" * 100_000)

    @asynccontextmanager
    async def state_file() -> AsyncIterator[StateFile]:
        yield StateFile(str(directory / "state"), 500_000)

    async def hand_over(to: str | None, left_s: float) -> None:
        raise Unavailable(f"{to} does not want to, within {left_s > 0}", "none")

    inside = Inside(
        name="n1",
        member_id="id-n1",
        log=stack.services.log,
        cluster_id=lambda: "cluster-1",
        members=lambda: members,
        state_file=state_file,
        digests=lambda: {7: "aa"},
        hand_over=hand_over,
        certificate_days=lambda: 42,
        insecure=shop is None,
    )
    sock = socket.create_server(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    tls = None if shop is None else shop.member("n1").open_server
    listener = Listener(build(stack.services, Access.TOKENS, inside), sock, tls=tls)
    await listener.start()
    try:
        yield f"{'http' if shop is None else 'https'}://127.0.0.1:{port}"
    finally:
        await listener.stop(1)


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    shop = Shop(tmp_path / "tls")
    async with running(tmp_path) as stack, inside_of(stack, shop, tmp_path) as url:
        own = shop.member("n2")
        peers = HttpPeers(lambda name: own.client if name is None else own.client_of(name))
        try:
            yield Pair(stack, shop, Member("n1", "id-n1", "h:1", url), peers)
        finally:
            await peers.close()


def pool(name: str) -> Item:
    return Item(
        OP, encode_command(CreatePool(Origin("test", "r"), define(PoolText(name, ((RangeText("10.0.0.0/24"),),)))))
    )


async def test_a_proposal_is_carried_out_once_however_often_it_is_sent(pair: Pair) -> None:
    first = await pair.n2.propose(pair.n1, pool("p"), 5)
    assert isinstance(first.outcome, PoolStored)
    assert first.outcome.created
    again = await pair.n2.propose(pair.n1, pool("p"), 5)
    assert again.outcome == first.outcome
    assert again.index > first.index
    assert (await pair.stack.ask("GET", "/v1/pools/p")).status == 200


async def test_a_barrier_is_an_index_not_older_than_what_was_acknowledged(pair: Pair) -> None:
    done = await pair.n2.propose(pair.n1, Item(OP, encode_command(Expire(Origin("test", "r")))), 5)
    assert isinstance(done.outcome, Done)
    assert await pair.n2.barrier(pair.n1, 5) > done.index


async def test_a_member_says_who_it_is(pair: Pair) -> None:
    glimpse = await pair.n2.look(pair.n1, 5)
    assert (glimpse.name, glimpse.member_id, glimpse.cluster_id, glimpse.leader) == ("n1", "id-n1", "cluster-1", "n1")
    assert (glimpse.certificate_days, glimpse.digests) == (42, {7: "aa"})
    assert glimpse.applied == pair.stack.services.log.status().applied


async def ask(  # noqa: PLR0917 - a request has these parts
    url: str, tls: ssl.SSLContext, method: str, path: str, data: bytes = b"", token: str = ""
) -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.request(
            method, f"{url}{path}", data=data, ssl=tls, headers={"Authorization": f"Bearer {token}"}
        ) as answer,
    ):
        await answer.read()
        return answer.status


async def test_a_refusal_comes_with_its_reason(pair: Pair) -> None:
    with pytest.raises(Unavailable, match="n1: n3 does not want to, within True"):
        await pair.n2.hand_over(pair.n1, "n3", 5)
    with pytest.raises(Unavailable, match="n1: None does"):
        await pair.n2.hand_over(pair.n1, None, 5)


async def test_other_members_leave_places_in_the_log(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(internal, "MOST_PROPOSALS", 0)
    with pytest.raises(Unavailable, match="too many proposals of other members") as refused:
        await pair.n2.propose(pair.n1, pool("p"), 5)
    assert refused.value.outcome == "none"
    assert (await pair.stack.ask("POST", "/v1/pools", {"name": "p", "subnet": "10.0.0.0/24"})).status == 201


ROUTES = [("POST", "propose"), ("POST", "barrier"), ("POST", "hand-over"), ("GET", "member"), ("GET", "snapshot")]


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_without_a_members_certificate_nothing_is_answered(pair: Pair, method: str, path: str) -> None:
    path = f"/internal/v1/{path}"
    assert await ask(pair.url, pair.shop.visitor(), method, path, token=SECRET) == 403
    client = pair.shop.visitor()
    files = pair.shop.files("bob")
    client.load_cert_chain(files.certificate, files.key)
    expected = 200 if path.endswith("member") else 403  # a member's name, but of no member here
    assert await ask(pair.url, client, method, path) == expected
    assert (await pair.stack.ask_tcp(method, path)).status == 404
    assert (await pair.stack.ask(method, path)).status == 404


async def test_a_head_makes_no_state_file(pair: Pair) -> None:
    own = pair.shop.member("n2").client
    assert await ask(pair.url, own, "GET", "/internal/v1/snapshot") == 200
    assert await ask(pair.url, own, "HEAD", "/internal/v1/snapshot") == 405


async def test_no_page_in_a_browser_on_this_host_is_a_member(stack: Stack, tmp_path: Path) -> None:
    async with inside_of(stack, None, tmp_path) as url, aiohttp.ClientSession() as session:
        for origin, status in (({}, 200), ({"Origin": "http://page.example"}, 403), ({"Origin": "null"}, 403)):
            async with session.post(f"{url}/internal/v1/barrier", headers=origin) as answer:
                assert answer.status == status


async def test_a_state_file_comes_whole(pair: Pair, tmp_path: Path) -> None:
    target = tmp_path / "got"
    target.write_bytes(b"older")
    await HttpSnapshots(pair.n2).fetch(pair.n1, target)
    assert target.read_bytes() == b"state" * 100_000
    assert target.stat().st_mode & 0o777 == 0o600


async def test_a_state_file_is_sent_at_a_bounded_rate(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "BYTES_A_SECOND", 1_000_000)
    began = asyncio.get_running_loop().time()
    await HttpSnapshots(pair.n2).fetch(pair.n1, tmp_path / "got")
    assert asyncio.get_running_loop().time() - began >= 0.25  # the second of two pieces waits for it


async def test_a_state_file_that_does_not_come_leaves_nothing(pair: Pair, tmp_path: Path) -> None:
    target = tmp_path / "got"
    target.write_bytes(b"older")
    (tmp_path / "state").unlink()
    for member in (pair.n1, Member("n1", "id", "h:1", "https://127.0.0.1:1")):
        with pytest.raises(Unavailable, match=r"the state of n1 did not come|no state file"):
            await HttpSnapshots(pair.n2).fetch(member, target)
    assert target.read_bytes() == b"older"
    assert [name for name in os.listdir(tmp_path) if name.startswith("got")] == ["got"]  # noqa: PTH208 - in a loop


@pytest.mark.parametrize("body", [b"", b"\x01", b"\xff" * 100, b"\x80\x04c", b"\x01" + bytes(16)])
async def test_bytes_that_are_no_proposal_are_refused(pair: Pair, body: bytes) -> None:
    own = pair.shop.member("n2")
    assert await ask(pair.url, own.client_of("n1"), "POST", "/internal/v1/propose", body) == 400


async def test_another_member_there_is_no_answer(pair: Pair) -> None:
    with pytest.raises(Unavailable, match="n1 answers where n3 should be") as caught:
        await pair.n2.barrier(Member("n3", "id", "h:1", pair.url), 5)
    assert caught.value.outcome == "none"


async def test_nobody_there_is_surely_nothing_done(pair: Pair) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = f"https://127.0.0.1:{closed.getsockname()[1]}"
        for url in (nowhere, "https://no.such.host.invalid:1", "https://no..host:1", "nonsense"):
            with pytest.raises(Unavailable, match="is not reached") as caught:
                await pair.n2.propose(Member("n1", "id", "h:1", url), pool("p"), 2)
            assert caught.value.outcome == "none"


async def test_silence_after_a_proposal_is_unknown() -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()
        writer.close()
        await writer.wait_closed()
        gone.set()

    server = await asyncio.start_server(swallow, "127.0.0.1", 0)
    peers = HttpPeers(lambda _name: None)
    async with server:
        member = Member("n1", "id", "h:1", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(Unavailable, match=r"in time|timed out") as caught:
            await peers.propose(member, pool("p"), 0.3)
        assert asked.is_set()
        assert caught.value.outcome == "unknown"
        await peers.close()
        await gone.wait()


async def test_without_certificates_loopback_counts_as_a_member(tmp_path: Path) -> None:
    peers = HttpPeers(lambda _name: None)
    async with running(tmp_path) as stack, inside_of(stack, None, tmp_path) as url:
        assert (await peers.look(Member("n1", "id", "h:1", url), 5)).name == "n1"
        assert await peers.barrier(Member("n1", "id", "h:1", url), 5) > 0
        await peers.close()
