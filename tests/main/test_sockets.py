"""The sockets to listen on: the mode of the node socket, and files that others left."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ipamd.notify import notify
from ipamd.settings import Endpoint
from ipamd.sockets import SocketError, listen_tcp, listen_unix, remove_unix


def test_the_node_socket_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with listen_unix(tmp_path / "run" / "s"):
            assert stat.S_IMODE((tmp_path / "run" / "s").stat().st_mode) == 0o600
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)


def test_the_file_of_a_dead_server_is_replaced(tmp_path: Path) -> None:
    listen_unix(tmp_path / "s").close()
    with listen_unix(tmp_path / "s"), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(tmp_path / "s"))


def test_a_live_server_is_left_alone(tmp_path: Path) -> None:
    with listen_unix(tmp_path / "s"), socket.socket(socket.AF_UNIX) as client:
        with pytest.raises(SocketError, match="another server answers there"):
            listen_unix(tmp_path / "s")
        client.connect(str(tmp_path / "s"))


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("precious")
    with pytest.raises(SocketError, match="no socket"):
        listen_unix(tmp_path / "s")
    assert (tmp_path / "s").read_text() == "precious"


def test_our_file_goes_and_anothers_stays(tmp_path: Path) -> None:
    listen_unix(tmp_path / "s").close()
    remove_unix(tmp_path / "s")
    assert not (tmp_path / "s").exists()
    with listen_unix(tmp_path / "s"):
        remove_unix(tmp_path / "s")
        assert (tmp_path / "s").exists()


def has_ipv6_loopback() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", *(["::1"] if has_ipv6_loopback() else [])])
def test_a_taken_port_is_named(host: str) -> None:
    with listen_tcp(Endpoint(host, 0)) as sock:
        taken = Endpoint(host, sock.getsockname()[1])
        with pytest.raises(SocketError, match=f"{taken.port}: another program listens there"):
            listen_tcp(taken)


def test_a_host_that_is_not_here_is_named() -> None:
    with pytest.raises(SocketError, match=r"cannot listen on 192\.0\.2\.1:1"):
        listen_tcp(Endpoint("192.0.2.1", 1))


@pytest.mark.parametrize("is_abstract", [False, True])
def test_systemd_hears_that_the_service_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_abstract: bool
) -> None:
    name = f"@ipamd-test-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(name.replace("@", "\0", 1))
        heard.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        notify("READY=1")
        assert heard.recv(100) == b"READY=1"


def test_without_systemd_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/at/all")
    notify("READY=1")
    monkeypatch.delenv("NOTIFY_SOCKET")
    notify("READY=1")


def hand_over(descriptor: int, count: str = "1", owner: str = "$$") -> subprocess.CompletedProcess[str]:
    """What a process makes of a descriptor that it inherits as its third."""
    script = f'exec 3<&0 </dev/null; LISTEN_PID={owner} LISTEN_FDS={count} exec "$@"'
    look = "from ipamd.sockets import inherited_unix as i; s = i(); print(s and s.getsockname(), s and s.get_inheritable())"
    command = ["sh", "-c", script, "sh", sys.executable, "-c", look]
    return subprocess.run(command, stdin=descriptor, capture_output=True, text=True, check=False, timeout=120)


def test_a_supervisors_socket_is_taken(tmp_path: Path) -> None:
    with listen_unix(tmp_path / "s") as listener:
        assert hand_over(listener.fileno()).stdout == f"{tmp_path / 's'} False\n"
        assert hand_over(listener.fileno(), owner="1").stdout == "None None\n", "it is meant for another process"
        assert "2 sockets were handed over" in hand_over(listener.fileno(), count="2").stderr
    with socket.socket(socket.AF_UNIX) as silent:
        assert "is no listening unix socket" in hand_over(silent.fileno()).stderr
