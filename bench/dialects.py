"""Owns the comparison of the dialects: what it costs that a configuration describes its pool in place of naming it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from statistics import median
from typing import Any

from bench.figures import Figure, middle_ms
from bench.http import cpu_s
from bench.load import Job, send
from bench.pools import make
from tests.support.server import Server

ROUNDS = 3
REQUESTS = 2_000
CONNECTIONS = 16
MOST = 1.5
"""How many times the processor time of an ADD that names its pool one may take that describes it, for each range."""

CONFS: dict[str, dict[str, Any]] = {
    "native": {"pool": "bench-dialects"},
    "host-local": {"ranges": [[{"subnet": "10.80.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]},
    "whereabouts": {"range": "10.81.0.0/16", "range_start": "10.81.0.10", "gateway": "10.81.0.1"},
    "whereabouts, 20 excludes": {"range": "10.82.0.0/16", "exclude": [f"10.82.{n}.0/28" for n in range(20)]},
    "whereabouts, two ranges": {"range": "10.83.0.0/16", "ipRanges": [{"range": "fd00:83::/64"}]},
}


def measure(server: Server) -> Iterator[Figure]:
    """Processor time and latency of each dialect, in turn; ratios to the native one of the same round."""
    make(server, "bench-dialects", "10.79.0.0/16")
    used: dict[str, list[float]] = {name: [] for name in CONFS}
    alone: dict[str, list[float]] = {name: [] for name in CONFS}
    for number in range(ROUNDS):
        for order, (name, ipam) in enumerate(CONFS.items()):
            before_s = cpu_s(server)
            send(_job(server, ipam, f"{order}-many-{number}", REQUESTS, CONNECTIONS))
            used[name].append((cpu_s(server) - before_s) / REQUESTS * 1e6)
            alone[name].append(
                middle_ms(send(_job(server, ipam, f"{order}-one-{number}", REQUESTS // 10, 1)).latencies_s)
            )
    for name, ipam in CONFS.items():
        yield Figure(f"{name}: one client, p50", median(alone[name]), "ms", at_most=5)
        yield Figure(f"{name}: server's CPU time, {CONNECTIONS} clients", median(used[name]), "us/ADD")
        if name != "native":
            ratio = median(mine / named for mine, named in zip(used[name], used["native"], strict=True))
            ranges = 1 + len(ipam.get("ipRanges", ()))
            yield Figure(f"{name}: CPU time beside native", ratio, "", at_most=MOST * ranges)


def _job(server: Server, ipam: dict[str, Any], prefix: str, requests: int, connections: int) -> Job:
    conf = json.dumps({"cniVersion": "1.0.0", "name": "net", "type": "bridge", "ipam": {"type": "ipamd", **ipam}})
    return Job(f"unix:{server.socket}", "", prefix, requests, connections, via="cni", conf=conf)
