"""What the units take away from the server leaves it all that it does: calls of the kernel, and its view of namespaces."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from configparser import ConfigParser
from pathlib import Path

import pytest

from tests.support.cluster import ask_socket
from tests.support.host import wait_until
from tests.support.server import Server

UNITS = sorted((Path(__file__).resolve().parents[2] / "contrib" / "systemd").glob("*.service"))
MOST_EXPOSED = 50
"""systemd's own measure of a unit, times ten; what needs a view of the file system of its own cannot be had here."""

OTHER_CALLS = {"execve", "arch_prctl", "personality", "prctl", "capset", "capget"}
"""Made by setpriv and the loader, before a unit's filter would be there or as part of it."""


CONF = {"cniVersion": "1.0.0", "name": "net", "ipam": {"type": "ipamd", "pool": "web"}}


class Confined(Server):
    """A server with these capabilities alone, whose system calls are counted."""

    capabilities: Sequence[str] = ()

    @property
    def trace(self) -> Path:
        """Where they are counted."""
        return self.directory / "trace"

    def command(self) -> list[str]:
        """What starts it, and stays its parent in nothing: it is what gets the signals."""
        bounding = ",".join(["-all", *(f"+{name}" for name in self.capabilities)])
        return [
            *("strace", "--daemonize", "--follow-forks", "--summary-only", "--quiet=all", "--output", str(self.trace)),
            *("setpriv", "--no-new-privs", "--inh-caps=-all", f"--bounding-set={bounding}"),
            *super().command(),
        ]


def is_alive(server: Server) -> bool:
    """Whether the server's own report says that the pod is alive."""
    shown = ask_socket(server.socket, "GET", f"/v1/nodes/{server.name}").json
    return [one["alive"] for one in shown["attachments"]] == [True]


def options(unit: Path) -> dict[str, str]:
    """The options of a unit's service."""
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(unit)
    return dict(parser["Service"])


def analyze(*arguments: str | Path) -> str:
    """What systemd-analyze says."""
    if shutil.which("systemd-analyze") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("needs systemd-analyze (Debian: systemd)")
        pytest.skip("needs systemd-analyze (Debian: systemd)")
    done = subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False, timeout=300)
    return done.stdout + done.stderr


def allowed(group: str) -> set[str]:
    """The system calls of one of systemd's groups."""
    names = [line.strip() for line in analyze("syscall-filter", "--no-pager", group).splitlines()[1:]]
    calls = {name for name in names if re.fullmatch(r"\w+", name)}
    return calls.union(*(allowed(name) for name in names if re.fullmatch(r"@[\w-]+", name)))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_the_unit_is_not_exposed(unit: Path) -> None:
    said = analyze("security", "--offline=yes", "--no-pager", unit)
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)
    assert found is not None, said
    assert float(found[1]) * 10 < MOST_EXPOSED


def test_both_units_take_the_same_away() -> None:
    hardening = re.compile(r"Protect|Restrict|Capab|System|NoNew|Lock|Device|Keyring|UMask")
    server, agent = ({name: value for name, value in options(unit).items() if hardening.match(name)} for unit in UNITS)
    assert server == agent
    assert len(server) > 10


@pytest.mark.needs_root
@pytest.mark.needs_strace
def test_a_server_needs_nothing_that_the_unit_takes_away(tmp_path: Path) -> None:
    """It is traced with the unit's capabilities: it makes no call that the filter stops, and sees others' namespaces."""
    unit = options(next(unit for unit in UNITS if unit.stem == "ipamd"))
    server = Confined(tmp_path, "--report-every-s", "1")
    server.capabilities = [name.removeprefix("CAP_").lower() for name in unit["CapabilityBoundingSet"].split()]
    pod = subprocess.Popen(["unshare", "--net", "setpriv", "--reuid", "65534", "--clear-groups", "sleep", "1000"])
    try:
        wait_until(lambda: Path(f"/proc/{pod.pid}").stat().st_uid == 65534, 60, "the pod is not another user's")
        with server:
            ask_socket(server.socket, "POST", "/v1/pools", {"name": "web", "subnet": "10.1.0.0/24"})
            headers = {"CNI-ContainerID": "c1", "CNI-IfName": "eth0", "CNI-Netns": f"/proc/{pod.pid}/ns/net"}
            assert ask_socket(server.socket, "POST", "/cni/v1/add", CONF, 10.0, **headers).status == 200
            wait_until(lambda: is_alive(server), 60, "it does not see the namespace of another user's process")
            assert server.stop() == 0
    finally:
        pod.kill()
        pod.wait()
    wait_until(lambda: "total" in server.trace.read_text(), 60, "strace has counted nothing")
    calls = set(re.findall(r"(\w+)$", server.trace.read_text(), re.MULTILINE)) - {"total", "syscall"} - OTHER_CALLS
    assert {"fdatasync", "accept4", "fallocate"} <= calls
    assert calls - allowed(unit["SystemCallFilter"]) == set()
