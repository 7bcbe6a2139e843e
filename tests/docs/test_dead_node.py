"""The page about dead nodes: its shell blocks run as they stand, against a server with nodes in that state."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.docs.howto import blocks
from tests.support.cluster import BIN, Got, ask_socket
from tests.support.server import Server

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "dead-node.md"


def test_the_shell_blocks_of_the_page_work(tmp_path: Path) -> None:
    with Server(tmp_path) as server:

        def ask(method: str, path: str, body: object = None) -> Got:
            got = ask_socket(server.socket, method, path, body)
            assert got.status < 300, got.body
            return got

        ask("POST", "/v1/pools", {"name": "web", "subnet": "10.1.0.0/24"})
        for node in ("w7", "w8", "w9"):
            body = {"pool": "web", "pod_ref": f"d/{node}", "container_id": f"c-{node}", "node": node}
            ask("POST", "/v1/reservations", body)
        for boot in ("b1", "b2"):
            index = int(ask("GET", "/v1/nodes").headers["Ipamd-Index"])
            ask("POST", "/v1/nodes/w9/inventory", {"boot_id": boot, "index": index, "attachments": []})
        path = f"{BIN}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "IPAMCTL_SERVER": f"unix:{server.socket}"}
        scripts = [block.script for block in blocks(PAGE)]
        assert len(scripts) >= 5
        said = ""
        for script in scripts:
            done = subprocess.run(
                ["sh", "-e"], input=script, capture_output=True, text=True, check=False, env=environment, timeout=300
            )
            assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
            said += done.stdout
        assert "d/w9" in said
        assert "after:900" in said
        assert ask("GET", "/v1/reservations").json["items"] == []
        assert [one["name"] for one in ask("GET", "/v1/nodes").json["items"]] == ["n1", "w8", "w9"]
