"""An ADD whose caller is gone is undone, with the ADD's own start."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.support.plugin import CONF, PATIENCE_S, Peer, Runtime, answer


def run_with_reader_gone(runtime: Runtime, peer: Peer, command: str, *, gone_before: bool) -> int:
    """Run the plugin whose stdout is a pipe; the reading end is closed before the answer comes, or after."""
    reading, writing = os.pipe()
    if gone_before:
        os.close(reading)
    with runtime.start(command, env={"IPAMD_CNI_ADDRESS": peer.address}, stdout=writing) as process:
        os.close(writing)
        process.communicate(CONF, timeout=2 * PATIENCE_S)
    if not gone_before:
        os.close(reading)
    return process.returncode


def test_an_add_without_a_reader_is_undone(peer: Peer, runtime: Runtime) -> None:
    assert run_with_reader_gone(runtime, peer, "ADD", gone_before=True) == 1
    add, undo = peer.wait_for(2)
    assert undo.line == "POST /cni/v1/del HTTP/1.1"
    assert undo.body == add.body
    for header in ("Ipamd-Started", "Ipamd-Boot-Id", "CNI-ContainerID", "CNI-IfName"):
        assert undo.headers[header] == add.headers[header]


def test_a_reader_that_vanishes_after_the_result_was_written_counts_too(runtime: Runtime, peer: Peer) -> None:
    # Writing nothing to nobody is no error, so that only poll can tell here that the reader is gone.
    peer.answers = [answer(b"")]
    assert run_with_reader_gone(runtime, peer, "ADD", gone_before=True) == 1
    assert [request.line.split("/")[3].split()[0] for request in peer.wait_for(2)] == ["add", "del"]


def test_an_add_with_a_reader_is_not(peer: Peer, runtime: Runtime) -> None:
    assert run_with_reader_gone(runtime, peer, "ADD", gone_before=False) == 0
    assert len(peer.requests) == 1


@pytest.mark.parametrize("command", ["DEL", "CHECK", "GC", "STATUS"])
def test_nothing_else_is(peer: Peer, runtime: Runtime, command: str) -> None:
    run_with_reader_gone(runtime, peer, command, gone_before=True)
    assert len(peer.requests) == 1


def test_a_refused_add_has_nothing_to_undo(peer: Peer, runtime: Runtime) -> None:
    peer.answers = [answer(b'{"code":110}', 409)]
    assert run_with_reader_gone(runtime, peer, "ADD", gone_before=True) == 1
    assert len(peer.requests) == 1


def test_an_add_without_an_answer_may_have_been_carried_out(peer: Peer, runtime: Runtime) -> None:
    peer.answers = [b"", answer(b"")]
    assert run_with_reader_gone(runtime, peer, "ADD", gone_before=True) == 1
    assert peer.wait_for(2)[1].line == "POST /cni/v1/del HTTP/1.1"


def test_a_closed_stdout_is_no_reader(peer: Peer, runtime: Runtime) -> None:
    env = {**runtime.environ, "CNI_COMMAND": "ADD", "IPAMD_CNI_ADDRESS": peer.address}
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" >&-', str(runtime.program)],
        env=env,
        input=CONF,
        check=False,
        timeout=2 * PATIENCE_S,
        stderr=subprocess.PIPE,
    )
    assert (done.returncode, done.stderr) == (1, b"")
    assert peer.wait_for(2)[1].line == "POST /cni/v1/del HTTP/1.1"
