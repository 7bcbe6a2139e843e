"""The static plugin: its source is short, it says what the Python one says, and what it does in another way."""

from __future__ import annotations

import ast
import platform
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipamctl.cni import static
from ipamctl.cni.static import FLAGS, NoStaticPlugin, compilers, static_plugin
from ipamd.cni.versions import SUPPORTED
from tests.support.plugin import PATIENCE_S, PLUGIN, Peer, Request, Runtime, answer

SOURCE = Path(__file__).resolve().parents[2] / "contrib" / "cni-static" / "ipamd_cni.c"

VALUES = st.binary(max_size=40).map(lambda value: value.replace(b"\0", b""))
SETTINGS = st.none() | st.text("abcXYZ019.-_%äß", min_size=1, max_size=20)


@pytest.fixture
def program(static_program: Path, tmp_path: Path) -> Runtime:
    return Runtime(tmp_path, static_program)


def test_its_source_can_be_read_in_one_sitting() -> None:
    lines = SOURCE.read_text().splitlines()
    assert len(lines) < 200
    assert max(map(len, lines)) <= 120


def test_it_needs_nothing_of_the_host(static_program: Path) -> None:
    program = static_program.read_bytes()
    assert program.startswith(b"\x7fELF")
    assert b"/ld-linux" not in program
    assert b"/ld-musl" not in program


def test_both_know_the_same_settings_commands_and_versions() -> None:
    text = SOURCE.read_text()
    constants = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(PLUGIN.read_text()).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper()
        if node.targets[0].id in {"SETTINGS", "COMMANDS", "VARIABLES"}
    }
    for name in (*constants["SETTINGS"], *constants["COMMANDS"]):
        assert f'"{name.decode()}"' in text
    for variable, header in constants["VARIABLES"]:
        assert f'{{"{variable.decode()}", "{header.decode()}: "}}' in text
    assert ", ".join(SUPPORTED) in text


def same(request: Request) -> tuple[str, dict[str, str], bytes]:
    """What two calls have in common that came one after the other."""
    headers = {
        key: value for key, value in request.headers.items() if key not in {"Ipamd-Started", "Ipamd-Deadline-Ms"}
    }
    return request.line, headers, request.body


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.sampled_from(["ADD", "DEL", "CHECK", "GC"]), st.tuples(VALUES, VALUES, VALUES, st.binary(max_size=99)), SETTINGS
)
def test_both_send_the_same_bytes(
    peer: Peer, program: Runtime, command: str, values: tuple[bytes, ...], node: str | None
) -> None:
    *variables, body = values
    python = Runtime(program.conf.parent)
    program.settings(f"address {peer.address}", *([f"node {node}", f"cluster {node}"] if node else []))
    peer.requests.clear()
    ends = [
        runtime.run(
            command, stdin=body, **dict(zip(("CNI_CONTAINERID", "CNI_ARGS", "CNI_NETNS"), variables, strict=True))
        )
        for runtime in (_without_settings(python, program), program)
    ]
    first, second = map(same, peer.wait_for(2))
    assert first == second
    assert (ends[0].status, ends[0].stdout) == (ends[1].status, ends[1].stdout)


def _without_settings(runtime: Runtime, like: Runtime) -> Runtime:
    """A runtime that reads the other one's settings."""
    runtime.environ["IPAMD_CNI_CONF"] = str(like.conf)
    return runtime


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_it_speaks_tcp(tcp_peer: Peer, program: Runtime, host: str) -> None:
    port = tcp_peer.address.rpartition(":")[2]
    assert program.run("ADD", IPAMD_CNI_ADDRESS=f"tcp:{host}:{port}").status == 0


def test_it_looks_no_name_up(program: Runtime) -> None:
    error = program.run("ADD", IPAMD_CNI_ADDRESS="tcp:ipamd.example.org:7480").error
    assert error["code"] == 4
    assert "localhost or an address" in error["msg"]


@pytest.mark.parametrize(("host", "is_local"), [("[::1]", True), ("[2001:db8::1]", False), ("192.0.2.1", False)])
def test_plain_http_stays_on_the_host(program: Runtime, host: str, is_local: bool) -> None:
    error = program.run("ADD", IPAMD_CNI_ADDRESS=f"tcp:{host}:1").error
    assert (error["code"], "beyond loopback" in error["msg"]) == ((11, False) if is_local else (4, True))


def test_a_lenient_status_succeeds_whatever_was_answered(peer: Peer, program: Runtime) -> None:
    peer.answers = [answer(b'{"code":50}', 503)]
    program.settings(f"address {peer.address}", "status lenient")
    assert (program.run("STATUS").status, program.run("CHECK").status) == (0, 1)


def test_it_is_stopped_and_goes_on(peer: Peer, program: Runtime) -> None:
    """A process that was frozen while it waited hears EINTR, which is no error."""
    peer.answers = [None]
    program.settings(f"address {peer.address}", "timeout 2")
    with program.start("CHECK") as process:
        assert process.stdin is not None
        process.stdin.write(b"{}")
        process.stdin.close()
        process.stdin = None
        peer.wait_for(1)
        for name in ("STOP", "CONT"):
            subprocess.run(["kill", f"-{name}", str(process.pid)], check=True)
        stdout, _ = process.communicate(timeout=2 * PATIENCE_S)
    assert b"not in time" in stdout


def test_the_flags_of_the_makefile_are_those_of_ipamctl() -> None:
    makefile = SOURCE.with_name("Makefile").read_text()
    assert f"CFLAGS ?= {' '.join(FLAGS)} -Werror" in makefile


def test_each_compiler_of_this_host_makes_a_plugin_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for compiler in compilers():
        monkeypatch.setattr(static, "compilers", lambda compiler=compiler: [compiler])
        assert static_plugin().startswith(b"\x7fELF")


def test_without_a_compiler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "compilers", list)
    with pytest.raises(NoStaticPlugin, match="install one"):
        static_plugin()


def test_a_compiler_that_fails_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "compilers", lambda: [["sh", "-c", "echo no libc.a >&2; exit 1"]])
    with pytest.raises(NoStaticPlugin, match=r"sh does not compile it: no libc\.a"):
        static_plugin()


def test_a_compiler_that_never_ends_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "compilers", lambda: [["sh", "-c", "exec sleep 60"]])
    monkeypatch.setattr(static, "_LONGEST_S", 0.1)
    with pytest.raises(NoStaticPlugin, match=r"sh does not compile it within 0\.1 s"):
        static_plugin()


def test_a_plugin_that_does_not_answer_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = tmp_path / f"cni-static-{platform.machine()}"
    monkeypatch.setattr(static, "READY", tmp_path)
    monkeypatch.setattr(static, "_ANSWER_S", 0.1)
    ready.write_text("#!/bin/sh\nexec sleep 60\n")
    ready.chmod(0o755)
    with pytest.raises(NoStaticPlugin, match=r"gave no answer within 0\.1 s"):
        static_plugin()


def test_a_ready_made_one_is_taken_if_it_runs_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = tmp_path / f"cni-static-{platform.machine()}"
    monkeypatch.setattr(static, "READY", tmp_path)
    ready.write_text("#!/bin/sh\necho '{\"supportedVersions\": []}'\n")
    ready.chmod(0o755)
    assert static_plugin() == ready.read_bytes()
    ready.write_bytes(b"\x7fELF of another machine")
    with pytest.raises(NoStaticPlugin, match="does not run here"):
        static_plugin()
