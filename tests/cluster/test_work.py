"""Much work, odd work and bad company, spread over three members: W36c, W37c, W44c, W45c, S12c, R09, P07c and R01."""

from __future__ import annotations

import json
import os
import random
import socket
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.cluster import Away, Cluster, Got, MemberServer, owned_twice, rounds
from tests.support.stopwatch import Stopwatch
from tests.support.wire import cni_headers

MIB = 1 << 20
PAGE = 500
SPENT = ("bound", "held", "cooling", "quarantined", "withheld", "elsewhere", "free")
JSON = {"Content-Type": "application/json"}


def worked_s(member: MemberServer) -> float:
    """How long it had a processor so far."""
    return (
        sum(float(task.read_text().split()[0]) for task in Path(f"/proc/{member.pid}/task").glob("*/schedstat")) / 1e9
    )


def used(member: MemberServer, pool: str) -> dict[str, int]:
    """The counts of a pool, as a member has them."""
    shown: dict[str, int] = member.ask("GET", f"/v1/pools/{pool}/usage?stale=ok").json["ipv4"]
    return shown


def test_w36c_two_hundred_at_once_get_two_hundred_addresses(three: Cluster, pool: str) -> None:
    with ThreadPoolExecutor(50) as callers:
        members = [member for member, _ in zip(cycle(three), range(200), strict=False)]
        given = list(callers.map(lambda m, n: m.add(f"c{n}", f"t/{n}", pool=pool), members, range(200)))
    assert Counter(got.code for got in given) == {0: 200}
    assert len({got.address for got in given}) == 200
    listed = three.level(pool)
    assert {address.split("/")[0] for address, *_ in listed} == {got.address for got in given}


