"""An agent that fetches its node's own token: once, with a secret that many share, whatever is lost on the way."""

from __future__ import annotations

import json
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent import Agent
from tests.support.cluster import ask_socket
from tests.support.server import Server, free_port

NOBODY = f"http://127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server")) as started:
        made = ask_socket(started.socket, "POST", "/v1/pools", {"name": "p", "subnet": "10.1.0.0/16"})
        assert made.status == 201
        yield started


@pytest.fixture(scope="module")
def enrol_file(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One secret for all the nodes of this module."""
    file = tmp_path_factory.mktemp("enrol") / "enrol.token"
    file.write_text(token(server, "enrol")["secret"])
    return file


def token(server: Server, role: str, **more: Any) -> dict[str, Any]:
    made = ask_socket(server.socket, "POST", "/v1/tokens", {"name": role, "role": role, **more})
    assert made.status == 201
    body: dict[str, Any] = made.json
    return body


def agent_of(directory: Path, node: str, servers: list[str], enrol_file: Path, *flags: str) -> Agent:
    files = ("--token-file", str(directory / "own" / "node.token"), "--enrol-file", str(enrol_file))
    return Agent(directory, node, servers, *files, *flags)


def own_token(agent: Agent) -> Path:
    return agent.directory / "own" / "node.token"


def wait_until(is_so: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline_s, "it did not come to that"
        time.sleep(0.02)


def enrolled(agent: Agent) -> bytes:
    """Its own token, once it has it: a start waits for it for two seconds at most."""
    wait_until(own_token(agent).exists)
    return own_token(agent).read_bytes()


def tokens_of(server: Server, node: str) -> list[dict[str, Any]]:
    listed = ask_socket(server.socket, "GET", "/v1/tokens").json["items"]
    return [one for one in listed if one["node"] == node]


def test_one_secret_serves_many_nodes_and_each_keeps_its_own(server: Server, enrol_file: Path, tmp_path: Path) -> None:
    secrets = set()
    for node in ("w1", "w2"):
        with agent_of(tmp_path / node, node, [server.url], enrol_file) as agent:
            secret = enrolled(agent).decode().strip()
            assert agent.cni("add", "c1", f"t/{node}").status == 200
            assert stat.S_IMODE(own_token(agent).stat().st_mode) == 0o600
            assert list(own_token(agent).parent.iterdir()) == [own_token(agent)]
            (listed,) = tokens_of(server, node)
            assert (listed["role"], listed["expires"]) == ("node", None)
            assert secret not in agent.log
            assert enrol_file.read_text() not in agent.log
            assert "this node has its own token now" in agent.log
            other = ask_socket(agent.socket, "POST", "/v1/nodes/nowhere/heartbeat")
            assert other.status == 403
            secrets.add(secret)
    assert len(secrets) == 2


def test_a_restart_uses_what_it_has_though_the_secret_is_gone(server: Server, enrol_file: Path, tmp_path: Path) -> None:
    with agent_of(tmp_path / "w3", "w3", [server.url], enrol_file) as agent:
        before = enrolled(agent)
        agent.stop()
        agent.flags = (*agent.flags[:3], str(tmp_path / "gone"))
        agent.start()
        assert agent.cni("add", "c1", "t/w3").status == 200
        assert own_token(agent).read_bytes() == before


def test_a_second_host_of_the_name_is_refused_until_the_first_is_forgotten(
    server: Server, enrol_file: Path, tmp_path: Path
) -> None:
    with agent_of(tmp_path / "a", "w4", [server.url], enrol_file) as first:
        enrolled(first)
        assert first.cni("add", "c1", "t/w4").status == 200
        assert first.cni("del", "c1", "t/w4").status == 200
        first.stop()
    with agent_of(tmp_path / "b", "w4", [server.url], enrol_file) as second:
        wait_until(lambda: "ipamctl node forget w4" in second.log)
        assert not own_token(second).exists()
        assert second.cni("add", "c2", "t/w4").code == 112
        second.stop()
        assert ask_socket(server.socket, "DELETE", "/v1/nodes/w4").status == 204
        second.start()
        enrolled(second)
        assert second.cni("add", "c2", "t/w4").status == 200


def test_where_no_server_is_there_a_del_is_put_aside_and_the_token_is_fetched_later(
    server: Server, enrol_file: Path, tmp_path: Path
) -> None:
    agent = agent_of(tmp_path / "w5", "w5", [NOBODY], enrol_file)
    with agent:
        assert agent.cni("del", "c1").status == 200
        assert len(agent.spooled) == 1
        asked = (own_token(agent).parent / "node.token.asked").read_bytes()
        agent.kill()
        agent.servers = [server.url]
        agent.start()
        wait_until(lambda: not agent.spooled)
        assert enrolled(agent) == asked, "the secret that was asked for before the crash"


def test_an_answer_that_was_lost_is_given_again(server: Server, enrol_file: Path, tmp_path: Path) -> None:
    """The agent dies between the answer and the file: here the file is put back to what it was asked with."""
    with agent_of(tmp_path / "w6", "w6", [server.url], enrol_file) as agent:
        before = enrolled(agent)
        agent.kill()
        own_token(agent).rename(own_token(agent).parent / "node.token.asked")
        agent.start()
        assert enrolled(agent) == before
        assert agent.cni("add", "c1", "t/w6").status == 200
        assert len(tokens_of(server, "w6")) == 1


def test_the_name_of_the_cluster_belongs_to_it(server: Server, enrol_file: Path, tmp_path: Path) -> None:
    with agent_of(tmp_path / "w7", "w7", [server.url], enrol_file, "--cluster", "east") as agent:
        enrolled(agent)
        assert agent.cni("add", "c1", "t/w7").status == 200
        assert len(tokens_of(server, "east:w7")) == 1
        assert tokens_of(server, "w7") == []


def test_a_node_that_is_renamed_goes_on_with_its_token(server: Server, enrol_file: Path, tmp_path: Path) -> None:
    with agent_of(tmp_path / "w8", "w8", [server.url], enrol_file) as agent:
        enrolled(agent)
        assert agent.cni("add", "c1", "t/w8").status == 200
        agent.stop()
        assert ask_socket(server.socket, "POST", "/v1/nodes/w8/rename", {"to": "w9"}).status == 200
        agent.node = "w9"
        agent.start()
        assert agent.cni("del", "c1", "t/w8").status == 200
        wait_until(lambda: not agent.spooled)
        assert ask_socket(server.socket, "GET", "/v1/nodes/w9").json["bound"] == 0


@pytest.mark.parametrize(
    ("flags", "status", "sentence"),
    [
        (("--enrol-file", "x"), 2, "needs --token-file"),
        (("--token-file", "t", "--enrol-file", "missing"), 1, "cannot be read"),
    ],
)
def test_a_start_that_cannot_be_is_one_sentence(
    tmp_path: Path, flags: tuple[str, ...], status: int, sentence: str
) -> None:
    told = tuple(flag if flag.startswith("-") else str(tmp_path / flag) for flag in flags)
    agent = Agent(tmp_path / "a", "w1", [NOBODY], *told)
    with agent.spawn():
        assert agent._running().wait(60) == status
    assert sentence in agent.log
    assert "raceback" not in agent.log


def test_an_enrol_token_that_is_not_accepted_is_told_and_not_shown(server: Server, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("ipamd_wrong-and-secret-wrong-and-secret-wrong-x")
    with agent_of(tmp_path / "w10", "w10", [server.url], wrong) as agent:
        wait_until(lambda: "this node has no token yet" in agent.log)
        assert "wrong-and-secret" not in agent.log
        lines = [json.loads(line) for line in agent.log.splitlines()]
        assert any("unknown, revoked or expired" in line["msg"] for line in lines)
        assert ask_socket(agent.socket, "GET", "/livez").status == 200


def test_under_a_supervisors_socket_the_first_call_waits_for_the_token(
    server: Server, enrol_file: Path, tmp_path: Path
) -> None:
    """The plugin calls before the agent was ever started, as on a node that comes up: it waits, and is answered."""
    agent = agent_of(tmp_path / "w11", "w11", [server.url], enrol_file)
    agent.prefix = ("sh", "-c", 'exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', "sh")
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as listener, ThreadPoolExecutor(1) as threads:
        listener.bind(str(agent.socket))
        listener.listen(64)
        call = threads.submit(agent.cni, "add", "c1", "t/w11", timeout_s=60)
        with agent.log_file.open("ab") as log:
            agent.process = subprocess.Popen(agent.command(), stdin=listener.fileno(), stdout=log, stderr=log)
        with agent:
            assert call.result(90).status == 200
            assert own_token(agent).exists()


def test_the_token_is_fetched_as_soon_as_a_server_is_there(tmp_path: Path) -> None:
    """The agent is not started again: it goes on asking."""
    (tmp_path / "server").mkdir()
    server = Server(tmp_path / "server")
    with server:
        enrol_file = tmp_path / "enrol.token"
        enrol_file.write_text(token(server, "enrol")["secret"])
        server.stop()
        with agent_of(tmp_path / "w12", "w12", [server.url], enrol_file) as agent:
            assert not own_token(agent).exists()
            server.start()
            wait_until(own_token(agent).exists)
            wait_until(lambda: ask_socket(agent.socket, "POST", "/v1/nodes/w12/heartbeat").status == 204)
