"""Owns the pools of the benchmarks, made through the API of the server under test."""

from __future__ import annotations

import json
import urllib.request

from tests.support.server import Server


def make(server: Server, name: str, subnet: str) -> str:
    """Make a pool; its name. Raises HTTPError."""
    body = json.dumps({"name": name, "subnet": subnet, "allow_overlap": True}).encode()
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.url}/v1/pools", body, headers, method="POST")
    with urllib.request.urlopen(request, timeout=10):
        return name
