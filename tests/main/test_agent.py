"""`ipamd agent` as a process: how it starts, what it refuses, how it ends, and what it keeps."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.agent import Agent
from tests.support.cluster import Away, Got, ask_socket
from tests.support.server import Server, free_port
from tests.support.stopwatch import Stopwatch

NOBODY = f"http://127.0.0.1:{free_port()}"
MEMORY_MIB = 60
ADD_BYTES = 500
"""An ADD has more, and but for reports nothing else that an agent asks has."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server")) as started:
        made = ask_socket(started.socket, "POST", "/v1/pools", {"name": "p", "subnet": "10.1.0.0/16"})
        assert made.status == 201
        yield started


def agent_of(server: Server, directory: Path, node: str = "w1") -> Agent:
    directory.mkdir(parents=True, exist_ok=True)
    made = ask_socket(
        server.socket, "POST", "/v1/tokens", {"name": f"t-{time.time_ns()}", "role": "node", "node": node}
    )
    (directory / "token").write_text(made.json["secret"])
    return Agent(directory, node, [server.url], "--token-file", str(directory / "token"))


def wait_until(is_so: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline_s, "it did not come to that"
        time.sleep(0.02)


def unread_bytes(port: int) -> int:
    """The most that any connection to a port has in its queue: what was sent to a process that is stopped."""
    connections = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    own = [words for words in connections if words[3] == "01" and int(words[1].partition(":")[2], 16) == port]
    return max((int(words[4].partition(":")[2], 16) for words in own), default=0)


def has_started(agent: Agent, times: int) -> bool:
    return agent.log.count('"msg": "ready"') == times


def test_it_stands_in_for_a_server_in_little_memory(server: Server, tmp_path: Path) -> None:
    with agent_of(server, tmp_path / "w1") as agent:
        assert stat.S_IMODE(agent.socket.stat().st_mode) == 0o600
        for number in range(100):
            assert agent.cni("add", f"c{number}", f"t/m{number}").status == 200
        for number in range(100):
            assert agent.cni("del", f"c{number}", f"t/m{number}").status == 200
        assert agent.rss_mib < MEMORY_MIB
        assert agent.stop() == 0
    assert '"msg": "ready"' in agent.log
    assert not agent.socket.exists()


def test_all_mistakes_are_told_together_before_anything_is_opened(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ipamd.main", "agent", "--server", "ftp://x", "--del-policy", "drop"]
    done = subprocess.run(
        [*command, "--spool-dir", str(tmp_path / "s")], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "server: " in done.stderr
    assert "del-policy: 'drop' is none of spool, error" in done.stderr
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        ("name", "this host is node w1, not w2"),
        ("spool", "is in use by another ipamd"),
        ("token", "token-file"),
        ("authority", "tls-ca"),
    ],
)
def test_a_start_that_cannot_be_is_one_sentence(tmp_path: Path, spoil: str, sentence: str) -> None:
    with Agent(tmp_path / "a", "w1", [NOBODY]) as first:
        if spoil != "spool":
            first.stop()
        other = Agent(tmp_path / "b", "w2" if spoil == "name" else "w1", [NOBODY])
        other.spool_dir = first.spool_dir
        if spoil in ("token", "authority"):
            other.flags = ("--token-file" if spoil == "token" else "--tls-ca", str(tmp_path / "missing"))
        assert other.spawn()._running().wait(60) == 1
        last = json.loads(other.log.splitlines()[-1])
        assert sentence in last["msg"]
        assert "traceback" not in last


def test_what_was_put_aside_outlives_kill_9(server: Server, tmp_path: Path) -> None:
    agent = agent_of(server, tmp_path / "w3", "w3")
    servers = agent.servers
    with agent:
        assert agent.cni("add", "k1", "t/k1").status == 200
        agent.kill()
    (agent.spool_dir / "agent.json").unlink()  # or it would still know where the cluster is
    agent.servers = [NOBODY]
    with agent.start():
        watch = Stopwatch(agent)
        assert agent.cni("del", "k1", "t/k1").status == 200
        assert watch.spent_s() < 1
        agent.kill()
    assert len(agent.spooled) == 1
    agent.servers = servers
    with agent.start():
        wait_until(lambda: not agent.spooled)
        assert agent.ask("GET", "/v1/nodes/w3").json["bound"] == 0


def test_a_full_or_broken_disk_is_code_11(tmp_path: Path) -> None:
    """Where a directory was, a file is: even root cannot write there."""
    with Agent(tmp_path / "a", "w1", [NOBODY]) as agent:
        agent.spool_dir.rename(tmp_path / "away")
        agent.spool_dir.write_text("")
        got = agent.cni("del", "c1")
        assert (got.status, got.code) == (503, 11)
        assert "cannot be kept in the spool" in got.json["msg"]


def test_sigterm_lets_calls_end_and_takes_no_more(server: Server, tmp_path: Path) -> None:
    """The server is stopped for a while: the ADD is under way when the agent is told to end."""
    agent = agent_of(server, tmp_path / "w4", "w4")
    agent.flags = (*agent.flags, "--report-every-s", "3600")
    with agent:
        assert agent.cni("add", "d0", "t/d0").status == 200
        wait_until(lambda: agent.ask("GET", "/v1/nodes/w4").json["reported"] is not None)
        os.kill(server.pid, 19)
        try:
            answers: list[Got] = []
            call = threading.Thread(target=lambda: answers.append(agent.cni("add", "d1", "t/d1", timeout_s=60)))
            call.start()
            wait_until(lambda: unread_bytes(server.port) >= ADD_BYTES)
            os.kill(agent.pid, 15)
            wait_until(lambda: not agent.is_up())
            with pytest.raises(Away):
                agent.cni("add", "d2", "t/d2", timeout_s=1)
            assert call.is_alive()
        finally:
            os.kill(server.pid, 18)
        call.join(60)
        assert [got.status for got in answers] == [200]
        assert agent._running().wait(60) == 0


def test_under_a_supervisors_socket_a_restart_loses_no_call(server: Server, tmp_path: Path) -> None:
    """As systemd does it: the socket is made outside, handed over as descriptor 3, and stays when the agent ends."""
    agent = agent_of(server, tmp_path / "w5", "w5")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(agent.socket))
    listener.listen(64)
    agent.prefix = ("sh", "-c", 'exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', "sh")

    def spawn() -> None:
        with agent.log_file.open("ab") as log:
            agent.process = subprocess.Popen(agent.command(), stdin=listener.fileno(), stdout=log, stderr=log)

    answers: list[Got] = []

    def call_on() -> None:
        for number in range(60):
            answers.append(agent.cni("add", f"e{number}", f"t/e{number}", timeout_s=60))
            time.sleep(0.05)

    try:
        spawn()
        caller = threading.Thread(target=call_on)
        caller.start()
        for start in range(1, 3):
            wait_until(partial(has_started, agent, start))
            time.sleep(0.5)
            assert agent.stop() == 0
            assert agent.socket.exists()
            spawn()
        caller.join(300)
    finally:
        agent.kill()
        listener.close()
    assert [got.status for got in answers] == [200] * 60
