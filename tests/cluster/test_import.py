"""What host-local left is imported into three members: the row C07; and all of them go on from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import Cluster, MemberServer
from tests.support.dialects import section

SUBNET = "10.0.0.0/24"
POOL = "10.0.0.0-24"
LEFT = {"10.0.0.5": b"c1\r\neth0", "10.0.0.6": b"c2\neth1\n"}


@pytest.fixture
def imported(three: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    """The three, with what lay in a directory of host-local."""
    network = tmp_path / "networks" / "net"
    network.mkdir(parents=True)
    for name, content in {**LEFT, "last_reserved_ip.0": b"10.0.0.6", "lock": b""}.items():
        (network / name).write_bytes(content)
    done = three.ctl("import", "host-local", str(network.parent), server="n2")
    assert done.returncode == 0, done.stderr
    yield three
    three.ctl("pool", "delete", POOL, "--force")


def call(member: MemberServer, verb: str, container: str, ifname: str, **more: Any) -> int:
    """The code of a call with the configuration that host-local had."""
    conf = {**section(subnet=SUBNET), **more}
    headers: dict[str, Any] = {"CNI-ContainerID": container, "CNI-IfName": ifname, "CNI-Netns": "/run/netns/x"}
    return member.ask("POST", f"/cni/v1/{verb}", conf, **headers).code


def test_c07_a_carriage_return_is_no_part_of_a_name_and_both_are_freed(imported: Cluster) -> None:
    listed = imported.level(POOL)
    assert [(address.partition("/")[0], ifname, container) for address, _, ifname, container in listed] == [
        ("10.0.0.5", "eth0", "c1"),
        ("10.0.0.6", "eth1", "c2"),
    ]
    assert [text for row in listed for text in row if text and text.split() != [text]] == []
    assert call(imported["n1"], "del", "c1", "eth0") == 0
    assert [row[0].partition("/")[0] for row in imported["n3"].listed(POOL, stale=False)] == ["10.0.0.6"]
    assert call(imported["n3"], "del", "c2", "eth1") == 0
    assert imported.level(POOL) == []


def test_a_del_of_another_interface_frees_nothing(imported: Cluster) -> None:
    assert call(imported["n1"], "del", "c1", "eth1") == 0
    assert call(imported["n2"], "del", "c2", "eth0") == 0
    assert len(imported.level(POOL)) == 2


def test_the_first_member_that_checks_says_where_it_runs_and_nobody_else_gets_it(imported: Cluster) -> None:
    previous = {"ips": [{"address": "10.0.0.5/24", "gateway": "10.0.0.1"}]}
    checked = [call(member, "check", "c1", "eth0", prevResult=previous) for member in imported]
    assert checked == [0, 113, 113]  # by then it is known to run on the first one's node
    given = [call(member, "add", f"new{number}", "eth0") for number, member in enumerate(imported)]
    assert given == [0, 0, 0]
    assert len({row[0] for row in imported.level(POOL)}) == 5
