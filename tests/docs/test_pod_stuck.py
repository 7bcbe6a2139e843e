"""The page about pods that do not start: each message in its table is one that a server gives, each command works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.cluster import BIN, ask_socket
from tests.support.server import Server
from tests.support.wire import cni_headers

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "pod-stuck.md"
MONITOR = PAGE.with_name("monitor.md")
ROW = re.compile(r"^\| `([^`]+)` \| (\d+) \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"`(ipamctl [^`]+)`")
ENDING = re.compile(r" \(node [\w.:-]+, request [0-9a-f]{16}\)$")

CONF: dict[str, Any] = {"cniVersion": "1.1.0", "name": "pods", "type": "bridge"}


class Said(NamedTuple):
    """An error object."""

    code: int
    msg: str


def conf(pool: str | None = "web", **more: Any) -> bytes:
    ipam = {"type": "ipamd"} if pool is None else {"type": "ipamd", "pool": pool}
    return json.dumps({**CONF, "ipam": ipam, **more}).encode()


class Node:
    """A server that has a full pool, two nodes, and one pod that runs on both."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.ok("POST", "/v1/pools", {"name": "web", "subnet": "10.1.0.0/29", "gateway": "10.1.0.1"})
        for number in range(4):
            assert self.call("add", f"c{number}", f"default/web-{number}") is None
        self.ok("POST", "/v1/reservations", {"pool": "web", "pod_ref": "default/web-9", "container_id": "c9"})
        moved: dict[str, Any] = {"Ipamd-Node": "w7", "Ipamd-Boot-Id": "b7"}
        assert self.call("add", "c2", "default/web-2", **moved) is None
        index = int(ask_socket(server.socket, "GET", "/v1/nodes").headers["Ipamd-Index"])
        alive = {"container_id": "c2", "ifname": "eth0", "cni_network": "pods", "alive": True}
        self.ok("POST", "/v1/nodes/w7/inventory", {"boot_id": "b7", "index": index, "attachments": [alive]})

    def ok(self, method: str, path: str, body: Any) -> Any:
        got = ask_socket(self.server.socket, method, path, body)
        assert got.status < 300, got.body
        return got.json

    def call(
        self, verb: str, container: str = "c8", pod: str = "default/web-8", body: bytes | None = None, **headers: Any
    ) -> Said | None:
        """A CNI call; None: it succeeded."""
        own = {name.replace("_", "-"): value for name, value in {**cni_headers(container, pod), **headers}.items()}
        sent = {name: value for name, value in own.items() if value is not None}
        got = ask_socket(self.server.socket, "POST", f"/cni/v1/{verb}", conf() if body is None else body, **sent)
        return None if got.status == 200 else Said(got.json["code"], got.json["msg"])

    def over_tcp(self, secret: str) -> Said:
        headers = {**cni_headers("c8", "default/web-8"), "Authorization": f"Bearer {secret}", "Ipamd-Node": "w8"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.server.port}/cni/v1/add", conf(), headers)
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request)
        said = json.loads(caught.value.read())
        caught.value.close()
        return Said(said["code"], said["msg"])

    def sentences(self) -> Iterator[Said | None]:
        """What is said in each plight that one server can be in."""
        args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-8;IP={}"
        yield self.call("add")
        yield self.call("add", body=conf("wbe"))
        yield self.call("add", body=conf(None))
        yield self.call("add", body=b"{")
        yield self.call("add", body=conf(cniVersion="9.9"))
        yield self.call("add", CNI_Netns=None)
        yield self.call("add", CNI_Args="a=b=c")
        yield self.call("add", CNI_Args=args.format("10.1.0.2"))
        yield self.call("add", CNI_Args=args.format("10.9.0.2"))
        token = self.ok("POST", "/v1/tokens", {"name": "w1", "role": "node", "node": "w1"})
        yield self.over_tcp(token["secret"])
        self.ok("DELETE", f"/v1/tokens/{token['id']}", None)
        yield self.over_tcp(token["secret"])
        started = cni_headers("c8", "default/web-8")["Ipamd-Started"]
        self.call("del")
        yield self.call("add", Ipamd_Started=started)
        yield self.call("add", "c7", "default/web-2", Ipamd_Node="w8", Ipamd_Boot_Id="b8")
        yield self.call("status", body=conf("wbe"))
        other: dict[str, Any] = {"prevResult": {"cniVersion": "1.1.0", "ips": [{"address": "10.1.0.6/29"}]}}
        yield self.call("check", "c0", "default/web-0", conf(**other))


ELSEWHERE = {"there is no leader", "to be delivered before this"}
"""What one server that is well does not say: tests/cluster has them."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Server(tmp_path_factory.mktemp("s")) as server:
        yield Node(server)


@pytest.fixture(scope="module")
def said(node: Node) -> list[Said]:
    found = list(node.sentences())
    assert None not in found
    return [one for one in found if one is not None]


def test_each_sentence_ends_with_node_and_request(said: list[Said]) -> None:
    assert [one for one in said if not ENDING.search(one.msg)] == []
    assert {one.code for one in said} == {1, 4, 6, 7, 11, 50, 110, 111, 112, 113, 114}


def test_each_message_of_the_table_is_given_with_its_code(said: list[Said]) -> None:
    rows = {(fragment, int(code)) for fragment, code, _, _ in ROW.findall(PAGE.read_text())}
    assert len(rows) == PAGE.read_text().split("## From the message")[1].split("\n## ")[0].count("\n| `")
    given = {row for row in rows if any(row[0] in one.msg and row[1] == one.code for one in said)}
    assert {fragment for fragment, _ in rows - given} == ELSEWHERE


def test_each_sentence_is_in_the_table(said: list[Said]) -> None:
    rows = [(fragment, int(code)) for fragment, code, _, _ in ROW.findall(PAGE.read_text())]
    assert [one for one in said if not any(text in one.msg and code == one.code for text, code in rows)] == []


def test_each_command_works(node: Node, said: list[Said], tmp_path: Path) -> None:
    assert said
    plugins = [{"type": "bridge", "ipam": {"type": "ipamd", "pool": "web"}}]
    (tmp_path / "pods.conflist").write_text(json.dumps({**CONF, "plugins": plugins}))
    environment = {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "IPAMCTL_SERVER": f"unix:{node.server.socket}",
    }
    text = PAGE.read_text()
    commands = [*BLOCK.findall(text), *COMMAND.findall(text), *BLOCK.findall(MONITOR.read_text())]
    assert len(commands) > 20
    for command in dict.fromkeys(commands):
        done = subprocess.run(
            ["sh", "-e"], input=command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    assert (tmp_path / "ipamd.token").stat().st_mode & 0o777 == 0o600
