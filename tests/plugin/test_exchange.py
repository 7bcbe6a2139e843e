"""One call: what goes over the wire, and what is printed of the answer."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ipamd.cni.call import AddCall, DelCall, parse
from ipamd.cni.errors import CniError
from tests.support.plugin import CONF, PATIENCE_S, RESULT, Peer, Runtime, answer

FIELD_BYTES = 16_384
"""What the server takes of a header with its name."""


@pytest.mark.parametrize("command", ["ADD", "DEL", "CHECK", "GC", "STATUS"])
def test_a_call_is_handed_over_and_its_answer_printed_byte_for_byte(peer: Peer, runtime: Runtime, command: str) -> None:
    earlier_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    done = runtime.run(command, IPAMD_CNI_ADDRESS=peer.address)
    later_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    assert (done.status, done.stdout, done.stderr) == (0, RESULT, b"")
    (request,) = peer.requests
    assert request.line == f"POST /cni/v1/{command.lower()} HTTP/1.1"
    assert request.body == CONF
    assert earlier_ns < int(request.headers.pop("Ipamd-Started")) < later_ns
    took_ms = (later_ns - earlier_ns) // 1_000_000  # the whole run: no more of its ten seconds can be over
    assert 9_998 - took_ms <= int(request.headers.pop("Ipamd-Deadline-Ms")) <= 10_000
    assert request.headers.pop("Ipamd-Boot-Id") == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert request.headers == {
        "Host": "ipamd",
        "Connection": "close",
        "Content-Type": "application/json",
        "Content-Length": str(len(CONF)),
        "CNI-ContainerID": "c1",
        "CNI-Netns": "/var/run/netns/x",
        "CNI-IfName": "eth0",
        "CNI-Args": "IgnoreUnknown=1;K8S_POD_NAMESPACE=t;K8S_POD_NAME=a",
        "CNI-Path": "/opt/cni/bin",
    }


def test_a_variable_that_is_not_set_has_no_header_and_an_empty_one_has(peer: Peer, runtime: Runtime) -> None:
    runtime.run("ADD", IPAMD_CNI_ADDRESS=peer.address, CNI_NETNS=None, CNI_ARGS="", CNI_PATH=None)
    headers = peer.requests[0].headers
    assert "CNI-Netns" not in headers
    assert "CNI-Path" not in headers
    assert headers["CNI-Args"] == ""


def test_no_variable_can_end_a_header_and_the_server_reads_it_as_it_was(peer: Peer, runtime: Runtime) -> None:
    evil = "a\r\nX-Evil: 1\r\n\r\n%41 ä\x7f"
    args = f"K8S_POD_NAMESPACE=t;K8S_POD_NAME=ä b%2F;X={evil}".replace("\x7f", "")
    runtime.run("ADD", IPAMD_CNI_ADDRESS=peer.address, CNI_NETNS=evil.encode() + b"\xff", CNI_ARGS=args.encode())
    request = peer.requests[0]
    assert "X-Evil" not in request.headers
    assert request.headers["CNI-Netns"] == "a%0D%0AX-Evil:%201%0D%0A%0D%0A%2541%20%C3%A4%7F%FF"
    request.headers["CNI-Netns"] = "/x"
    call = parse("add", request.headers, request.body, node="n1", cluster=None)
    assert isinstance(call, AddCall)
    assert call.pod_ref == "t/ä b%2F"


@pytest.mark.parametrize("character", ["y", "ä"])
@pytest.mark.parametrize("variable", ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS"])
def test_a_variable_that_is_too_long_is_named_by_the_server(
    peer: Peer, runtime: Runtime, variable: str, character: str
) -> None:
    too_long = {variable: "K=" + character * 20_000, "CNI_PATH": "/x" * 20_000}
    with runtime.start("ADD", env={"IPAMD_CNI_ADDRESS": peer.address, **too_long}) as process:
        process.communicate(CONF, timeout=2 * PATIENCE_S)
    request = peer.requests[0]
    assert max(len(f"{name}{value}") for name, value in request.headers.items()) < FIELD_BYTES
    with pytest.raises(CniError, match=variable) as refused:
        parse("add", request.headers, request.body, node="n1", cluster=None)
    assert refused.value.code == 4


def test_a_variable_that_is_too_long_and_that_a_del_can_do_without_does_not_hinder_it(
    peer: Peer, runtime: Runtime
) -> None:
    too_long = "K=y;" * 10_000
    done = runtime.run("DEL", IPAMD_CNI_ADDRESS=peer.address, CNI_ARGS=too_long, CNI_NETNS=too_long, CNI_PATH=too_long)
    assert done.status == 0
    request = peer.requests[0]
    assert max(map(len, request.headers.values())) < FIELD_BYTES
    assert isinstance(parse("del", request.headers, request.body, node="n1", cluster=None), DelCall)


def test_a_long_variable_that_fits_is_whole(peer: Peer, runtime: Runtime) -> None:
    args = "IPAMD_POD_REF=t/a;X=" + "y" * 15_900
    runtime.run("ADD", IPAMD_CNI_ADDRESS=peer.address, CNI_ARGS=args)
    assert peer.requests[0].headers["CNI-Args"] == args


@pytest.mark.parametrize("status", [400, 403, 409, 503])
def test_an_error_object_of_the_server_is_printed_with_status_1(peer: Peer, runtime: Runtime, status: int) -> None:
    body = b'{"cniVersion":"1.0.0","code":110,"msg":"full"}'
    peer.answers = [answer(body, status)]
    done = runtime.run("ADD", IPAMD_CNI_ADDRESS=peer.address)
    assert (done.status, done.stdout) == (1, body)


def test_an_empty_result_prints_nothing(peer: Peer, runtime: Runtime) -> None:
    peer.answers = [answer(b"")]
    done = runtime.run("DEL", IPAMD_CNI_ADDRESS=peer.address)
    assert (done.status, done.stdout) == (0, b"")


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1\r\nContent-Type: application/cni+json\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 abc X\r\nContent-Type: application/cni+json\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        answer(content_type="application/json"),
        answer(content_type="application/cni+json; charset=utf-8"),
        answer(content_type="text/html", status=502),
        b"HTTP/1.1 200 OK\r\nContent-Type: application/cni+json\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/cni+json\r\nContent-Length: -1\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/cni+json\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n{}",
        answer(b"{}").replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"),
        answer()[:-1],
        b"x" * 3_000_000,
    ],
)
def test_anything_else_is_no_answer(peer: Peer, runtime: Runtime, said: bytes) -> None:
    peer.answers = [said]
    error = runtime.run("ADD", IPAMD_CNI_ADDRESS=peer.address).error
    assert (error["code"], error["cniVersion"]) == (11, "1.0.0")
    assert "is ipamd running on this node?" in error["msg"]


def test_a_server_that_answers_before_it_has_read_everything_is_heard(runtime: Runtime, peer: Peer) -> None:
    peer.answers, peer.hasty = [answer(b'{"code":7}', 413)], True
    done = runtime.run("ADD", stdin=b"{" + b" " * 1_000_000 + b"}", IPAMD_CNI_ADDRESS=peer.address)
    assert (done.status, done.stdout) == (1, b'{"code":7}')
    assert len(peer.requests[0].body) < 1_000_000


@pytest.mark.parametrize("command", ["ADD", "DEL", "CHECK", "GC", "STATUS"])
def test_without_a_server_it_says_so_at_once(runtime: Runtime, command: str) -> None:
    runtime.settings("timeout 600")  # or it would not end before the test does
    done = runtime.run(command, IPAMD_CNI_ADDRESS="unix:/nonexistent/ipamd.sock")
    assert done.error["code"] == 11
    assert "unix:/nonexistent/ipamd.sock" in done.error["msg"]
    assert "is ipamd running on this node?" in done.error["msg"]


def test_silence_ends_with_the_time_out(peer: Peer, runtime: Runtime) -> None:
    peer.answers = [None]
    runtime.settings(f"address {peer.address}", "timeout 1.5")
    done = runtime.run("DEL")
    assert done.error["code"] == 11
    assert "not in time" in done.error["msg"]
    assert done.took_s >= 1.5
    assert int(peer.wait_for(1)[0].headers["Ipamd-Deadline-Ms"]) <= 1500


def test_waiting_for_stdin_does_not_eat_the_time(peer: Peer, runtime: Runtime) -> None:
    runtime.settings(f"address {peer.address}", "timeout 2")
    with runtime.start("ADD") as process:
        time.sleep(2.5)
        before_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        stdout, _ = process.communicate(CONF, timeout=2 * PATIENCE_S)
    assert (process.returncode, stdout) == (0, RESULT)
    # The start was taken when the process began, two and a half seconds before its input was there.
    assert int(peer.requests[0].headers["Ipamd-Started"]) < before_ns - 300_000_000
