"""A CNI call as a value: what each verb reads, what it does without, and who counts where several speak."""

from __future__ import annotations

import pytest

from ipamd.cni.call import AddCall, CheckCall, DelCall, GcCall, StatusCall
from ipamd.core.addresses import parse_address
from ipamd.core.commands import CallStart
from tests.support.cni_calls import DROP, conf, ipam, read, refused


def test_an_add_has_all_that_the_server_needs() -> None:
    call = read("add")
    assert isinstance(call, AddCall)
    assert (call.version, call.cni_network, call.node) == ("1.1.0", "net", "n1")
    assert (call.container_id, call.ifname, call.netns) == ("c1", "eth0", "/var/run/netns/x")
    assert (call.pod_ref, call.pod_uid, call.pools, call.addresses) == ("t/a", "u-1", ("p",), ())
    assert call.start == CallStart("0e1d6f6a-1111-4222-8333-444455556666", 123456789)
    assert call.deadline_ms == 9990
    assert not call.one_of_family


def test_a_spooled_call_says_so() -> None:
    call = read("del", headers={"Ipamd-Spooled": "true"})
    assert call.start is not None
    assert call.start.spooled


@pytest.mark.parametrize("missing", ["Ipamd-Boot-Id", "Ipamd-Started"])
def test_half_a_start_is_none(missing: str) -> None:
    assert read("add", headers={missing: DROP}).start is None


def test_without_a_deadline_there_is_none() -> None:
    assert read("add", headers={"Ipamd-Deadline-Ms": DROP}).deadline_ms is None


def test_the_callers_node_comes_before_the_servers() -> None:
    assert read("add", headers={"Ipamd-Node": "n7"}).node == "n7"


def test_a_cluster_stands_before_node_and_pod() -> None:
    call = read("add", cluster="east")
    assert isinstance(call, AddCall)
    assert (call.node, call.pod_ref) == ("east:n1", "east:t/a")


def test_the_callers_cluster_comes_before_the_servers() -> None:
    assert read("del", headers={"Ipamd-Cluster": "west"}, cluster="east").node == "west:n1"


@pytest.mark.parametrize(
    "args", ["", "K8S_POD_NAME=web", "K8S_POD_NAMESPACE=t", "K8S_POD_NAME=;K8S_POD_NAMESPACE=t", DROP]
)
def test_without_pod_data_the_container_is_the_owner(args: str) -> None:
    call = read("add", headers={"CNI-Args": args}, cluster="east")
    assert isinstance(call, AddCall)
    assert call.pod_ref == "east:_/n1/c1"


def test_a_del_reads_nothing_that_it_can_do_without() -> None:
    headers = {"CNI-Netns": DROP, "CNI-Args": "=x;FOO"}
    for config in (
        conf(ipam={"pool": 17, "range": "x/y"}, prevResult="x", args=[], runtimeConfig=3),
        conf(ipam=DROP),
        b'{"name":"net","name":"net","deep":' + b"[" * 40 + b"]" * 40 + b"}",
    ):
        call = read("del", config, headers)
        assert isinstance(call, DelCall)
        assert (call.cni_network, call.container_id, call.ifname) == ("net", "c1", "eth0")


@pytest.mark.parametrize(
    ("config", "headers", "code"),
    [
        (None, {"CNI-ContainerID": DROP}, 4),
        (None, {"CNI-IfName": ""}, 4),
        (None, {"CNI-ContainerID": "a b"}, 4),
        (b"{bad", {}, 6),
        (b"", {}, 6),
        (b"[1]", {}, 6),
        (conf(name=DROP), {}, 7),
        (conf(name="a/b"), {}, 7),
        (conf(cniVersion="9.9.9"), {}, 1),
    ],
)
def test_a_del_is_refused_where_it_cannot_know_what_to_free(config: object, headers: dict[str, str], code: int) -> None:
    assert refused("del", config, headers).code == code


def test_a_check_compares_with_the_previous_result() -> None:
    previous = {"ips": [{"address": "10.0.0.1/24"}, {"address": "2001:DB8::1/64"}], "routes": 17}
    call = read("check", conf(prevResult=previous), {"CNI-Args": "=x"})
    assert isinstance(call, CheckCall)
    assert call.previous == {parse_address("10.0.0.1"), parse_address("2001:db8::1")}
    assert call.pools == ("p",)


