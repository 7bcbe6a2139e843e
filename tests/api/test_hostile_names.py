"""Names of pods that would break a line, steer a terminal or start a formula: from the ADD to log, event and table."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ipamd import logs
from tests.api.test_shapes import check_problem
from tests.support.stack import Stack

CONF = {"cniVersion": "1.0.0", "name": "net", "ipam": {"type": "ipamd", "pool": "p"}}
BREAKING = [
    "a\nb",
    "a\rb",
    "a\x1b[2Jb",
    "a\x00b",
    "a\x7fb",
    "a\x85b",
    "a\u2028b",
    "a\u2029b",
    "a\u202eb",
    "a\u200bb",
    "a\ufeffb",
    "\ud800",
]
ODD = [
    '=HYPERLINK("x")',
    "+1+cmd|calc!A0",
    "@SUM(1)",
    "-2",
    "a,b\"c'd",
    "<script>",
    "b\u00fcro",
    "\u6771\u4eac",
    "a b",
    "[bold]x[",
    "$(id)",
    "%s%n",
]
"""Odd, and names all the same: each is shown as it is."""

BY_CNI = [name for name in ODD if "=" not in name]
"""In CNI_ARGS nothing has a second `=`."""


@pytest.fixture(params=["json", "text"])
def log(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level, stream = root.handlers[:], root.level, io.StringIO()
    logs.configure(request.param, "info", stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)


def check_lines(log: io.StringIO, count: int) -> str:
    """So many lines, of which none holds anything that is not printable."""
    lines = log.getvalue().split("\n")
    assert len(lines) == count + 1
    assert all(line.isprintable() for line in lines)
    return log.getvalue()


async def test_what_breaks_a_line_is_refused_in_a_sentence_that_does_not(stack: Stack, log: io.StringIO) -> None:
    await stack.pool()
    before = (await stack.ask("GET", "/v1/events")).raw
    for name in BREAKING:
        body = json.dumps({"pool": "p", "pod_ref": f"t/{name}"}).encode()
        problem = check_problem(await stack.ask("POST", "/v1/reservations", body), "invalid_request")
        assert problem["detail"].isprintable(), problem
    for name in BREAKING[2:]:
        answer = await raw_add(stack, name)
        assert not answer.startswith(b"HTTP/1.1 200"), (name, answer)
        assert answer.decode().replace("\r\n", "").isprintable()
    check_lines(log, len(BREAKING) + len(BREAKING[2:]))
    assert (await stack.ask("GET", "/v1/events")).raw == before
    assert (await stack.ask("GET", "/v1/pools/p/usage")).json["ipv4"]["bound"] == 0


async def raw_add(stack: Stack, name: str, container: str = "c1") -> bytes:
    """An ADD with bytes that no HTTP client would send."""
    reader, writer = await asyncio.open_unix_connection(str(stack.path))
    body = json.dumps(CONF).encode()
    head = [
        b"POST /cni/v1/add HTTP/1.1",
        b"Host: x",
        b"Connection: close",
        b"CNI-IfName: eth0",
        f"CNI-ContainerID: {container}".encode(),
    ]
    head += [
        b"CNI-Netns: /run/netns/x",
        b"CNI-Args: K8S_POD_NAMESPACE=t;K8S_POD_NAME=" + name.encode("utf-8", "surrogatepass"),
        b"Content-Length: %d" % len(body),
        b"",
        body,
    ]
    writer.write(b"\r\n".join(head))
    answer = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    return answer


async def test_what_is_only_odd_is_shown_as_it_is_everywhere(stack: Stack, log: io.StringIO) -> None:
    await stack.pool()
    for at, name in enumerate(BY_CNI):
        answer = await raw_add(stack, name, f"c{at}")
        assert answer.startswith(b"HTTP/1.1 200"), answer
        logging.getLogger("x").info("pod %s", name, extra={"pod_ref": name})
    check_lines(log, len(BY_CNI))
    wanted = sorted(f"t/{name}" for name in BY_CNI)
    listed = (await stack.ask("GET", "/v1/reservations")).json["items"]
    assert sorted(one["pod_ref"] for one in listed) == wanted
    events = (await stack.ask("GET", "/v1/events")).json["items"]
    assert {one["pod_ref"] for one in events if one["kind"] == "bound"} == set(wanted)
    calls = (await stack.ask("GET", "/v1/calls")).json["items"]
    assert sorted(one["pod_ref"] for one in calls) == wanted


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
async def test_what_ipamctl_prints_has_a_line_for_each(stack: Stack, form: str) -> None:
    await stack.pool()
    for name in ODD:
        assert (await stack.ask("POST", "/v1/reservations", {"pool": "p", "pod_ref": f"t/{name}"})).status == 201
    command = [
        str(Path(sys.executable).parent / "ipamctl"),
        "--server",
        f"unix:{stack.path}",
        "-o",
        form,
        "reservation",
        "list",
    ]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True, timeout=120)
    text = done.stdout.decode()
    assert all(line.isprintable() for line in text.split("\n"))
    if form == "table":
        assert len(text.splitlines()) == len(ODD) + 1
        assert all(f"t/{name}" in text for name in ODD)
        return
    items = json.loads(text)["items"] if form == "json" else yaml.safe_load(text)["items"]
    assert {one["pod_ref"] for one in items} == {f"t/{name}" for name in ODD}
