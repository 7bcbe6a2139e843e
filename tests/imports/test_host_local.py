"""What host-local keeps on a node's disk: files named after addresses, in the forms that its versions wrote."""

from __future__ import annotations

from typing import Any

import pytest

from ipamd.core.model import Pool
from ipamd.imports import host_local
from ipamd.imports.plan import BadSource, Plan
from tests.core.world import definition

RULE = "must be 1 to 256 of A-Z a-z 0-9 _ . -, the first a letter or digit"
GRANTED = "covered by no configuration and no pool, and go to pool"


def conf(name: str, *subnets: str, **ipam: Any) -> dict[str, Any]:
    ranges = [[{"subnet": subnet}] for subnet in subnets]
    return {
        "cniVersion": "1.0.0",
        "name": name,
        "type": "bridge",
        "ipam": {"type": "host-local", "ranges": ranges, **ipam},
    }


def read(files: dict[str, str], *confs: dict[str, Any], **rest: Any) -> Plan:
    return host_local.read({"pods": files}, confs, **rest)


def pools(plan: Plan) -> dict[str, str]:
    return {str(one.address): plan.pools[one.pool].pool for one in plan.findings}


def faults(networks: dict[str, dict[str, str]], *confs: Any) -> list[str]:
    with pytest.raises(BadSource) as caught:
        host_local.read(networks, confs)
    return [f"{one.place} {one.why}" for one in caught.value.faults]


@pytest.mark.parametrize(
    ("content", "ifname"),
    [("c1\r\neth0", "eth0"), ("c1\r\neth0\r\n", "eth0"), ("c1\neth0\n", "eth0"), ("c1", None), (" c1 \r\n", None)],
)
def test_a_file_says_container_and_perhaps_interface(content: str, ifname: str | None) -> None:
    (finding,) = read({"10.0.0.5": content, "lock": "", "last_reserved_ip.0": "10.0.0.5"}).findings
    assert (finding.container_id, finding.ifname, finding.cni_network) == ("c1", ifname, "pods")
    assert (finding.pod_ref, finding.node, finding.place) == ("_//c1", None, "pods/10.0.0.5")


def test_the_node_that_is_named_is_known() -> None:
    (finding,) = read({"10.0.0.5": "c1\r\neth0"}, node="east:n1", cluster="east").findings
    assert (finding.pod_ref, finding.node) == ("east:_/n1/c1", "east:n1")


def test_a_file_that_was_never_written_is_nobodys() -> None:
    plan = read({"10.0.0.5": "", "10.0.0.6": "c1\r\neth0"})
    assert pools(plan) == {"10.0.0.6": "10.0.0.0-24"}
    assert plan.warnings[0] == "pods/10.0.0.5 is empty: nobody has 10.0.0.5, and it is left out"


def test_a_configuration_says_which_pools_there_are() -> None:
    own = conf("pods", "10.0.0.0/16", "2001:db8::/64")
    plan = read({"10.0.7.5": "c1\r\neth0", "2001:db8::5": "c1\r\neth0"}, own)
    assert pools(plan) == {"10.0.7.5": "10.0.0.0-16", "2001:db8::5": "2001-db8---64"}
    assert plan.warnings == ()


def test_alternatives_of_one_entry_are_one_pool() -> None:
    own = conf("pods", ranges=[[{"subnet": "10.0.0.0/24"}, {"subnet": "10.0.1.0/24"}]])
    plan = read({"10.0.0.5": "c1", "10.0.1.5": "c2"}, own)
    assert set(pools(plan).values()) == {"10.0.0.0-24+10.0.1.0-24"}


def test_the_configuration_of_the_network_itself_comes_first() -> None:
    plan = read({"10.0.0.5": "c1"}, conf("others", "10.0.0.0/24"), conf("pods", "10.0.0.0/16"))
    assert pools(plan) == {"10.0.0.5": "10.0.0.0-16"}
    assert pools(read({"10.0.0.5": "c1"}, conf("others", "10.0.0.0/22"))) == {"10.0.0.5": "10.0.0.0-22"}


