"""The port that members talk through, and what strangers do to it: they are closed, counted, and nothing else happens."""

from __future__ import annotations

import asyncio
import pickle
import random
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from ipamd.consensus.frames import LIVE, frame_of, frame_of_hello, read_opening
from ipamd.consensus.peers import FORMAT, Gather, Hello, Refusal, Why
from ipamd.core.commands import Found, Origin, encode_command
from ipamd.core.model import Member, Settings
from tests.consensus.members import PATIENCE_S, item, place
from tests.consensus.tcp import FAST, Host, Lab
from tests.support.certificates import Shop

ORIGIN = Origin("test", "")


async def formed(lab: Lab, names: str) -> Host:
    listed = Gather(tuple(Member(name, "", lab.host(name).me.raft, "http://x") for name in names))
    for name in names:
        await lab.host(name).start(listed)
    leader = await lab.leader()
    await leader.node.propose(item(encode_command(Found(ORIGIN, "cluster-1", Settings(), leader.node.members))), 30)
    return leader


@pytest.fixture
async def plain(tmp_path: Path) -> AsyncIterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    await lab.stop()
    assert [host.fatal for host in lab.hosts.values()] == [[]] * len(lab.hosts)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "certificates")


@pytest.fixture
async def secure(tmp_path: Path, shop: Shop) -> AsyncIterator[Lab]:
    lab = Lab(tmp_path, tls=shop.member)
    yield lab
    await lab.stop()
    assert [host.fatal for host in lab.hosts.values()] == [[]] * len(lab.hosts)


async def closed(reader: asyncio.StreamReader) -> bytes:
    """What comes until the other side closes."""
    async with asyncio.timeout(PATIENCE_S):
        found = b""
        with suppress(ConnectionError, ssl.SSLError):
            while data := await reader.read(65536):
                found += data
        return found


def hello(name: str, member_id: str | None = None, cluster_id: str | None = "cluster-1") -> Hello:
    return Hello(FORMAT, name, member_id or f"id-{name}", cluster_id, 1, "127.0.0.1:1", "http://x")


class Touched:
    """What a pickle would do."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.path,)


def bad_openings(path: Path) -> dict[str, bytes]:
    chance = random.Random(7)
    return {
        "random bytes": chance.randbytes(5000),
        "2 GB": (2**31 - 1).to_bytes(4, "little") + b"x",
        "16 KiB and one": (16385).to_bytes(4, "little"),
        "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "a pickle": len(pickle.dumps(Touched(path))).to_bytes(4, "little") + pickle.dumps(Touched(path)),
        "a message first": frame_of({"type": "request_vote", "term": 9, "last_log_index": 9, "last_log_term": 9}),
        "no name": frame_of_hello(hello("")),
        "a long text": frame_of_hello(hello("b", "x" * 600)),
        "nothing said": LIVE,
        "msgpack of depth": (2000).to_bytes(4, "little") + b"\x91" * 2000,
    }


@pytest.mark.parametrize("kind", bad_openings(Path()))
async def test_bytes_of_no_member_are_closed_and_counted(plain: Lab, tmp_path: Path, kind: str) -> None:
    leader = await formed(plain, "a")
    before = leader.node.figures.bad_connections
    reader, writer = await asyncio.open_connection("127.0.0.1", leader.port)
    writer.write(bad_openings(tmp_path / "touched")[kind])
    assert await closed(reader) == b""
    writer.close()
    await plain.until(lambda: leader.node.figures.bad_connections == before + 1)
    assert not (tmp_path / "touched").exists()
    assert place(await leader.node.propose(item(b"x"), 30)) == 1


async def introduced(host: Host, said: Hello) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that was let in under a name."""
    reader, writer = await asyncio.open_connection("127.0.0.1", host.port)
    writer.write(frame_of_hello(said))
    answer = read_opening(await frame(reader))
    assert isinstance(answer, Hello)
    writer.write(LIVE)
    return reader, writer


