"""Owns the measurement of a snapshot: while a large state is copied and sent, ADDs go on."""

from __future__ import annotations

import ssl
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from bench.cluster import POOL, SUBNET
from bench.figures import Figure, percentile
from bench.filled import fill, stopped
from bench.load import Job, Result, send
from tests.support.cluster import Cluster, MemberServer

CONNECTIONS, EACH_S, SECONDS = 30, 0.1, 20
CHUNK_BYTES = 1 << 20


def measure(folder: Path, reservations: int) -> Iterator[Figure]:
    """Three members with so many reservations, one of which asks for the state as if it had nothing."""
    with Cluster(folder) as cluster:
        cluster.pool(POOL, SUBNET)
        first, *others = stopped(cluster)
        fill(first, others, POOL, reservations)
        cluster.start()
        leader = cluster.leader()
        job = Job(f"unix:{leader.socket}", POOL, "calm", SECONDS * 300, CONNECTIONS, via="cni", each_s=EACH_S)
        yield from longest("no snapshot", send(job))
        with ThreadPoolExecutor(1) as worker:
            load = worker.submit(send, replace(job, prefix="meanwhile"))
            time.sleep(2)
            began_s = time.monotonic()
            size_bytes = fetch(leader, cluster.followers()[0])
            took_s = time.monotonic() - began_s
            during = load.result()
        yield Figure(
            f"snapshot of {reservations:,} reservations, made and sent", took_s, "s", note=f"{size_bytes >> 20} MiB"
        )
        yield from longest("a snapshot", during, at_most=250)


def longest(beside: str, result: Result, at_most: float | None = None) -> Iterator[Figure]:
    """What an ADD took with 300 a second."""
    yield Figure(f"300 ADD/s beside {beside}, p99", percentile(result.latencies_s, 0.99) * 1000, "ms")
    yield Figure(f"300 ADD/s beside {beside}, longest", max(result.latencies_s) * 1000, "ms", at_most=at_most)


def fetch(leader: MemberServer, member: MemberServer) -> int:
    """Have the leader make and send its state, as a member that lags does; how many bytes came."""
    files = member.shop.files(member.name)
    context = ssl.create_default_context(cafile=str(files.authority))
    context.load_cert_chain(files.certificate, files.key)
    size_bytes = 0
    with urllib.request.urlopen(f"{leader.url}/internal/v1/snapshot", timeout=60, context=context) as answer:
        while chunk := answer.read(CHUNK_BYTES):
            size_bytes += len(chunk)
    return size_bytes