@pytest.mark.parametrize("previous", [DROP, None, "x", {"ips": 1}, {"ips": [1]}, {"ips": [{"address": "x"}]}])
def test_a_check_without_a_readable_previous_result_has_code_7(previous: object) -> None:
    assert refused("check", conf(prevResult=previous)).code == 7


def test_gc_takes_the_union_of_both_lists() -> None:
    lists = {
        "cni.dev/valid-attachments": [{"containerID": "c1", "ifname": "eth0"}],
        "cni.dev/attachments": [{"containerID": "c2", "ifname": "eth0"}],
    }
    call = read("gc", conf(**lists, ipam=DROP))
    assert isinstance(call, GcCall)
    assert call.valid == {("c1", "eth0"), ("c2", "eth0")}


@pytest.mark.parametrize("empty", [[], None])
@pytest.mark.parametrize("key", ["cni.dev/valid-attachments", "cni.dev/attachments"])
def test_an_empty_list_means_none(key: str, empty: object) -> None:
    call = read("gc", conf(**{key: empty}))
    assert isinstance(call, GcCall)
    assert call.valid == frozenset()


@pytest.mark.parametrize(
    "lists",
    [
        {},
        {"cni.dev/valid-attachments": {}},
        {"cni.dev/valid-attachments": ["c1"]},
        {"cni.dev/valid-attachments": [None]},
        {"cni.dev/valid-attachments": [{"containerID": "c1"}]},
        {"cni.dev/valid-attachments": [{"containerID": 1, "ifname": "eth0"}]},
        {"cni.dev/valid-attachments": [], "cni.dev/attachments": "x"},
    ],
)
def test_gc_without_a_readable_list_has_code_7(lists: dict[str, object]) -> None:
    assert refused("gc", conf(**lists)).code == 7


@pytest.mark.parametrize("verb", ["gc", "status"])
def test_gc_and_status_need_no_container(verb: str) -> None:
    headers = {"CNI-ContainerID": DROP, "CNI-Netns": DROP, "CNI-IfName": DROP, "CNI-Args": "=x"}
    assert read(verb, conf(**{"cni.dev/valid-attachments": []}), headers).node == "n1"


def test_status_names_the_pools_that_it_is_asked_about() -> None:
    call = read("status", ipam(pool=["p", "q"]))
    assert isinstance(call, StatusCall)
    assert call.pools == ("p", "q")


@pytest.mark.parametrize("verb", ["add", "check", "status"])
def test_those_who_allocate_need_an_ipam_section(verb: str) -> None:
    assert refused(verb, conf(ipam=DROP, prevResult={})).code == 7


def test_variables_are_checked_before_the_body_and_the_name_before_the_version() -> None:
    assert refused("add", b"{bad", {"CNI-IfName": ".."}).code == 4
    assert refused("add", conf(name="", cniVersion="9.9.9")).code == 7
    assert refused("add", conf(cniVersion="9.9.9", ipam=DROP)).code == 1


@pytest.mark.parametrize(
    ("config", "version"),
    [
        (conf(cniVersion="0.3.1", ipam=DROP), "0.3.1"),
        (conf(cniVersion="9.9.9"), "9.9.9"),
        (conf(cniVersion=DROP, ipam=DROP), "0.1.0"),
        (conf(cniVersion=17), "1.1.0"),
        (conf(cniVersion='x"y'), "1.1.0"),
        (b"{bad", "1.1.0"),
    ],
)
def test_an_error_has_the_version_of_the_configuration(config: object, version: str) -> None:
    assert refused("add", config).version == version


def test_an_error_about_a_variable_has_it_too() -> None:
    assert refused("add", conf(cniVersion="0.4.0"), {"CNI-IfName": DROP}).version == "0.4.0"


def test_the_oldest_versions_have_room_for_one_address_of_a_family() -> None:
    call = read("add", conf(cniVersion="0.2.0"))
    assert isinstance(call, AddCall)
    assert call.one_of_family
    section = {"type": "ipamd", "pool": "p", "addresses": [{"address": "10.0.0.1/8"}, {"address": "10.0.0.2/8"}]}
    assert refused("add", conf(cniVersion="0.2.0", ipam=section)).code == 7
    assert read("add", conf(cniVersion="0.3.0", ipam=section)).version == "0.3.0"