async def frame(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            length = int.from_bytes(await reader.readexactly(4), "little")
            if length:
                return await reader.readexactly(length)


BAD_MESSAGES = {
    "unknown type": msgspec.msgpack.encode({"type": "apply_command", "command": b"x"}),
    "wrong field": msgspec.msgpack.encode({"type": "timeout_now", "term": "7"}),
    "no map": msgspec.msgpack.encode([1, 2]),
    "no msgpack": b"\xc1",
    "entries that jump": msgspec.msgpack.encode(
        {
            "type": "append_entries",
            "term": 9,
            "commit_index": 9,
            "prevLogIdx": 1,
            "prevLogTerm": 0,
            "entries": [[b"\x00x", 2, 9], [b"\x00x", 4, 9]],
        }
    ),
    "a pickle": pickle.dumps({"type": "timeout_now", "term": 3}),
}


@pytest.mark.parametrize("kind", BAD_MESSAGES)
async def test_a_member_that_talks_nonsense_is_closed(tmp_path: Path, plain: Lab, kind: str) -> None:
    leader = await formed(plain, "abc")
    victim = next(host for host in plain.running if host is not leader)
    third = next(host for host in plain.running if host not in (leader, victim))
    await third.stop()
    reader, writer = await introduced(victim, hello(third.name))
    body = BAD_MESSAGES[kind]
    writer.write(len(body).to_bytes(4, "little") + body)
    await closed(reader)
    writer.close()
    await plain.until(lambda: victim.node.figures.bad_connections + victim.node.figures.bad_messages >= 1)
    assert place(await leader.node.propose(item(b"x"), 30)) == 1
    assert (await plain.leader()) is leader


async def test_frames_may_come_in_any_pieces(plain: Lab) -> None:
    leader = await formed(plain, "abc")
    third = next(host for host in plain.running if host is not leader)
    await third.stop()
    said = frame_of_hello(hello(third.name)) + LIVE + LIVE
    reader, writer = await asyncio.open_connection("127.0.0.1", leader.port)
    for byte in said:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0)
    assert isinstance(read_opening(await frame(reader)), Hello)
    await plain.until(lambda: third.name in leader.wire.connected)
    assert msgspec.msgpack.decode(await frame(reader))["type"] == "append_entries"
    writer.close()


async def test_five_hundred_silent_connections_keep_nobody_out(plain: Lab) -> None:
    leader = await formed(plain, "abc")
    silent = [await asyncio.open_connection("127.0.0.1", leader.port) for _ in range(500)]
    follower = next(host for host in plain.running if host is not leader)
    await follower.restart()
    await plain.until(lambda: follower.node.ready)
    assert place(await leader.node.propose(item(b"x"), 30)) == 1
    assert (await plain.leader()) is leader
    async with asyncio.timeout(PATIENCE_S):
        for reader, writer in silent:
            with suppress(ConnectionError):
                assert await reader.read(1) == b""
            writer.close()
    await plain.until(lambda: leader.node.figures.bad_connections >= 500)
    await plain.until(lambda: not leader.wire._strangers)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (hello("z"), Why.NOT_A_MEMBER),
        (hello("b", "another-id"), Why.LOST_DATA),
        (hello("b", cluster_id="cluster-2"), Why.CLUSTER),
        (msgspec.structs.replace(hello("b"), format=2), Why.FORMAT),
        (hello("a"), Why.NOT_A_MEMBER),
    ],
)
async def test_who_is_not_let_in_is_told_why(plain: Lab, said: Hello, why: Why) -> None:
    host = plain.host("a")
    listed = Gather(tuple(Member(name, "", plain.host(name).me.raft, "http://x") for name in "abc"))
    for name in "abc":
        await plain.host(name).start(listed)
    leader = await plain.leader()
    await leader.node.propose(item(encode_command(Found(ORIGIN, "cluster-1", Settings(), leader.node.members))), 30)
    await plain.until(lambda: host.machine.cluster_id is not None)
    reader, writer = await asyncio.open_connection("127.0.0.1", host.port)
    writer.write(frame_of_hello(said))
    answer = read_opening(await frame(reader))
    assert isinstance(answer, Refusal)
    assert answer.why is why
    assert answer.applied >= 2
    assert await closed(reader) == b""
    writer.close()


