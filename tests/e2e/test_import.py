"""The change-over: what the real host-local wrote is imported, and every container goes on; and how long large ones take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from demo.cni import CNI_BIN
from demo.server import BIN
from ipamctl.server import UnixConnection
from tests.support.dumps import whereabouts_dump
from tests.support.server import Server
from tests.support.wire import BOOT_ID

CONTAINERS = 500
ENTRIES = 10_000
ENDED = (2, 7)
"""Containers that the plugin itself asks for, and ends."""

BOUND_S = 10.0
PLUGIN = Path(__file__).resolve().parents[2] / "cli" / "ipamd_cni.py"


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Prints a figure where it is seen."""

    def print_it(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{text}\n")

    return print_it


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    directory = tmp_path / "server"
    directory.mkdir()
    with Server(directory) as running:
        yield running


def configuration(data_dir: Path, ipam_type: str) -> dict[str, Any]:
    ranges = [[{"subnet": "10.77.0.0/22"}], [{"subnet": "2001:db8:77::/64"}]]
    ipam = {"type": ipam_type, "dataDir": str(data_dir), "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
    return {"cniVersion": "1.0.0", "name": "pods", "type": "bridge", "ipam": ipam}


def spent_by(server: Server) -> float:
    """Seconds of processor time that a server and the programs run by this test have had so far."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    mine = os.times()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + mine.children_user + mine.children_system


def container(number: int) -> str:
    """An id as container runtimes give them."""
    return f"{number:064x}"


def host_local(verb: str, conf: dict[str, Any], number: int) -> list[str]:
    """A call of the real plugin; the addresses that it printed."""
    env = {"CNI_COMMAND": verb, "CNI_CONTAINERID": container(number), "CNI_IFNAME": "eth0"}
    env |= {"CNI_NETNS": "/run/netns/x", "CNI_PATH": str(CNI_BIN)}
    done = subprocess.run(
        [CNI_BIN / "host-local"], input=json.dumps(conf).encode(), env=env, capture_output=True, check=True, timeout=60
    )
    return [one["address"] for one in json.loads(done.stdout)["ips"]] if done.stdout else []


def plugin(server: Server, verb: str, conf: dict[str, Any], number: int) -> list[str]:
    """A call of ipamd's plugin, as a process."""
    env = {"CNI_COMMAND": verb, "CNI_CONTAINERID": container(number), "CNI_IFNAME": "eth0"}
    env |= {"CNI_NETNS": "/run/netns/x", "CNI_PATH": str(CNI_BIN), "IPAMD_CNI_ADDRESS": f"unix:{server.socket}"}
    done = subprocess.run(
        [sys.executable, PLUGIN], input=json.dumps(conf).encode(), env=env, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout
    return [one["address"] for one in json.loads(done.stdout)["ips"]] if done.stdout else []


@pytest.fixture
def calls(server: Server) -> Iterator[Calls]:
    with closing(UnixConnection(str(server.socket), 30.0)) as connection:
        yield Calls(connection)


class Calls:
    """CNI calls over one connection to the node socket: what the plugin sends, without its start."""

    def __init__(self, connection: UnixConnection) -> None:
        self._connection = connection

    def call(self, verb: str, conf: dict[str, Any], number: int, pod: str | None = None) -> list[str]:
        headers = {"CNI-ContainerID": container(number), "CNI-IfName": "eth0", "CNI-Netns": "/run/netns/x"}
        headers |= {"Ipamd-Boot-Id": BOOT_ID, "Ipamd-Started": str(time.clock_gettime_ns(time.CLOCK_BOOTTIME))}
        if pod is not None:
            headers["CNI-Args"] = f"K8S_POD_NAMESPACE=t;K8S_POD_NAME={pod}"
        self._connection.request("POST", f"/cni/v1/{verb.lower()}", json.dumps(conf), headers)
        with self._connection.getresponse() as response:
            body = response.read()
            assert response.status == 200, body
        return [one["address"] for one in json.loads(body)["ips"]] if body else []


def ctl(server: Server, *args: object) -> Any:
    done = subprocess.run(
        [BIN / "ipamctl", "--server", f"unix:{server.socket}", "-o", "json", *map(str, args)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.needs_plugins
@pytest.mark.timeout(1500)
def test_what_host_local_gave_goes_on_under_ipamd(
    server: Server, calls: Calls, tmp_path: Path, say: Callable[[str], None]
) -> None:
    data_dir = tmp_path / "networks"
    before, after = configuration(data_dir, "host-local"), configuration(data_dir, "ipamd")
    with ThreadPoolExecutor(4) as pool:
        had = dict(enumerate(pool.map(lambda number: host_local("ADD", before, number), range(CONTAINERS))))
    conf = tmp_path / "pods.conf"
    conf.write_text(json.dumps(before))

    began_s = time.monotonic()
    done = ctl(server, "import", "host-local", data_dir, "--conf", conf)
    took_s = time.monotonic() - began_s
    assert (done["made"], done["warnings"]) == (2 * CONTAINERS, [])
    assert ctl(server, "import", "host-local", data_dir, "--conf", conf)["kept"] == 2 * CONTAINERS
    assert ctl(server, "node", "list")["unclaimed"] == 2 * CONTAINERS

    began_s = time.monotonic()
    for number in range(CONTAINERS):
        match number % 5:
            case 0:  # the container ends
                assert calls.call("DEL", after, number) == []
            case 1:  # its runtime asks again, and says which pod it is
                assert calls.call("ADD", after, number, f"p{number}") == had[number]
            case 2:  # the same without a pod
                assert calls.call("ADD", after, number) == had[number]
            case 3:  # it is restarted: the old container ends, the new one takes what is free
                assert calls.call("DEL", after, number) == []
                assert not set(calls.call("ADD", after, CONTAINERS + number, f"p{number}")) & set(had[number])
            case 4:  # it is looked at
                previous = {"cniVersion": "1.0.0", "ips": [{"address": one} for one in had[number]]}
                calls.call("CHECK", {**after, "prevResult": previous}, number)
    for number in ENDED:
        assert plugin(server, "ADD", after, number) == had[number]
        assert plugin(server, "DEL", after, number) == []
    say(f"{CONTAINERS} containers: import {took_s:.2f} s, their calls {time.monotonic() - began_s:.2f} s")

    left = ctl(server, "reservation", "list")["items"]
    holders = {one["addresses"][0]: one["container_id"] for item in left for one in item["attachments"]}
    fifth = CONTAINERS // 5
    assert len(holders) == 2 * (4 * fifth - len(ENDED))
    for number in range(CONTAINERS):
        stays = number % 5 in (1, 2, 4) and number not in ENDED
        assert all((holders.get(one) == container(number)) is stays for one in had[number]), number
    assert ctl(server, "node", "list")["unclaimed"] == 0


@pytest.mark.needs_plugins
def test_without_a_configuration_the_first_call_brings_the_address_along(
    server: Server, calls: Calls, tmp_path: Path
) -> None:
    data_dir = tmp_path / "networks"
    before, after = configuration(data_dir, "host-local"), configuration(data_dir, "ipamd")
    had = {number: host_local("ADD", before, number) for number in range(4)}
    done = ctl(server, "import", "host-local", data_dir, "--node", server.name)
    assert [one["pool"] for one in done["pools"]] == ["10.77.0.0-24", "2001-db8-77---64"]
    assert len(done["warnings"]) == 2
    assert plugin(server, "ADD", after, 0) == had[0]
    assert plugin(server, "DEL", after, 1) == []
    assert calls.call("ADD", after, 2, "p2") == had[2]
    previous = {"cniVersion": "1.0.0", "ips": [{"address": one} for one in had[3]]}
    calls.call("CHECK", {**after, "prevResult": previous}, 3)
    assert plugin(server, "DEL", after, 0) == []


def test_a_large_dump_of_whereabouts_is_imported_soon_enough(
    server: Server, tmp_path: Path, say: Callable[[str], None]
) -> None:
    dump = tmp_path / "whereabouts.json"
    dump.write_text(json.dumps(whereabouts_dump(ENTRIES)))
    size_mib = dump.stat().st_size / 2**20
    began_s, spent_s = time.monotonic(), spent_by(server)
    done = ctl(server, "import", "whereabouts", dump)
    took_s, spent_s = time.monotonic() - began_s, spent_by(server) - spent_s
    assert (done["made"], done["warnings"]) == (ENTRIES, [])
    began_s = time.monotonic()
    again = ctl(server, "import", "whereabouts", dump)
    say(
        f"{ENTRIES} entries ({size_mib:.1f} MiB): {took_s:.2f} s ({spent_s:.2f} s of work), again {time.monotonic() - began_s:.2f} s"
    )
    assert (again["made"], again["kept"]) == (0, ENTRIES)
    assert spent_s < BOUND_S, "time on a processor, which others on this machine do not lengthen"
