"""`ipamd serve` as a process: what it opens, refuses and leaves, and how it ends."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ipamd.datadir import read_identity
from ipamd.sockets import listen_unix
from tests.support.server import Server, ServerError
from tests.support.stopwatch import Stopwatch

POOL = {"name": "p", "subnet": "10.1.0.0/24"}
HANG_S = 60
"""Nothing takes so long but a hang, however busy the machine is."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path).start() as started:
        yield started


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all tests that leave it as it was."""
    with Server(tmp_path_factory.mktemp("steady")).start() as started:
        yield started


def ask(server: Server, method: str, path: str, body: Any = None, token: str | None = "") -> tuple[int, Any]:
    """A request over TCP with the admin's token, another one, or (None) none."""
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token or server.token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{server.url}{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=HANG_S) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


def events(server: Server) -> list[dict[str, Any]]:
    return [json.loads(line) for line in server.log.splitlines()]


def ipamd(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("IPAMD_")} | environ
    command = [sys.executable, "-m", "ipamd.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * HANG_S, env=clean)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_says_once_that_it_is_ready(steady: Server) -> None:
    deadline = time.monotonic() + HANG_S
    while not (ready := [event for event in events(steady) if event["msg"] == "ready"]):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert len(ready) == 1
    assert ready[0]["listen"] == f"127.0.0.1:{steady.port}"
    assert ready[0]["socket"] == str(steady.socket)


def test_everything_it_keeps_is_its_owners_alone(steady: Server) -> None:
    assert mode(steady.data_dir) == 0o700
    assert mode(steady.socket) == 0o600
    for path in steady.data_dir.rglob("*"):
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path


def test_a_cluster_of_one_does_not_open_its_raft_port(steady: Server) -> None:
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", steady.raft_port)) != 0


def test_the_admin_token_is_needed_and_right(steady: Server) -> None:
    assert ask(steady, "GET", "/v1/pools")[0] == 200
    assert ask(steady, "GET", "/v1/pools", token=None)[0] == 401
    assert ask(steady, "GET", "/v1/pools", token="wrong")[0] == 401
    assert steady.token not in steady.log


def test_what_was_answered_survives_kill_and_stop(server: Server) -> None:
    assert ask(server, "POST", "/v1/pools", POOL)[0] == 201
    cluster_id, token = ask(server, "GET", "/v1/cluster")[1]["cluster_id"], server.token
    server.restart()
    assert ask(server, "GET", "/v1/pools/p")[0] == 200
    assert server.stop() == 0
    server.start()
    assert ask(server, "GET", "/v1/pools/p")[0] == 200
    assert ask(server, "GET", "/v1/cluster")[1]["cluster_id"] == cluster_id
    assert server.token == token


def test_sigterm_leaves_no_socket_and_says_so(server: Server) -> None:
    assert server.stop() == 0
    assert not server.socket.exists()
    assert events(server)[-1]["msg"] == "stopped", "it ended by itself, and was not cut short"


def test_sigterm_under_load_loses_nothing_that_was_answered(server: Server) -> None:
    assert ask(server, "POST", "/v1/pools", {**POOL, "subnet": "10.1.0.0/16"})[0] == 201  # more than four can ask for
    answered: dict[str, str] = {}

    def add_pods(worker: int) -> None:
        """Until the server is gone: an answer is 201, or says that nobody is there any more."""
        for number in range(1000):
            add = {"pool": "p", "pod_ref": f"w{worker}/{number}", "container_id": f"c{number}", "node": "n1"}
            try:
                status, found = ask(server, "POST", "/v1/reservations", add)
            except OSError:
                return
            if status != 201:
                assert status == 503, found
                return
            answered[add["pod_ref"]] = found["attachments"][0]["addresses"][0]

    with ThreadPoolExecutor(4) as workers:
        running = [workers.submit(add_pods, worker) for worker in range(4)]
        while len(answered) < 40:
            assert not all(one.done() for one in running)
            time.sleep(0.005)
        assert server.stop() == 0
        for one in running:
            one.result()
    server.start()
    items = ask(server, "GET", "/v1/reservations")[1]["items"]
    kept = {item["pod_ref"]: item["attachments"][0]["addresses"][0] for item in items}
    assert answered.items() <= kept.items()
    assert len(set(kept.values())) == len(kept)


def test_a_silent_client_does_not_hold_up_the_end(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(b"POST /v1/pools HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        time.sleep(0.2)
        watch = Stopwatch()
        assert server.stop() == 0
        assert watch.spent_s() < 10


def test_who_finds_no_place_on_the_node_socket_is_told_so(server: Server) -> None:
    with ExitStack() as stack:

        def connect() -> socket.socket:
            sock = stack.enter_context(socket.socket(socket.AF_UNIX))
            sock.settimeout(HANG_S)
            sock.connect(str(server.socket))
            return sock

        kept = [connect() for _ in range(512)]
        kept[0].sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert kept[0].recv(4096).startswith(b"HTTP/1.1 200 ")
        over = connect()
        over.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.2)
        assert over.recv(4096).startswith(b"HTTP/1.1 503 ")
        assert server.is_ready()


def test_a_second_server_on_one_data_directory_is_refused(steady: Server) -> None:
    other = Server(steady.directory)
    other.socket, other.log_file = steady.directory / "other.sock", steady.directory / "other.log"
    with pytest.raises(ServerError, match="in use by another ipamd"):
        other.start()
    assert steady.is_ready()


def test_a_second_server_on_one_socket_is_refused(steady: Server, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    other = Server(tmp_path / "b")
    other.socket = steady.socket
    with pytest.raises(ServerError, match="another server answers there"):
        other.start()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(steady.socket))


def test_the_socket_of_a_killed_server_is_taken_over(tmp_path: Path) -> None:
    listen_unix(tmp_path / "cni.sock").close()
    with Server(tmp_path).start() as server:
        assert server.is_ready()


def test_a_taken_port_is_one_sentence(steady: Server, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    other = Server(tmp_path / "b")
    other.port = steady.port
    with other.spawn():
        assert other.process is not None
        assert other.process.wait(HANG_S) == 1
    assert f"cannot listen on 127.0.0.1:{steady.port}: another program listens there" in other.log
    assert "Traceback" not in other.log


def test_another_node_name_is_refused_until_the_node_is_renamed(server: Server) -> None:
    server.stop()
    other = Server(server.directory, "--node-name", "n2")
    with pytest.raises(ServerError, match="ipamctl node rename n1 n2"):
        other.start()
    server.start()
    add = {"pool": "p", "pod_ref": "a/b", "container_id": "c", "node": "n1"}
    assert ask(server, "POST", "/v1/pools", POOL)[0] == 201
    assert ask(server, "POST", "/v1/reservations", add)[0] == 201
    assert ask(server, "POST", "/v1/nodes/n1/rename", {"to": "n2"})[0] == 200
    assert read_identity(server.data_dir).node_name == "n2"  # type: ignore[union-attr]
    server.stop()
    with pytest.raises(ServerError, match="ipamctl node rename n2 n1"):
        server.start()
    with other.start():
        items = ask(other, "GET", "/v1/reservations")[1]["items"]
        assert items[0]["attachments"][0]["node"] == "n2"


def test_the_way_to_another_node_name_is_told_with_the_clusters(server: Server) -> None:
    """As the cluster knows the node: with the local name alone there would be no such node."""
    server.stop()
    with pytest.raises(ServerError, match="ipamctl node rename k8s:n1 k8s:n2"):
        Server(server.directory, "--node-name", "n2", "--cluster", "k8s").start()


def test_a_node_that_nobody_has_named_yet_can_be_renamed(server: Server) -> None:
    assert ask(server, "POST", "/v1/nodes/n9/rename", {"to": "n2"})[0] == 404
    assert ask(server, "POST", "/v1/nodes/n1/rename", {"to": "n2"})[0] == 200
    server.stop()
    with Server(server.directory, "--node-name", "n2").start() as renamed:
        assert renamed.is_ready()


def test_a_start_that_crashed_before_founding_is_taken_up(tmp_path: Path) -> None:
    """The token is on disk before the cluster is founded: a crash between the two must not make a second one."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "admin.token").write_text("the-token-of-a-crashed-start\n")
    with Server(tmp_path).start() as server:
        assert ask(server, "GET", "/v1/pools", token="the-token-of-a-crashed-start")[0] == 200


def test_insecure_switches_tokens_off_and_warns_at_each_start(tmp_path: Path) -> None:
    with Server(tmp_path, "--insecure").start() as server:
        assert ask(server, "GET", "/v1/pools", token=None)[0] == 200
        server.restart()
        warnings = [event for event in events(server) if event["level"] == "warning"]
        assert len([event for event in warnings if "--insecure" in event["msg"]]) == 2


def test_a_new_cluster_starts_with_the_first_values(tmp_path: Path) -> None:
    with Server(tmp_path, "--cooldown-s", "7", "--no-inline-pools").start() as server:
        values = ask(server, "GET", "/v1/settings")[1]
        assert (values["cooldown_s"], values["inline_pools"]) == (7, False)


def test_mistakes_come_together_before_anything_is_made(tmp_path: Path) -> None:
    data = tmp_path / "data"
    ended = ipamd(
        *("serve", "--data-dir", str(data), "--listen", "nowhere", "--node-name", "a/b"),
        *("--raft-min-timeout-ms", "2000", "--raft-max-timeout-ms", "1000"),
        IPAMD_LOG_LEVEL="loud",
    )
    assert ended.returncode == 2
    lines = ended.stderr.splitlines()
    assert len(lines) == 4
    for name in ("listen: ", "node-name: ", "raft-max-timeout-ms 1000 ", "log-level: "):
        assert [line for line in lines if line.startswith(f"ipamd: {name}")], name
    assert not data.exists()


def test_an_unknown_flag_is_a_usage_error() -> None:
    ended = ipamd("serve", "--listne", "127.0.0.1:1")
    assert ended.returncode == 2
    assert "--listne" in ended.stderr


def test_version_says_both() -> None:
    assert ipamd("version").stdout.startswith("ipamd 0.")
    assert ipamd("--version").stdout.startswith("ipamd, version 0.")
    assert "Usage:" in ipamd("serve", "-h").stdout


def test_any_free_port_is_told(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.port = 0
    with server.spawn():
        deadline = time.monotonic() + HANG_S
        while not (ready := [event for event in events(server) if event["msg"] == "ready"]):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        server.port = int(ready[0]["listen"].rpartition(":")[2])
        assert server.port > 0
        assert server.is_ready()


def test_systemd_hears_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(tmp_path / "notify"))
        heard.settimeout(HANG_S)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        with Server(tmp_path).start() as server:
            assert heard.recv(100) == b"READY=1"
            assert server.stop() == 0
            assert heard.recv(100) == b"STOPPING=1"
