"""The page about who had an address: its shell blocks run as they stand, against a server where two pods had it."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from tests.docs.howto import ROOT, Done, blocks
from tests.support.cluster import BIN, ask_socket
from tests.support.server import Server

PAGE = ROOT / "docs" / "howto" / "who-had-it.md"


def test_the_shell_blocks_of_the_page_work(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        give(server)
        path = f"{BIN}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "IPAMCTL_SERVER": f"unix:{server.socket}"}
        found = blocks(PAGE)
        assert len(found) >= 6
        for block in found:
            ran = subprocess.run(
                ["bash", "-e"],
                input=block.script,
                capture_output=True,
                text=True,
                check=False,
                env=environment,
                timeout=300,
            )
            done = Done(block, ran.returncode, ran.stdout)
            assert done.status == 0, f"{block}\n{ran.stdout}\n{ran.stderr}"
            assert done.missing is None, f"{done.missing!r} is not in\n{ran.stdout}"
        then = subprocess.run(
            ["ipamctl", "who", "10.0.0.5", "--at", "-400d"], capture_output=True, text=True, check=True, env=environment
        )
        assert then.stdout.startswith("nobody had 10.0.0.5 at ")


def give(server: Server) -> None:
    """Pool web, of which default/web-0 and then default/web-1 had 10.0.0.5, the latter for two seconds by now."""

    def ask(method: str, path: str, body: object = None) -> None:
        got = ask_socket(server.socket, method, path, body)
        assert got.status < 300, got.body

    ask("POST", "/v1/pools", {"name": "web", "subnet": "10.0.0.0/24", "cooldown_s": 0})
    for number, node in enumerate(("w7", "w1")):
        pod = {"pool": "web", "pod_ref": f"default/web-{number}", "container_id": f"c{number}", "node": node}
        ask("POST", "/v1/reservations", {**pod, "addresses": ["10.0.0.5"]})
        if number == 0:
            ask("DELETE", "/v1/reservations/web/default%2Fweb-0?force=true")
    time.sleep(2.5)
