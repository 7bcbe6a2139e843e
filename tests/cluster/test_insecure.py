"""Three servers without certificates: on loopback, with --insecure, and nowhere else."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

from tests.support.server import Server


def test_three_on_loopback_without_certificates(tmp_path: Path) -> None:
    servers = []
    for name in ("n1", "n2", "n3"):
        (tmp_path / name).mkdir()
        servers.append(Server(tmp_path / name, "--insecure", name=name))
    peers = [
        text
        for one in servers
        for text in ("--peer", f"{one.name}=127.0.0.1:{one.raft_port},http://127.0.0.1:{one.port}")
    ]
    try:
        for one in servers:
            one.flags = (*one.flags, *peers)
            one.spawn()
        for one in servers:
            one.wait_ready()
        for number, one in enumerate(servers):
            pool = {"name": f"p{number}", "subnet": f"10.{number}.0.0/24"}
            assert _ask(one, "POST", "/v1/pools", pool)["name"] == pool["name"]
        for one in servers:
            assert [item["name"] for item in _ask(one, "GET", "/v1/pools")["items"]] == ["p0", "p1", "p2"]
            shown = _ask(one, "GET", "/v1/cluster")["members"]
            assert [(member["name"], member["reachable"], member["certificate_days"]) for member in shown] == [
                (name, True, None) for name in ("n1", "n2", "n3")
            ]
            assert "--insecure" in one.log
    finally:
        for one in servers:
            one.__exit__(None, None, None)


def _ask(server: Server, method: str, path: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{server.url}{path}", data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())
