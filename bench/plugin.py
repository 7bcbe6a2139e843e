"""Owns the measurement of the whole plugin process against a bare interpreter, run by run in turn."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.figures import Figure, middle_ms
from bench.pools import make
from demo.server import BIN
from ipamctl.cni.static import compilers
from tests.support.server import Server
from tests.support.wire import cni_conf, cni_headers

RUNS = 200


def measure(server: Server, folder: Path) -> Iterator[Figure]:
    """Both processes, the server's share, and the ratio that was asked for."""
    pool = make(server, "bench-plugin", "10.32.0.0/16")
    plugin, python = install(folder), interpreter(folder)
    static = install(folder / "static", "--static") if compilers() else None
    conf, said = folder / "conf.json", folder / "said"
    conf.write_bytes(cni_conf(pool))
    bares, plugins, served_s, statics = list[Took](), list[Took](), list[float](), list[Took]()
    for run in range(RUNS):
        bares.append(spawn([python, "-I", "-S", "-c", "pass"], {}, conf, said))
        plugins.append(spawn([str(plugin)], environment(server, run), conf, said))
        served_s.append(ask(server, run, cni_conf(pool)))
        if static is not None:
            statics.append(spawn([str(static)], environment(server, RUNS + run), conf, said))
    bare, whole, share = lasted_ms(bares), lasted_ms(plugins), middle_ms(served_s)
    yield Figure("bare interpreter, python3 -I -S -c pass, p50", bare, "ms", note=python)
    yield Figure("whole plugin process, one ADD, p50", whole, "ms", at_most=1.5 * bare + share)
    yield Figure(
        "the server's share of it, p50", share, "ms", note="the same ADD on a new connection, from a warm process"
    )
    yield Figure("(plugin - server) / bare interpreter", (whole - share) / bare, "x", at_most=1.5)
    yield Figure("processor time of a bare interpreter, p50", worked_ms(bares), "ms")
    yield Figure("processor time of the plugin, p50", worked_ms(plugins), "ms")
    if static is not None:
        yield Figure("whole static plugin process, one ADD, p50", lasted_ms(statics), "ms", note="a C compiler made it")
        yield Figure("processor time of the static plugin, p50", worked_ms(statics), "ms")
        yield Figure("processor time, static plugin / plugin", worked_ms(statics) / worked_ms(plugins), "x")


class Took(NamedTuple):
    """What one process took: until its end, and of the processors, in seconds."""

    lasted_s: float
    worked_s: float


def lasted_ms(processes: list[Took]) -> float:
    """The median until the end, in milliseconds."""
    return middle_ms([one.lasted_s for one in processes])


def worked_ms(processes: list[Took]) -> float:
    """The median of processor time, which a busy machine hardly changes, in milliseconds."""
    return middle_ms([one.worked_s for one in processes])


def install(folder: Path, *how: str) -> Path:
    """The plugin as `ipamctl cni install` leaves it."""
    folder.mkdir(exist_ok=True)
    subprocess.run([BIN / "ipamctl", "cni", "install", "--bin-dir", folder, *how], check=True, capture_output=True)
    return folder / "ipamd"


def interpreter(folder: Path) -> str:
    """The interpreter that the installed plugin names."""
    first = (folder / "ipamd").read_text().partition("\n")[0]
    return first.removeprefix("#!").split()[0]


def environment(server: Server, run: int) -> dict[str, str]:
    """What a runtime gives the plugin."""
    return {
        "CNI_COMMAND": "ADD",
        "CNI_CONTAINERID": f"plugin-{run}",
        "CNI_NETNS": "/proc/self/ns/net",
        "CNI_IFNAME": "eth0",
        "CNI_PATH": "/opt/cni/bin",
        "CNI_ARGS": f"IgnoreUnknown=1;K8S_POD_NAMESPACE=bench;K8S_POD_NAME=plugin-{run}",
        "IPAMD_CNI_ADDRESS": f"unix:{server.socket}",
        "IPAMD_CNI_CONF": os.devnull,
    }


def ask(server: Server, run: int, conf: bytes) -> float:
    """The plugin's request on a connection of its own, without a process to start; seconds. Raises RuntimeError."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in cni_headers(f"s-{run}", f"bench/served-{run}").items())
    head = (
        f"POST /cni/v1/add HTTP/1.1\r\nHost: ipamd\r\nConnection: close\r\n{lines}Content-Length: {len(conf)}\r\n\r\n"
    )
    request, answer = head.encode() + conf, b""
    began = time.perf_counter()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(server.socket))
        connection.sendall(request)
        while part := connection.recv(65536):
            answer += part
    took = time.perf_counter() - began
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"the server refused: {answer.decode()}")
    return took


def spawn(command: list[str], env: dict[str, str], stdin: Path, stdout: Path) -> Took:
    """Run a process to its end, with files as its stdin and stdout. Raises RuntimeError if it fails.

    Nothing of this process takes part in between, so that what is measured is the other one.
    """
    files = [
        (os.POSIX_SPAWN_OPEN, 0, str(stdin), os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(stdout), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
    ]
    began = time.perf_counter()
    process = os.posix_spawn(command[0], command, env, file_actions=files)
    _, status, used = os.wait4(process, 0)
    took = Took(time.perf_counter() - began, used.ru_utime + used.ru_stime)
    if status != 0:
        raise RuntimeError(f"{command[0]} failed: {stdout.read_text()}")
    return took