async def test_a_second_connection_under_a_name_closes_the_first(plain: Lab) -> None:
    leader = await formed(plain, "abc")
    third = next(host for host in plain.running if host is not leader)
    await third.stop()
    one, first = await introduced(leader, hello(third.name))
    other, second = await introduced(leader, hello(third.name))
    await closed(one)
    assert msgspec.msgpack.decode(await frame(other))["type"] == "append_entries"
    first.close()
    second.close()


async def test_a_silent_member_is_given_up(tmp_path: Path, plain: Lab) -> None:
    leader = await formed(plain, "abc")
    third = next(host for host in plain.running if host is not leader)
    await third.stop()
    reader, writer = await introduced(leader, hello(third.name))
    await plain.until(lambda: third.name in leader.wire.connected)
    await closed(reader)
    await plain.until(lambda: third.name not in leader.wire.connected)
    writer.close()


async def test_members_with_certificates_form_a_cluster(secure: Lab) -> None:
    leader = await formed(secure, "abc")
    assert place(await leader.node.propose(item(b"x"), 30)) == 1
    await secure.until(lambda: all(host.machine.commands == [b"x"] for host in secure.running))


async def opened(host: Host, context: ssl.SSLContext, said: Hello) -> bytes:
    """What somebody with these certificates gets for a Hello; nothing: the connection was closed."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", host.port, ssl=context)
    except (ssl.SSLError, ConnectionError):
        return b""
    writer.write(frame_of_hello(said))
    try:
        return await closed(reader)
    except TimeoutError:
        return b"let in"
    finally:
        writer.close()
        with suppress(ssl.SSLError, ConnectionError):
            await writer.wait_closed()


async def test_certificates_decide_who_somebody_is(secure: Lab, shop: Shop, tmp_path: Path) -> None:
    leader = await formed(secure, "abc")
    stranger = Shop(tmp_path / "foreign").member(leader.name).read.client
    assert await opened(leader, stranger, hello("b")) == b""
    assert await opened(leader, shop.visitor(), hello("b")) == b""
    one, other = sorted({"a", "b", "c"} - {leader.name})
    assert await opened(leader, shop.member(other).read.client, hello(one)) == b""
    refused = await opened(leader, shop.member(other).read.client, hello(other, "another-id"))
    answer = read_opening(refused[4:])
    assert isinstance(answer, Refusal)
    assert answer.why is Why.LOST_DATA
    await secure.until(lambda: leader.node.figures.bad_connections >= 3)
    assert (await secure.leader()) is leader


async def test_plain_bytes_on_a_port_with_certificates_are_closed(secure: Lab) -> None:
    secure.limits = replace(FAST, handshake_s=0.5)
    leader = await formed(secure, "a")
    reader, writer = await asyncio.open_connection("127.0.0.1", leader.port)
    writer.write(frame_of_hello(hello("b")))
    await closed(reader)
    writer.close()
    await secure.until(lambda: leader.node.figures.bad_connections == 1)


async def test_a_name_that_does_not_resolve_is_tried_again(plain: Lab) -> None:
    listed = (
        Member("a", "", plain.host("a").me.raft, "http://x"),
        Member("b", "", "no-such-host.invalid:1", "http://x"),
    )
    await plain.host("b").start(Gather(listed))
    await plain.until(lambda: (plain.host("b").node.trouble or "").startswith("waiting for a"))
    await plain.host("a").start(Gather(listed))
    await plain.leader()
