"""Owns the measurements of three members with certificates: rates, syncs, and a member that comes back late."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from statistics import median
from threading import Event

from bench import constant
from bench.figures import Figure, middle_ms, percentile
from bench.filled import fill, stopped
from bench.http import cpu_s
from bench.load import Job, Result, send
from bench.syncs import Syncs, counting
from tests.support.cluster import Away, Cluster, MemberServer

POOL, SUBNET = "bench", "10.0.0.0/8"
TURNS = 3
ONE_CLIENT = 300
REQUESTS = {64: 4_000, 256: 6_000}
ASKED = {64: 1_500.0, 256: 2_000.0}
A_BUSY_ENTRY = 16
"""So many commands are in an entry of a leader with 64 clients."""

LEVEL_ENTRIES = 100
LONGEST_S = 300.0


def measure(folder: Path, missed: int) -> Iterator[Figure]:
    """All of them, one after the other, in one cluster."""
    with counting(folder / "syncs") as syncs, Cluster(folder) as cluster, constant.running(folder) as plain:
        cluster.pool(POOL, SUBNET)
        leader = cluster.leader()
        job = Job(f"unix:{leader.socket}", POOL, "warm", 1_000, connections=16, via="cni")
        send(job)
        yield from alone(job, cluster)
        for clients in REQUESTS:
            yield from together(replace(job, connections=clients), plain, cluster, syncs)
        yield from elsewhere(job, cluster)
        yield from late(cluster, missed)


def alone(job: Job, cluster: Cluster) -> Iterator[Figure]:
    """The latency of one client, at the leader and at another member."""
    one = send(replace(job, prefix="one", requests=ONE_CLIENT, connections=1))
    yield Figure("leader, one client, p50", middle_ms(one.latencies_s), "ms", at_most=8)
    yield Figure("leader, one client, p99", percentile(one.latencies_s, 0.99) * 1000, "ms")
    other = f"unix:{cluster.followers()[0].socket}"
    one = send(replace(job, target=other, prefix="other", requests=ONE_CLIENT, connections=1))
    yield Figure("another member, one client, p50", middle_ms(one.latencies_s), "ms")


def together(job: Job, plain: str, cluster: Cluster, syncs: Syncs) -> Iterator[Figure]:
    """The rate of many clients at the leader, in turn with that of a constant answer; what it costs each member."""
    clients, requests = job.connections, REQUESTS[job.connections]
    ours: list[Result] = []
    constants: list[Result] = []
    before = [spent(member, syncs) for member in cluster]
    for turn in range(TURNS):
        ours.append(send(replace(job, prefix=f"many{clients}-{turn}", requests=requests)))
        constants.append(send(replace(job, target=plain, requests=requests)))
    rate, most = (median(result.rate for result in results) for results in (ours, constants))
    latencies_s = [latency_s for result in ours for latency_s in result.latencies_s]
    yield Figure(f"leader, {clients} clients", rate, "ADD/s", at_least=ASKED[clients])
    yield Figure(f"a constant POST, {clients} clients", most, "POST/s")
    yield Figure(f"leader, {clients} clients, beside a constant POST", rate / most, "x")
    p99_ms = percentile(latencies_s, 0.99) * 1000
    yield Figure(f"leader, {clients} clients, p99", p99_ms, "ms", at_most=250 if clients == 64 else None)
    for member, (synced, cpu) in zip(cluster, before, strict=True):
        synced_now, cpu_now = spent(member, syncs)
        role = "leader" if member is cluster.leader() else "follower"
        adds = TURNS * requests
        what = f"{member.name} ({role}), {clients} clients"
        yield Figure(f"{what}, CPU time", (cpu_now - cpu) / adds * 1e6, "us/ADD")
        if syncs.works:
            asked = 0.2 if clients == 64 else None
            yield Figure(f"{what}, fsyncs", (synced_now - synced) / adds, "an ADD", at_most=asked)


def spent(member: MemberServer, syncs: Syncs) -> tuple[int, float]:
    """How often a member synced so far, and the CPU time that it used."""
    return syncs.of(member.pid) if syncs.works else 0, cpu_s(member)


def elsewhere(job: Job, cluster: Cluster) -> Iterator[Figure]:
    """The rate of 64 clients that all ask a member which does not lead."""
    other = f"unix:{cluster.followers()[0].socket}"
    many = send(replace(job, target=other, prefix="elsewhere", requests=REQUESTS[64], connections=64))
    yield Figure("another member, 64 clients", many.rate, "ADD/s")
    yield Figure("another member, 64 clients, p99", percentile(many.latencies_s, 0.99) * 1000, "ms")


def late(cluster: Cluster, missed: int) -> Iterator[Figure]:
    """How soon a member that missed many commands has all of them, while more come."""
    *most, victim = stopped(cluster)
    fill(most[0], most[1:], POOL, missed, A_BUSY_ENTRY)
    for member in most:
        member.spawn()
    leader = cluster.leader(most)
    with steadily(Job(f"unix:{leader.socket}", POOL, "", 0, via="cni")) as rates:
        began_s = time.monotonic()
        victim.spawn()
        began_at = first_index(victim)
        started_s = time.monotonic() - began_s
        _wait_until_level(victim, leader)
        took_s = time.monotonic() - began_s
    yield Figure(f"start to level again, {missed:,} commands behind", took_s, "s", at_most=60)
    yield Figure("of which until the process answers", started_s, "s", note=f"at entry {began_at}")
    yield Figure("least rate meanwhile, 300 wanted", min(rates), "ADD/s")


def first_index(member: MemberServer) -> int:
    """Where it begins, once it answers."""
    deadline_s = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline_s:
        with suppress(Away):
            return int(member.status()["index"])
        time.sleep(0.05)
    raise RuntimeError(f"{member.name} did not start:\n{member.log[-2000:]}")


@contextmanager
def steadily(job: Job) -> Iterator[list[float]]:
    """300 ADDs a second meanwhile; at the end the rates of all that was sent, of a few seconds each."""
    enough, rates = Event(), list[float]()

    def work() -> None:
        turn = 0
        while not enough.is_set():
            turn += 1
            steady = replace(job, prefix=f"steady{turn}", requests=600, connections=30, each_s=0.1)
            rates.append(send(steady).rate)

    with ThreadPoolExecutor(1) as worker:
        working: Future[None] = worker.submit(work)
        try:
            yield rates
        finally:
            enough.set()
            working.result()


def _wait_until_level(member: MemberServer, leader: MemberServer) -> None:
    """Until a member has applied what its leader has, but for what is on its way."""
    deadline_s = time.monotonic() + LONGEST_S
    while member.status()["index"] + LEVEL_ENTRIES < leader.status()["index"]:
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"{member.name} was not level within {LONGEST_S} s")
        time.sleep(0.05)
