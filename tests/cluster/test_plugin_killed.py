"""A plugin that is killed, or whose runtime is, leaves no entry behind: the rows C05k and LATE."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cluster.load import wait_for
from tests.support.cluster import BIN
from tests.support.plugin import CONF, Done, Runtime
from tests.support.server import Server
from tests.support.wire import content_length

KILLS = 20
SETTLED_S = 60

RUNTIME = """
import subprocess, sys
plugin = subprocess.Popen(sys.argv[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
plugin.stdin.write(sys.stdin.buffer.read())
plugin.stdin.close()
print(plugin.pid, flush=True)
plugin.wait()
"""
"""A container runtime: it starts the plugin, hands it the configuration, and waits for what it prints."""


class Host:
    """A server, and the plugin that `ipamctl cni install` put on its host; it reaches the server on two paths."""

    def __init__(self, server: Server, runtime: Runtime) -> None:
        self.server, self.runtime = server, runtime
        self.socket = f"unix:{server.socket}"
        runtime.settings(f"address tcp:{server.host}:{server.port}", f"token-file {server.token_file}")

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The answer of the API."""
        headers = {"Authorization": f"Bearer {self.server.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.server.url}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def entries(self) -> list[tuple[str, str, str]]:
        """All that is held: pod, container and address."""
        return [
            (item["pod_ref"], one["container_id"], address)
            for item in self.ask("GET", "/v1/reservations")["items"]
            for one in item["attachments"]
            for address in one["addresses"]
        ]

    def containers(self) -> list[str]:
        """Who holds something."""
        return [container for _, container, _ in self.entries()]

    def run(self, command: str, container: str, address: str | None = None) -> Done:
        """A call of the plugin, by default over TCP."""
        return self.runtime.run(command, CNI_CONTAINERID=container, IPAMD_CNI_ADDRESS=address)

    def adds(self) -> list[int]:
        """With which codes the server answered the ADDs so far; 0: a result."""
        return [call["code"] for call in self.ask("GET", "/v1/calls")["items"] if call["verb"].lower() == "add"]

    def pause(self) -> None:
        """The server under SIGSTOP."""
        os.kill(self.server.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """And under SIGCONT."""
        os.kill(self.server.pid, signal.SIGCONT)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """One server with an empty pool p."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = [str(BIN / "ipamctl"), "cni", "install", "--bin-dir", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    with Server(tmp_path) as server:
        made = Host(server, Runtime(tmp_path, folder / "ipamd"))
        made.ask("POST", "/v1/pools", {"name": "p", "subnet": "10.1.0.0/24"})
        yield made


def has_connection(pid: int) -> bool:
    """Whether a process has a socket open."""
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed while it was looked at
            if str(file.readlink()).startswith("socket:"):
                return True
    return False


@contextmanager
def full_pipe() -> Iterator[tuple[int, Callable[[], int]]]:
    """A pipe that takes nothing more: its end to write to, and what counts the bytes that somebody wrote in spite of it."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    stuffed = os.write(writing, bytes(1 << 20))
    os.set_blocking(writing, True)
    os.set_blocking(reading, False)
    try:
        yield writing, lambda: len(os.read(reading, 1 << 21)) - stuffed
    finally:
        os.close(reading)
        os.close(writing)


def kill_before_it_prints(host: Host, container: str) -> None:
    """An ADD of which the plugin has read the answer, but nobody takes what it prints: there it is killed."""
    env = {"CNI_CONTAINERID": container, "IPAMD_CNI_ADDRESS": host.socket}
    with full_pipe() as (writing, printed), host.runtime.start("ADD", env=env, stdout=writing) as plugin:
        try:
            assert plugin.stdin is not None
            plugin.stdin.write(CONF)
            plugin.stdin.close()
            wait_for(lambda: container in host.containers())
            wait_for(lambda: not has_connection(plugin.pid))
            assert plugin.poll() is None
        finally:
            plugin.kill()
        assert plugin.wait(60) == -signal.SIGKILL
        assert printed() == 0


def test_c05k_plugins_killed_before_they_print_leave_one_entry_and_none_after_the_del(host: Host) -> None:
    containers = [f"c{number}" for number in range(KILLS)]
    addresses = set()
    for container in containers:
        kill_before_it_prints(host, container)
        ((pod, holder, address),) = host.entries()
        assert (pod, holder) == ("t/a", container)
        addresses.add(address)
    assert len(addresses) == 1
    *earlier, last = containers
    before = host.entries()
    for container in earlier:
        assert host.run("DEL", container, host.socket).status == 0
        assert host.entries() == before
    assert host.run("DEL", last, host.socket).status == 0
    assert host.entries() == []
    for container in containers:
        assert host.run("DEL", container, host.socket).status == 0
    assert host.entries() == []


class Orphan(NamedTuple):
    """A plugin whose runtime was killed while it waited for its answer."""

    pidfd: int

    def has_ended(self) -> bool:
        """Whether it is gone. It is nobody's child any more, so that its exit status is lost."""
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return bool(poll.poll(0))


@contextmanager
def orphan(host: Host, container: str, address: str) -> Iterator[Orphan]:
    """An ADD that has been sent, and whose runtime is dead."""
    env = {**host.runtime.environ, "CNI_COMMAND": "ADD", "CNI_CONTAINERID": container, "IPAMD_CNI_ADDRESS": address}
    command = [sys.executable, "-IS", "-c", RUNTIME, str(host.runtime.program)]
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as runtime:
        assert runtime.stdin is not None
        assert runtime.stdout is not None
        runtime.stdin.write(CONF)
        runtime.stdin.close()
        pid = int(runtime.stdout.readline())
        pidfd = os.pidfd_open(pid)
        try:
            wait_for(lambda: has_connection(pid))
            runtime.kill()
            assert runtime.wait(60) == -signal.SIGKILL
            left = Orphan(pidfd)
            assert not left.has_ended()
            yield left
        finally:
            if not Orphan(pidfd).has_ended():
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)


def test_late_an_add_that_the_stopped_server_had_in_its_queue_leaves_nothing(host: Host) -> None:
    host.pause()
    with orphan(host, "c1", host.socket) as plugin:
        host.go_on()
        assert host.run("DEL", "c1").status == 0
        wait_for(plugin.has_ended, SETTLED_S)
    assert host.adds() in ([0], [114])
    assert host.entries() == []
    assert host.run("ADD", "c2").status == 0
    assert host.containers() == ["c2"]


class Detour:
    """A node socket whose calls reach the server one by one, when the test says so."""

    def __init__(self, folder: Path, server: Server) -> None:
        self._server, path = server, folder / "detour.sock"
        self.address = f"unix:{path}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._listener.settimeout(SETTLED_S)

    def pass_on(self) -> bytes:
        """Let the next call through, and its answer back; both, without the heads."""
        caller, _ = self._listener.accept()
        with caller, socket.socket(socket.AF_UNIX) as onward:
            caller.settimeout(SETTLED_S)
            onward.settimeout(SETTLED_S)
            onward.connect(str(self._server.socket))
            onward.sendall(_whole(caller))
            answer = _whole(onward)
            caller.sendall(answer)
        return answer.partition(b"\r\n\r\n")[2]

    def close(self) -> None:
        self._listener.close()


def _whole(sock: socket.socket) -> bytes:
    """A request or an answer, head and body."""
    raw = b""
    while b"\r\n\r\n" not in raw or len(raw) < raw.index(b"\r\n\r\n") + 4 + content_length(raw):
        some = sock.recv(65536)
        assert some, f"it ended after {raw!r}"
        raw += some
    return raw


@pytest.fixture
def detour(tmp_path: Path, host: Host) -> Iterator[Detour]:
    """The way on which an ADD is late."""
    made = Detour(tmp_path, host.server)
    yield made
    made.close()


def test_late_an_add_that_comes_after_its_del_is_refused(host: Host, detour: Detour) -> None:
    host.pause()
    with orphan(host, "c1", detour.address) as plugin:
        host.go_on()
        assert host.run("DEL", "c1").status == 0
        assert json.loads(detour.pass_on())["code"] == 114
        assert host.entries() == []
        wait_for(plugin.has_ended, SETTLED_S)
    assert host.entries() == []
    assert host.run("ADD", "c1").status == 0, "a later ADD of the same attachment is no late one"
    assert host.containers() == ["c1"]


def test_late_an_add_that_nothing_refuses_any_more_is_undone_by_its_plugin(host: Host, detour: Detour) -> None:
    """The mark of the DEL is gone already; and nobody is there who would call for another DEL."""
    host.ask("PUT", "/v1/settings", {"tombstone_s": 0})
    host.pause()
    with orphan(host, "c1", detour.address) as plugin:
        host.go_on()
        assert host.run("DEL", "c1").status == 0
        assert json.loads(detour.pass_on())["ips"]
        assert host.containers() == ["c1"]
        detour.pass_on()
        wait_for(plugin.has_ended, SETTLED_S)
    assert host.entries() == []
