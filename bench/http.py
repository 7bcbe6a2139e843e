"""Owns the measurements of ADDs over HTTP: one client, and many."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.figures import Figure, middle_ms, percentile
from bench.load import Job, send
from bench.pools import make
from tests.support.server import Server

ONE_CLIENT = 1_000
MANY_CLIENTS = 10_000
CONNECTIONS = 64


def measure(server: Server) -> Iterator[Figure]:
    """The latency of one client and the rate of 64."""
    pool = make(server, "bench-http", "10.64.0.0/12")
    api = Job(f"127.0.0.1:{server.port}", pool, "api", ONE_CLIENT, token=server.token)
    cni = replace(api, target=f"unix:{server.socket}", via="cni", prefix="cni", token=None)
    for job, way in ((api, "POST /v1/reservations"), (cni, "POST /cni/v1/add on the socket")):
        send(replace(job, prefix=f"warm-{job.via}", requests=500, connections=8))
        one = send(job)
        yield Figure(f"{way}, one client, p50", middle_ms(one.latencies_s), "ms", at_most=5)
        yield Figure(f"{way}, one client, p99", percentile(one.latencies_s, 0.99) * 1000, "ms")
        before_s = cpu_s(server)
        many = send(replace(job, prefix=f"many-{job.via}", requests=MANY_CLIENTS, connections=CONNECTIONS))
        used_us = (cpu_s(server) - before_s) / MANY_CLIENTS * 1e6
        yield Figure(f"{way}, {CONNECTIONS} clients", many.rate, "ADD/s", at_least=1500)
        yield Figure(f"{way}, {CONNECTIONS} clients, p99", percentile(many.latencies_s, 0.99) * 1000, "ms")
        yield Figure(f"{way}, {CONNECTIONS} clients, server's CPU time", used_us, "us/ADD")


def cpu_s(server: Server) -> float:
    """The CPU time that a server has used."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
