"""What the plugin answers without the server: VERSION, bad commands, bad input, bad settings."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import time

import pytest

from ipamd.cni.versions import SUPPORTED
from tests.support.plugin import CONF, PATIENCE_S, PLUGIN, RESULT, Peer, Runtime, answer


@pytest.mark.parametrize("stdin", [b"", CONF, b"{bad"])
def test_version_is_answered_alone(runtime: Runtime, stdin: bytes) -> None:
    done = runtime.run("VERSION", stdin=stdin, IPAMD_CNI_CONF="/nonexistent", CNI_PATH=None)
    assert done.status == 0
    assert json.loads(done.stdout) == {"cniVersion": "1.1.0", "supportedVersions": list(SUPPORTED)}


@pytest.mark.parametrize("command", [None, ""])
def test_without_a_command_it_says_what_it_is(runtime: Runtime, command: str | None) -> None:
    done = runtime.run(command)
    assert (done.status, done.stdout) == (0, b"")
    assert b"CNI IPAM plugin" in done.stderr
    assert b"ipamd serve" in done.stderr
    assert ", ".join(SUPPORTED).encode() in done.stderr


def test_with_arguments_and_no_command_it_fails(runtime: Runtime) -> None:
    done = runtime.run(None, "serve", "--data-dir", "x")
    assert done.status == 2
    assert b"ipamd serve" in done.stderr


@pytest.mark.parametrize("command", ["FOO", "add", " ADD", "VERSION ", 'A"\\\n', "ä"])
def test_an_unknown_command_has_code_4(runtime: Runtime, command: str) -> None:
    error = runtime.run(command).error
    assert error["code"] == 4
    assert "CNI_COMMAND" in error["msg"]


def test_stdin_that_has_nothing_yet_is_waited_for(runtime: Runtime, peer: Peer) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    runtime.settings(f"address {peer.address}")
    with runtime.start("ADD", stdin=reading) as process:
        os.close(reading)
        time.sleep(0.2)
        os.write(writing, CONF)
        os.close(writing)
        stdout, _ = process.communicate(timeout=2 * PATIENCE_S)
    assert (process.returncode, stdout) == (0, RESULT)


def test_stdin_that_cannot_be_read_has_code_5(runtime: Runtime) -> None:
    env = {**runtime.environ, "CNI_COMMAND": "ADD"}
    closed = ["sh", "-c", 'exec "$0" <&-', str(runtime.program)]
    done = subprocess.run(closed, env=env, stdout=subprocess.PIPE, check=False, timeout=2 * PATIENCE_S)
    assert done.returncode == 1
    assert json.loads(done.stdout)["code"] == 5


def test_stdin_is_limited(peer: Peer, runtime: Runtime) -> None:
    fits = b" " * ((1 << 20) - len(CONF)) + CONF
    assert runtime.run("ADD", stdin=fits, IPAMD_CNI_ADDRESS=peer.address).status == 0
    assert peer.requests[0].body == fits
    assert runtime.run("ADD", stdin=fits + b" ", IPAMD_CNI_ADDRESS=peer.address).error["code"] == 7
    assert len(peer.requests) == 1


@pytest.mark.parametrize(
    ("conf", "version"),
    [
        (b'{"cniVersion":"0.4.0"}', "0.4.0"),
        (b'{ "cniVersion" : "0.3.1" , "x": 1}', "0.3.1"),
        (b'{"name":"net"}', "0.1.0"),
        (b'{"cniVersion":17}', "0.1.0"),
        (b'{"cniVersion":"a\\"b"}', "0.1.0"),
        (b'{"cniVersion":', "0.1.0"),
        (b"", "1.1.0"),
    ],
)
def test_its_own_errors_have_the_version_of_the_configuration(runtime: Runtime, conf: bytes, version: str) -> None:
    error = runtime.run("ADD", stdin=conf, IPAMD_CNI_ADDRESS="unix:/nonexistent/s").error
    assert (error["code"], error["cniVersion"]) == (11, version)


def test_its_own_errors_are_json_whatever_is_in_them(runtime: Runtime) -> None:
    error = runtime.run("ADD", IPAMD_CNI_ADDRESS='unix:/a"b\\c\nä').error
    assert error["code"] == 11
    assert 'a"b\\c\n' in error["msg"]


@pytest.mark.parametrize(
    "line",
    [
        "adress unix:/x",
        "address",
        "address unix:/x y",
        "timeout soon",
        "timeout 0",
        "timeout -1",
        "timeout nan",
        "timeout 1e9",
        "status sloppy",
        "insecure maybe",
        "address http://x",
        "address unix:relative",
        "address tcp:127.0.0.1",
        "address tcp:127.0.0.1:99999",
        "token-file /nonexistent/token",
    ],
)
def test_a_bad_setting_is_an_error_that_quotes_it(runtime: Runtime, line: str) -> None:
    runtime.settings("# how to reach ipamd", line)
    done = runtime.run("DEL")
    assert done.error["code"] == 4
    assert line.rpartition(" ")[2] in done.error["msg"]


def test_a_settings_file_that_was_named_must_be_there(runtime: Runtime) -> None:
    error = runtime.run("ADD", IPAMD_CNI_CONF="/nonexistent/cni.conf").error
    assert error["code"] == 4
    assert "/nonexistent/cni.conf" in error["msg"]


def test_settings_become_headers(peer: Peer, runtime: Runtime) -> None:
    token = runtime.conf.with_name("token")
    token.write_text("s3cret\n")
    runtime.settings(
        "# comment", "", f"  address   {peer.address}  # where", f"token-file {token}", "node n-7", "cluster east"
    )
    assert runtime.run("ADD").status == 0
    headers = peer.requests[0].headers
    assert headers["Authorization"] == "Bearer s3cret"
    assert (headers["Ipamd-Node"], headers["Ipamd-Cluster"]) == ("n-7", "east")


def test_the_environment_is_stronger_than_the_address_line(peer: Peer, runtime: Runtime) -> None:
    runtime.settings("address unix:/nonexistent/s")
    assert runtime.run("ADD", IPAMD_CNI_ADDRESS=peer.address).status == 0
    assert runtime.run("ADD", IPAMD_CNI_ADDRESS="").error["code"] == 11


def test_tcp_works_on_loopback_by_number_and_by_name(tcp_peer: Peer, runtime: Runtime) -> None:
    port = tcp_peer.address.rpartition(":")[2]
    for address in (tcp_peer.address, f"tcp:localhost:{port}"):
        assert runtime.run("ADD", IPAMD_CNI_ADDRESS=address).status == 0


@pytest.mark.parametrize("address", ["tcp:192.0.2.1:7480", "tcp:[2001:db8::1]:7480", "tcp:0.0.0.0:7480"])
def test_tcp_beyond_loopback_needs_a_word(runtime: Runtime, address: str) -> None:
    error = runtime.run("ADD", IPAMD_CNI_ADDRESS=address).error
    assert error["code"] == 4
    assert "insecure yes" in error["msg"]


def test_with_that_word_it_is_tried(tcp_peer: Peer, runtime: Runtime) -> None:
    runtime.settings("insecure yes", f"address tcp:0.0.0.0:{tcp_peer.address.rpartition(':')[2]}")
    assert runtime.run("ADD").status == 0


@pytest.mark.parametrize(("line", "status"), [("status lenient", 0), ("status strict", 1), ("", 1)])
def test_a_lenient_status_is_content_when_somebody_answers(
    peer: Peer, runtime: Runtime, line: str, status: int
) -> None:
    peer.answers = [answer(b'{"code":50}', 503)]
    runtime.settings(f"address {peer.address}", line)
    done = runtime.run("STATUS")
    assert (done.status, done.stdout) == (status, b'{"code":50}' if status else b"")
    assert runtime.run("ADD").status == 1


def test_a_lenient_status_is_an_error_when_nobody_does(runtime: Runtime) -> None:
    runtime.settings("address unix:/nonexistent/s", "status lenient")
    assert runtime.run("STATUS").error["code"] == 11


def test_it_imports_nothing_that_has_to_be_read_from_a_file() -> None:
    tree = ast.parse(PLUGIN.read_text(), feature_version=(3, 6))
    at_start = [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
    anywhere = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert at_start == ["posix", "time", "_socket"]
    assert anywhere == {"posix", "time", "_socket", "select"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def test_it_starts_with_the_bare_interpreter() -> None:
    assert PLUGIN.read_bytes().startswith(b"#!/usr/bin/python3 -IS\n")
