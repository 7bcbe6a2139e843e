"""Owns the measurements of size: a million reservations beside a thousand, a /64 beside a /24, and memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

from bench.figures import Figure, middle_ms
from bench.load import Job, send
from bench.pools import make
from bench.prefill import Prefill
from bench.servers import running
from tests.support.server import Server

SMALL = 1_000
TURNS = 6
ONE_BY_ONE = 150
TOGETHER = 1_500
POOL, SUBNET = "bench-size", "10.0.0.0/8"


def measure(folder: Path, large: int) -> Iterator[Figure]:
    """Two servers beside each other, of which one holds `large` reservations, the other a thousand."""
    small_folder, large_folder = folder / "small", folder / "large"
    fill(small_folder, SMALL)
    fill(large_folder, large)
    yield from applied(small_folder, large_folder, large)
    with running(small_folder, large_folder) as (few, many):
        yield from alone(few, many, large)
        yield from together(few, many, large)
        memory = resident_mib(many)
        yield Figure(f"resident memory with {large:,} reservations", memory, "MiB", at_most=500)
        yield from families(few)


def fill(folder: Path, count: int) -> None:
    """The data directory of a stopped server, with a pool that has `count` reservations."""
    folder.mkdir()
    with running(folder) as (server,):
        make(server, POOL, SUBNET)
        server.stop()
        with Prefill(server.data_dir) as prefill:
            for _ in prefill.add(POOL, count, "fill"):
                pass


def applied(small_folder: Path, large_folder: Path, large: int) -> Iterator[Figure]:
    """What an ADD takes to be decided and written, in batches of 200, in turn in both databases."""
    costs: dict[str, list[float]] = {"few": [], "many": []}
    with Prefill(small_folder / "data") as small, Prefill(large_folder / "data") as big:
        for turn in range(TURNS):
            for name, prefill in (("few", small), ("many", big)):
                costs[name] += prefill.add(POOL, TOGETHER, f"apply{turn}")
    small_us, large_us = median(costs["few"]) * 1e6, median(costs["many"]) * 1e6
    yield Figure(f"apply of an ADD at {SMALL:,} reservations", small_us, "us")
    yield Figure(f"apply of an ADD at {large:,} reservations", large_us, "us")
    yield Figure("apply of an ADD, ratio", large_us / small_us, "x", at_most=1.5)


def alone(few: Server, many: Server, large: int) -> Iterator[Figure]:
    """The latency of one client, in turn on both."""
    small_ms, large_ms = in_turn(job(few), job(many), ONE_BY_ONE)
    yield Figure(f"HTTP ADD, one client, {SMALL:,} reservations, p50", small_ms, "ms")
    yield Figure(f"HTTP ADD, one client, {large:,} reservations, p50", large_ms, "ms")
    yield Figure("HTTP ADD, one client, ratio", large_ms / small_ms, "x", at_most=1.5)


def together(few: Server, many: Server, large: int) -> Iterator[Figure]:
    """The time that an ADD takes of a busy server, in turn on both."""
    seconds: list[list[float]] = [[], []]
    for turn in range(TURNS):
        for which, server in enumerate((few, many)):
            load = replace(job(server), prefix=f"busy{turn}", requests=TOGETHER, connections=64)
            seconds[which].append(1 / send(load).rate)
    small_s, large_s = median(seconds[0]), median(seconds[1])
    yield Figure(f"64 clients, {SMALL:,} reservations", 1 / small_s, "ADD/s")
    yield Figure(f"64 clients, {large:,} reservations", 1 / large_s, "ADD/s")
    yield Figure("64 clients, time of an ADD, ratio", large_s / small_s, "x", at_most=1.5)


def families(server: Server) -> Iterator[Figure]:
    """A pool in a /24 beside one in an IPv6 /64, which must cost the same."""
    turns = [
        (make(server, f"v4-{turn}", f"192.168.{turn}.0/24"), make(server, f"v6-{turn}", f"fd00:{turn:x}::/64"))
        for turn in range(TURNS)
    ]
    v4_s: list[float] = []
    v6_s: list[float] = []
    for turn, (v4, v6) in enumerate(turns):
        for pool, seconds in ((v4, v4_s), (v6, v6_s)):
            load = replace(job(server), pool=pool, prefix=f"family{turn}", requests=ONE_BY_ONE)
            seconds.extend(send(load).latencies_s)
    v4_ms, v6_ms = middle_ms(v4_s), middle_ms(v6_s)
    yield Figure("HTTP ADD in a /24, p50", v4_ms, "ms")
    yield Figure("HTTP ADD in an IPv6 /64, p50", v6_ms, "ms")
    yield Figure(
        "/64 beside /24, ratio", v6_ms / v4_ms, "x", at_most=1.1, note="the same, within what a run differs by"
    )


def in_turn(one: Job, other: Job, requests: int) -> tuple[float, float]:
    """The middle latency of two jobs, whose parts run in turn; in ms."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for turn in range(TURNS):
        for which, base in enumerate((one, other)):
            seconds[which].extend(send(replace(base, prefix=f"turn{turn}", requests=requests)).latencies_s)
    return middle_ms(seconds[0]), middle_ms(seconds[1])


def job(server: Server) -> Job:
    """ADDs through the API of a server."""
    return Job(f"127.0.0.1:{server.port}", POOL, "", ONE_BY_ONE, token=server.token)


def resident_mib(server: Server) -> float:
    """What a server holds in memory now."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024