@pytest.mark.timeout(900)
def test_w44c_the_thousandth_costs_what_the_first_did(three: Cluster) -> None:
    three.pool("w44", "10.244.0.0/20")
    count = rounds(1000)
    took_s: list[float] = []

    def timed(verb: str, number: int) -> Got:
        member = list(three)[number % 3]
        began = Stopwatch(*three)
        got = member.cni(verb, f"c{number}", f"t/{number}", pool="w44")
        took_s.append(began.spent_s())
        return got

    def called(verb: str) -> tuple[list[Got], list[float]]:
        """All calls, and what each tenth of them was for the members' processors."""
        got: list[Got] = []
        spent_s: list[float] = []
        for tenth in range(0, count, count // 10):
            before_s = sum(map(worked_s, three))
            got += callers.map(lambda n: timed(verb, n), range(tenth, tenth + count // 10))
            spent_s.append(sum(map(worked_s, three)) - before_s)
        return got, spent_s

    with ThreadPoolExecutor(20) as callers:
        first, first_s = called("add")
        again, again_s = called("add")
        gone, _ = called("del")
    assert {got.code for got in (*first, *again, *gone)} == {0}
    assert len({got.address for got in first}) == count
    assert [got.address for got in again] == [got.address for got in first]
    assert max(first_s[-1], again_s[-1]) <= 3 * first_s[0], (first_s, again_s)
    assert sorted(took_s)[int(len(took_s) * 0.99)] < 2
    assert three.level("w44") == []


class Mix:
    """Random calls for pods of a pool through random members."""

    def __init__(self, three: Cluster, pool: str, seed: int) -> None:
        self.three, self.pool, self.chance = three, pool, random.Random(seed)
        self.held: dict[str, str] = {}
        self.numbers = iter(range(1 << 30))

    def one(self) -> None:
        """An ADD, re-ADD, DEL, second DEL, refused ADD or GC. Calls without an answer are made again."""
        pod = f"t/{self.chance.randrange(40)}"
        container = self.held.get(pod)
        dice = self.chance.random()
        if container is None or dice < 0.3:
            container = f"c{next(self.numbers)}" if container is None or dice < 0.15 else container
            assert self.until_known("add", container, pod).code == 0
            self.held[pod] = container
        elif dice < 0.8:
            for _ in range(self.chance.choice((1, 1, 2))):
                assert self.until_known("del", container, pod).code == 0
            del self.held[pod]
        elif dice < 0.9:
            self.collect(gone=pod if dice < 0.85 else None)
        else:
            refused = self.until_known("add", f"c{next(self.numbers)}", f"refused/{dice}", pool="none")
            assert refused.code not in (0, 11)

    def collect(self, gone: str | None) -> None:
        """A GC that names all that is held, or all but one pod's container."""
        kept = [container for pod, container in self.held.items() if pod != gone]
        conf = {"cniVersion": "1.1.0", "name": "net", "ipam": {"type": "ipamd", "pool": self.pool}}
        body = {**conf, "cni.dev/valid-attachments": [{"containerID": one, "ifname": "eth0"} for one in kept]}
        assert self._until_known(lambda member: gc(member, body, 10)).code == 0
        self.held.pop(gone or "", None)

    def until_known(self, verb: str, container: str, pod: str, pool: str | None = None) -> Got:
        """The answer to a call, made again and again until there is one."""
        more: dict[str, Any] = {"pool": pool or self.pool, "timeout_s": 10, "Ipamd-Node": "n1"}
        return self._until_known(lambda member: member.cni(verb, container, pod, **more))

    def _until_known(self, call: Callable[[MemberServer], Got]) -> Got:
        for _ in range(20):
            with suppress(Away):
                got = call(self.three.any())
                if got.code != 11:
                    return got
        raise AssertionError("no answer")


def gc(member: MemberServer, body: object, timeout_s: float) -> Got:
    """A GC for node n1. Raises Away."""
    own = ("CNI-Path", "Ipamd-Boot-Id", "Ipamd-Started")
    headers = {name: text for name, text in cni_headers("gc", "t/gc").items() if name in own}
    return member.ask("POST", "/cni/v1/gc", body, timeout_s, **headers, **JSON, **{"Ipamd-Node": "n1"})


def agree(three: Cluster, pool: str) -> None:
    """Lists and counts of all members are about the same pods."""
    listed = three.level(pool)
    whole = [row for row in three["n1"].listed() if row in listed]
    assert whole == listed
    for member in three:
        counts = used(member, pool)
        assert counts["bound"] == len(listed), counts
        assert sum(counts[name] for name in SPENT) == counts["total"], counts


@pytest.mark.timeout(900)
def test_w37c_s12c_lists_and_counts_agree_while_leaders_change(three: Cluster, pool: str) -> None:
    mix = Mix(three, pool, 37)
    for number in range(rounds(10, 4)):
        for _ in range(100):
            mix.one()
        agree(three, pool)
        assert {pod for _, pod, *_ in three.level(pool)} == set(mix.held)
        if number in (0, 1):
            leader = three.leader()
            leader.kill()
            mix.one()
            leader.start()
        elif number == 2:
            assert three.ctl("cluster", "transfer").returncode == 0


def tables(member: MemberServer) -> dict[str, list[Any]]:
    """Every table of a member that does not run, row by row."""
    with closing(sqlite3.connect(member.data_dir / "state.db")) as state:
        names = [name for (name,) in state.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {name: state.execute(f"SELECT * FROM {name}").fetchall() for name in names}


def test_r09_the_same_calls_make_the_same_tables(three: Cluster, pool: str) -> None:
    """Free spans too: they are an index, and follow from the rest."""
    mix = Mix(three, pool, 9)
    for _ in range(300):
        mix.one()
    three.level(pool)
    for member in three:
        assert member.process is not None
        member.process.kill()
    for member in three:
        member.kill()
    first, second, third = map(tables, three)
    assert {name for name in first if first[name] != second[name]} == set()
    assert {name for name in first if first[name] != third[name]} == set()
    assert sum(map(len, first.values())) > 100


BAD_CALLS: dict[str, tuple[str, str, Any]] = {
    "a pod name of 1 MB": ("POST", "/v1/reservations", {"pool": "{pool}", "pod_ref": "t/" + "x" * MIB}),
    "a NUL": ("POST", "/v1/reservations", {"pool": "{pool}", "pod_ref": "t/a\0b"}),
    "invalid UTF-8": ("POST", "/v1/reservations", b'{"pool":"{pool}","pod_ref":"t/\xff\xfe"}'),
    "400 digits": (
        "POST",
        "/v1/reservations",
        b'{"pool":"{pool}","pod_ref":"t/z","ttl_s":' + b"9" * 400 + b"}",
    ),
    "the pool again, otherwise": ("POST", "/v1/pools", {"name": "{pool}", "subnet": "192.0.2.0/24"}),
    "a pool in use": ("DELETE", "/v1/pools/{pool}", None),
}


def test_p07c_bad_calls_are_refused_and_leave_nothing(three: Cluster, pool: str) -> None:
    assert three["n1"].add("c", "t/a", pool=pool).code == 0
    for member in three:
        for what, (method, path, body) in BAD_CALLS.items():
            raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
            raw = raw.replace(b"{pool}", pool.encode())
            got = member.ask(method, path.replace("{pool}", pool), raw, 10.0, **JSON)
            assert 400 <= got.status < 500, (what, got)
        for pod in ("x" * MIB, "a\0b", "9" * 400):
            with suppress(Away, ValueError):  # the client may not send it, and the server may hang up
                assert member.add("c1", f"t/{pod}", pool=pool).code not in (0, 11)
    for number, member in enumerate(three):
        assert member.add(f"d{number}", f"t/good{number}", pool=pool).code == 0
    assert {pod for _, pod, *_ in three.level(pool)} == {"t/a", "t/good0", "t/good1", "t/good2"}


def silent(port: int, first: bytes) -> socket.socket | None:
    """A connection that says so much and no more; None: it was not let in."""
    try:
        made = socket.create_connection(("127.0.0.1", port), 60)
        made.sendall(first)
    except OSError:
        return None
    return made


@pytest.mark.timeout(900)
def test_r01_silent_connections_delay_nobody(three: Cluster, pool: str) -> None:
    asked = three.followers()[0]
    term = asked.status()["term"]
    words = cycle((b"", b"GET / HTTP/1.1\r\nHost: x", os.urandom(200), b"\x80\0\0\0\x93", b"\x16\x03\x01\x02\0\x01"))
    with ExitStack() as kept:
        bad: list[socket.socket] = []
        for number, word in zip(range(500), words, strict=False):
            member = list(three)[number % 3]
            made = silent(member.port if number % 2 else member.raft_port, word)
            if made is not None:
                bad.append(kept.enter_context(made))
        for number in range(30):
            began = Stopwatch(*three)
            assert asked.add(f"c{number}", f"t/{number}", pool=pool).code == 0
            assert began.spent_s() < 2
        closed_by(bad, time.monotonic() + 120)
    assert [member.is_running for member in three] == [True] * 3
    assert asked.status()["term"] == term


def closed_by(connections: list[socket.socket], deadline_s: float) -> None:
    """The other side ends each of them in time. Raises AssertionError."""
    assert len(connections) > 100, "too few were let in to say anything"
    for one in connections:
        one.settimeout(max(0.01, deadline_s - time.monotonic()))
        try:
            while one.recv(4096):
                pass
        except TimeoutError:
            raise AssertionError("a silent connection is kept") from None
        except OSError:
            continue


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[Cluster]:
    """Three servers with a pool for very many."""
    with Cluster(tmp_path) as cluster:
        cluster.pool("crowd", "10.64.0.0/12")
        yield cluster


def resident_bytes(member: MemberServer) -> int:
    """Memory that a server uses at most so far."""
    lines = Path(f"/proc/{member.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) << 10


def paged(member: MemberServer, pool: str) -> list[tuple[str, str]]:
    """The whole list, page by page, as (pod, address)."""
    rows: list[tuple[str, str]] = []
    more: str | None = ""
    while more is not None:
        got = member.ask("GET", f"/v1/reservations?pool={pool}&limit={PAGE}{more and f'&cursor={quote(more)}'}")
        assert got.status == 200, got.body
        assert len(got.json["items"]) <= PAGE
        rows += [(item["pod_ref"], item["attachments"][0]["addresses"][0]) for item in got.json["items"]]
        more = got.json["next"]
    return rows


@pytest.mark.timeout(1500)
def test_w45c_long_lists_and_gc_hold_nobody_up(crowded: Cluster) -> None:
    count = rounds(20_000, 2000)
    members = list(crowded)

    def fill(numbers: range) -> None:
        for number in numbers:
            body = {"pool": "crowd", "pod_ref": f"t/{number:05}", "container_id": f"c{number}", "node": "n1"}
            assert members[number % 3].ask("POST", "/v1/reservations", body).status == 201

    with ThreadPoolExecutor(24) as callers:
        list(callers.map(fill, [range(start, count, 24) for start in range(24)]))
    names = [*(f"c{number}" for number in range(count)), *(f"a{number}" for number in range(20))]
    known = [{"containerID": name, "ifname": "eth0"} for name in names]
    conf = {"cniVersion": "1.1.0", "name": "net", "ipam": {"type": "ipamd", "pool": "crowd"}}
    with ThreadPoolExecutor(3) as callers:
        lists = callers.submit(paged, members[1], "crowd")
        keep = {**conf, "cni.dev/valid-attachments": known}
        collected = callers.submit(gc, members[0], keep, 30.0)
        metrics = callers.submit(lambda: [used(members[2], "crowd") for _ in range(20)])
        took_s = []
        for number in range(20):
            began = Stopwatch(*members)
            assert members[number % 3].add(f"a{number}", f"meanwhile/{number}", pool="crowd").code == 0
            took_s.append(began.spent_s())
        rows = lists.result()
        assert collected.result().code == 0, collected.result()
        assert all(count <= one["bound"] <= count + 20 for one in metrics.result())
    pods = [pod for pod, _ in rows if pod.startswith("t/")]
    assert (len(pods), len(set(pods))) == (count, count)
    assert [pod for pod, _ in rows] == sorted({pod for pod, _ in rows})
    assert len({address for _, address in rows}) == len(rows)
    assert max(took_s) < 3, took_s
    listed = crowded.level("crowd")
    assert len(listed) == count + 20
    assert owned_twice(listed) == []
    assert max(map(resident_bytes, crowded)) < 300 << 20