def test_a_list_of_plugins_and_the_old_flat_form_are_read() -> None:
    flat = {"type": "bridge", "ipam": {"type": "host-local", "subnet": "10.0.0.0/20"}}
    listed = {"cniVersion": "1.0.0", "name": "pods", "plugins": [flat, {"type": "portmap"}]}
    assert pools(read({"10.0.0.5": "c1"}, listed)) == {"10.0.0.5": "10.0.0.0-20"}


def test_a_space_of_a_configuration_is_the_pools() -> None:
    plan = read({"10.0.0.5": "c1"}, conf("pods", "10.0.0.0/24", space="east"))
    (request,) = plan.pools
    assert request.inline is not None
    assert (request.pool, request.inline.space) == ("east-10.0.0.0-24", "east")


def test_a_declared_pool_covers_what_no_configuration_does() -> None:
    there = [
        Pool(1, definition("wide", "10.0.0.0/8", allow_overlap=True), 0),
        Pool(2, definition("near", "10.0.0.0/20", allow_overlap=True), 0),
        Pool(3, definition("10.0.0.0-28", "10.0.0.0/28", inline=True), 0),
    ]
    plan = read({"10.0.0.5": "c1", "192.0.2.5": "c2"}, pools=there)
    assert pools(plan) == {"10.0.0.5": "near", "192.0.2.5": "192.0.2.0-24"}
    assert plan.pools[0].inline is None


def test_a_subnet_that_is_taken_for_granted_is_a_warning() -> None:
    plan = read({"10.0.0.5": "c1", "10.0.0.9": "c2", "2001:db8::5": "c1"})
    assert pools(plan) == {"10.0.0.5": "10.0.0.0-24", "10.0.0.9": "10.0.0.0-24", "2001:db8::5": "2001-db8---64"}
    assert plan.warnings == (
        f"pods: 2 addresses from 10.0.0.5 to 10.0.0.9 are {GRANTED} 10.0.0.0-24",
        f"pods: 2001:db8::5 is {GRANTED} 2001-db8---64",
    )


def test_who_holds_the_gateway_is_a_warning() -> None:
    (warning,) = read({"10.0.0.1": "c1"}, conf("pods", "10.0.0.0/24")).warnings
    assert warning.startswith("10.0.0.1 (pods/10.0.0.1) is the gateway of 10.0.0.0/24")


def test_an_address_of_two_networks_is_a_conflict() -> None:
    plan = host_local.read({"a": {"10.0.0.5": "c1\r\neth0"}, "b": {"10.0.0.5": "c2\r\neth0"}}, ())
    (conflict,) = plan.conflicts
    assert (conflict.place, str(conflict.address)) == ("b/10.0.0.5", "10.0.0.5")
    assert "a/10.0.0.5 says eth0 of _//c1, container c1" in conflict.why
    assert '"space"' in conflict.why


def test_every_fault_is_listed_with_its_place() -> None:
    assert faults(
        {
            "bad network": {"10.0.0.1": "c1"},
            "pods": {
                "10-pods.conflist": "{}",
                "10.0.0.2": "a b",
                "10.0.0.3": "c1\r\neth0\r\nmore",
                "10.0.0.4": "c1\r\na/b",
            },
        },
        conf("pods", "10.0.0.0/33"),
        7,
    ) == [
        "confs[0] (pods) would be refused: ipam.ranges[0][0].subnet: '10.0.0.0/33' has no prefix length between 0 and 32",
        "confs[1] is no JSON object",
        f"bad network cannot be imported: the network 'bad network' {RULE}",
        "pods/10-pods.conflist is not named after an address: '10-pods.conflist' is not an IP address",
        f"pods/10.0.0.2 cannot be imported: the container id 'a b' {RULE}",
        "pods/10.0.0.3 has 3 lines, not a container id and an interface",
        "pods/10.0.0.4 cannot be imported: the interface 'a/b' must have no '/', ':', white space or control character",
    ]


@pytest.mark.parametrize("networks", [{}, {"pods": {}}])
def test_an_empty_directory_is_told(networks: dict[str, dict[str, str]]) -> None:
    assert faults(networks) == ["the directory has no network with an address in it"]


def test_addresses_that_windows_wrote_are_read() -> None:
    assert [str(one.address) for one in read({"2001_db8__5": "c1"}).findings] == ["2001:db8::5"]
