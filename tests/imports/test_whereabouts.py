"""What whereabouts keeps in Kubernetes: every form that its versions wrote is read, whatever is wrong is told."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamd.core.addresses import Address, parse_address
from ipamd.imports import whereabouts
from ipamd.imports.plan import BadSource, Plan

GROUP = "whereabouts.cni.cncf.io/v1alpha1"
KINDS = ("IPPool", "OverlappingRangeIPReservation", "NodeSlicePool", "NetworkAttachmentDefinition")
OFFSET = "IPPool kube-system/10.0.0.0-24 offset"


def named(kind: str, name: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": GROUP, "kind": kind, "metadata": {"name": name, "namespace": "kube-system"}, **rest}


def pool(subnet: str, allocations: dict[str, Any], name: str | None = None) -> dict[str, Any]:
    own = subnet.replace(":", "-").replace("/", "-")
    return named("IPPool", name or own, spec={"range": subnet, "allocations": allocations})


def given_to(pod: str = "t/a", container: str = "c1", ifname: str | None = "net1") -> dict[str, str]:
    return {"id": container, "podref": pod, **({} if ifname is None else {"ifname": ifname})}


def reserved(name: str, pod: str = "t/a", **rest: str) -> dict[str, Any]:
    return named("OverlappingRangeIPReservation", name, spec={"podref": pod, **rest})


def definition(name: str, ipam: dict[str, Any], **conf: Any) -> dict[str, Any]:
    config = {"cniVersion": "1.0.0", "type": "macvlan", "ipam": {"type": "whereabouts", **ipam}, **conf}
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"config": json.dumps(config)},
    }


def read(*items: dict[str, Any], cluster: str | None = None) -> Plan:
    return whereabouts.read({"apiVersion": "v1", "kind": "List", "items": list(items)}, cluster)


def held(plan: Plan) -> dict[str, tuple[str, str | None, str | None]]:
    return {str(one.address): (one.pod_ref, one.ifname, one.container_id) for one in plan.findings}


def faults(*items: Any) -> list[str]:
    with pytest.raises(BadSource) as caught:
        read(*items)
    return [f"{one.place} {one.why}" for one in caught.value.faults]


def conflicts(plan: Plan) -> list[str]:
    return [f"{one.place}: {one.address} {one.why}" for one in plan.conflicts]


# Pools and offsets


def test_an_offset_counts_from_the_address_of_the_range() -> None:
    plan = read(pool("10.0.0.0/24", {"5": given_to(), "17": given_to("t/b", "c2")}))
    assert held(plan) == {"10.0.0.5": ("t/a", "net1", "c1"), "10.0.0.17": ("t/b", "net1", "c2")}
    (request,) = plan.pools
    assert request.pool == "10.0.0.0-24"
    assert plan.findings[0].place == "IPPool kube-system/10.0.0.0-24 offset 5"
    assert (plan.findings[0].node, plan.findings[0].cni_network) == (None, None)


def test_host_bits_of_an_old_range_count() -> None:
    plan = read(pool("192.168.2.225/28", {"2": given_to()}))
    assert list(held(plan)) == ["192.168.2.227"]
    assert plan.pools[0].pool == "192.168.2.224-28"


def test_offsets_that_overflowed_are_what_they_stood_for() -> None:
    plan = read(pool("2001:db8:f48::/64", {"-3844666706890850303": given_to(), str(2**64 - 1): given_to("t/b", "c2")}))
    assert set(held(plan)) == {"2001:db8:f48:0:caa5::1", "2001:db8:f48:0:ffff:ffff:ffff:ffff"}


@given(st.integers(0, 2**64 - 1), st.booleans())
def test_any_offset_of_64_bits_is_read_signed_or_not(offset: int, signed: bool) -> None:
    text = str(offset - 2**64) if signed and offset >= 2**63 else str(offset)
    (finding,) = read(pool("2001:db8::/64", {text: given_to()})).findings
    assert finding.address == Address(6, parse_address("2001:db8::").value + offset)


@pytest.mark.parametrize("offset", ["x", "", "1.0", "0x1", "1e3", "--1", str(2**64), str(-(2**63) - 1), "٣", "1" * 400])
def test_what_is_no_offset_is_told(offset: str) -> None:
    (fault,) = faults(pool("10.0.0.0/24", {offset: given_to()}))
    assert fault.endswith("is no number of 64 bits")


def test_an_offset_outside_the_range_is_a_conflict() -> None:
    plan = read(pool("10.0.0.0/28", {"99": given_to(), "-1": given_to("t/b", "c2"), "1": given_to("t/c", "c3")}))
    assert conflicts(plan) == [
        "IPPool kube-system/10.0.0.0-28 offset 99: 10.0.0.99 lies outside 10.0.0.0/28",
        "IPPool kube-system/10.0.0.0-28 offset -1: None lies outside 10.0.0.0/28",
    ]
    assert list(held(plan)) == ["10.0.0.1"]


def test_a_pool_without_allocations_is_a_pool() -> None:
    plan = read(pool("10.0.0.0/24", {}))
    assert ([one.pool for one in plan.pools], plan.findings) == (["10.0.0.0-24"], ())


# What old versions left out


def test_what_is_missing_is_open() -> None:
    plan = read(
        pool(
            "10.0.0.0/24",
            {"1": given_to(ifname=None), "2": {"id": "c2", "podref": ""}, "3": {"id": "c3"}, "4": given_to("t/d", "")},
        )
    )
    assert held(plan) == {
        "10.0.0.1": ("t/a", None, "c1"),
        "10.0.0.2": ("_//c2", None, "c2"),
        "10.0.0.3": ("_//c3", None, "c3"),
        "10.0.0.4": ("t/d", "net1", None),
    }


def test_who_has_neither_pod_nor_container_is_told() -> None:
    (fault,) = faults(pool("10.0.0.0/24", {"1": {"id": "", "podref": ""}}))
    assert fault.endswith("it has neither id nor podref: nobody could ever claim it")


def test_of_several_clusters_each_pod_bears_its_own() -> None:
    plan = read(pool("10.0.0.0/24", {"1": given_to(), "2": {"id": "c2"}}), cluster="east")
    assert {one.pod_ref for one in plan.findings} == {"east:t/a", "east:_//c2"}


# Networks, spaces and slices


def test_a_named_network_is_a_space() -> None:
    plan = read(pool("10.0.0.0/24", {"1": given_to()}, "blue-net-10.0.0.0-24"))
    (request,) = plan.pools
    assert request.inline is not None
    assert (request.pool, request.inline.space) == ("blue-net-10.0.0.0-24", "blue-net")
    assert "network_name blue-net" in plan.warnings[0]


def test_equal_addresses_of_two_networks_do_not_meet() -> None:
    plan = read(
        pool("10.0.0.0/24", {"1": given_to()}), pool("10.0.0.0/24", {"1": given_to("t/b", "c2")}, "blue-10.0.0.0-24")
    )
    assert (len(plan.pools), len(plan.findings), plan.conflicts) == (2, 2, ())


def test_a_pool_with_another_name_is_of_no_network() -> None:
    plan = read(pool("10.0.0.0/24", {"1": given_to()}, "whatever"))
    assert plan.pools[0].pool == "10.0.0.0-24"
    assert plan.warnings == ("IPPool kube-system/whatever is not named after its range: taken as of no network",)


@pytest.mark.parametrize(
    ("slices", "pools", "space"), [("conf-name", "n1-10.0.1.0-24", "default"), ("blue", "blue-n1-10.0.1.0-24", "blue")]
)
def test_a_slice_belongs_to_the_whole_range_and_to_its_node(slices: str, pools: str, space: str) -> None:
    allocations = [{"nodeName": "n1", "sliceRange": "10.0.1.0/24"}, {"nodeName": "", "sliceRange": "10.0.2.0/24"}]
    whole = named(
        "NodeSlicePool",
        slices,
        spec={"range": "10.0.0.0/16", "sliceSize": "/24"},
        status={"allocations": allocations},
    )
    plan = read(whole, pool("10.0.1.0/24", {"7": given_to()}, pools))
    (request,), (finding,) = plan.pools, plan.findings
    assert request.inline is not None
    assert (str(request.inline.subnets[0]), request.inline.space) == ("10.0.0.0/16", space)
    assert (str(finding.address), finding.node) == ("10.0.1.7", "n1")
    assert plan.warnings == ()


def test_a_slice_that_is_not_whole_is_told() -> None:
    broken = named("NodeSlicePool", "s", spec={"range": "10.0.0.0/16"}, status={"allocations": [{"nodeName": "n1"}, 7]})
    assert [fault.rpartition(" has ")[0] for fault in faults(pool("10.0.0.0/24", {}), broken)] == [
        "NodeSlicePool kube-system/s allocation 0",
        "NodeSlicePool kube-system/s allocation 1",
    ]


# Configurations


def test_a_configuration_that_overlaps_with_nothing_has_a_space_of_its_own() -> None:
    alone = definition("storage", {"range": "10.0.0.0/24", "enable_overlapping_ranges": False})
    plan = read(alone, pool("10.0.0.0/24", {"1": given_to()}))
    (request,) = plan.pools
    assert request.inline is not None
    assert (request.pool, request.inline.space) == ("only-10.0.0.0-24", "only-10.0.0.0-24")


def test_limits_of_a_configuration_are_held_against_who_has_what() -> None:
    conf = definition(
        "storage",
        {"range": "10.0.0.0/24", "gateway": "10.0.0.1", "range_end": "10.0.0.99", "exclude": ["10.0.0.8/30"]},
    )
    found = {"1": given_to(), "9": given_to("t/b", "c2"), "200": given_to("t/c", "c3"), "50": given_to("t/d", "c4")}
    assert read(conf, pool("10.0.0.0/24", found)).warnings == (
        "10.0.0.1 of t/a is the gateway of 10.0.0.0/24: the pod keeps it until it lets go",
        "10.0.0.9 of t/b is excluded: the pod keeps it until it lets go",
        "10.0.0.200 of t/c lies outside 10.0.0.1 to 10.0.0.99: the pod keeps it until it lets go",
    )


def test_a_configuration_that_an_add_would_refuse_is_told() -> None:
    (fault,) = faults(pool("10.0.0.0/24", {}), definition("bad", {"range": "10.0.0.0/24", "range_start": "10.1.0.1"}))
    assert fault.startswith("NetworkAttachmentDefinition default/bad would be refused: ")
    assert "10.1.0.1" in fault


# The two kinds


def test_a_reservation_says_what_its_pool_does_not() -> None:
    plan = read(
        pool("10.0.0.0/24", {"1": {"id": "c1"}, "2": given_to("t/b", "c2", None)}),
        reserved("10.0.0.1", "t/a", ifname="net1"),
        reserved("10.0.0.2", "t/b", ifname="net2"),
    )
    assert held(plan) == {"10.0.0.1": ("t/a", "net1", "c1"), "10.0.0.2": ("t/b", "net2", "c2")}
    assert (plan.conflicts, plan.warnings) == ((), ())


def test_a_reservation_for_another_pod_or_interface_is_a_conflict() -> None:
    plan = read(
        pool("10.0.0.0/24", {"1": given_to(), "2": given_to("t/b", "c2")}),
        reserved("10.0.0.1", "t/x", ifname="net1"),
        reserved("10.0.0.2", "t/b", ifname="net9"),
    )
    place = "by OverlappingRangeIPReservation kube-system/10.0.0."
    assert conflicts(plan) == [
        "IPPool kube-system/10.0.0.0-24 offset 1: 10.0.0.1 of net1 of t/a, container c1 is reserved for t/x "
        + place
        + "1",
        "IPPool kube-system/10.0.0.0-24 offset 2: 10.0.0.2 of net1 of t/b, container c2 is reserved for its net9 "
        + place
        + "2",
    ]


def test_a_reservation_that_no_pool_has_given_is_kept_for_its_pod() -> None:
    plan = read(
        pool("10.0.0.0/24", {}), reserved("10.0.0.1"), reserved("10.0.0.2", "t/b", containerid="c2", ifname="net1")
    )
    assert held(plan) == {"10.0.0.1": ("t/a", None, None), "10.0.0.2": ("t/b", "net1", "c2")}
    assert len(plan.warnings) == 2


def test_a_reservation_outside_all_pools_is_a_conflict() -> None:
    (conflict,) = conflicts(read(pool("10.0.0.0/24", {}), reserved("10.9.0.1")))
    assert conflict.startswith(
        "OverlappingRangeIPReservation kube-system/10.9.0.1: 10.9.0.1 is reserved, and no IPPool"
    )


@pytest.mark.parametrize(
    ("subnet", "label", "name"),
    [
        ("2001:db8::/64", "", "2001-db8--1"),
        ("2001:db8::/64", "abc", "abc-2001-db8--1"),
        ("2001:db8::/64", "a.b-c", "a.b-c-2001-db8--1"),
        ("10.0.0.0/24", "blue", "blue-10.0.0.1"),
    ],
)
def test_the_name_of_a_reservation_is_read_with_what_the_pools_say(subnet: str, label: str, name: str) -> None:
    own = subnet.replace(":", "-").replace("/", "-")
    plan = read(pool(subnet, {"1": given_to()}, f"{label}-{own}" if label else own), reserved(name, ifname="net1"))
    assert not plan.conflicts
    assert not any("reserv" in one for one in plan.warnings)


def test_some_addresses_without_reservation_are_a_warning_all_of_them_are_none() -> None:
    some = {"1": given_to(), "2": given_to("t/b", "c2")}
    assert read(pool("10.0.0.0/24", some)).warnings == ()
    (warning,) = read(pool("10.0.0.0/24", some), reserved("10.0.0.1", ifname="net1")).warnings
    assert warning == "IPPool kube-system/10.0.0.0-24 gave 10.0.0.2 without a reservation over all ranges"


# What contradicts itself, or is something else


def test_one_address_of_two_pods_is_a_conflict_and_twice_the_same_is_none() -> None:
    wide, narrow = pool("10.0.0.0/16", {"5": given_to()}), pool("10.0.0.0/24", {"5": given_to()})
    assert len(read(wide, narrow).findings) == 1
    (conflict,) = conflicts(read(wide, pool("10.0.0.0/24", {"5": given_to("t/b", "c2")})))
    assert "is given away twice: IPPool kube-system/10.0.0.0-16 offset 5 says net1 of t/a, container c1" in conflict
    assert "enable_overlapping_ranges" in conflict


def test_one_interface_in_two_containers_is_a_conflict() -> None:
    (conflict,) = conflicts(read(pool("10.0.0.0/24", {"5": given_to(), "6": given_to(container="c2")})))
    assert conflict.startswith("IPPool kube-system/10.0.0.0-24 offset 6: 10.0.0.6 of net1 of t/a, container c2 is the")


def test_every_fault_is_listed_with_its_place() -> None:
    assert faults(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "x"}},
        7,
        {"kind": "IPPool", "apiVersion": GROUP},
        {"kind": "IPPool", "apiVersion": "ipam.cluster.x-k8s.io/v1", "metadata": {"name": "p"}},
        named("IPPool", "a"),
        named("IPPool", "b", spec={"range": "10.0.0.0", "allocations": {}}),
        named("IPPool", "c", spec={"range": "10.0.0.0/24"}),
        named("OverlappingRangeIPReservation", "no-address", spec={"podref": "t/a"}),
        reserved("10.0.0.1", "no slash"),
        pool("10.0.0.0/24", {"1": given_to("a/b/c"), "2": given_to(ifname="too long for a name"), "3": {"id": 7}}),
    ) == [
        f"items[0] is of kind 'Pod', not one of {', '.join(KINDS)}",
        "items[1] is no object",
        "items[2] is a IPPool without metadata.name",
        "items[3] is a IPPool of API group 'ipam.cluster.x-k8s.io', not of whereabouts.cni.cncf.io",
        "IPPool kube-system/a has no spec: is it cut short?",
        "IPPool kube-system/a has no spec.range: '' has no prefix length",
        "IPPool kube-system/b has no spec.range: '10.0.0.0' has no prefix length",
        "IPPool kube-system/c has no spec.allocations: is it cut short?",
        f"{OFFSET} 1 cannot be imported: name in podref 'b/c' must have no '/', ':' or control character",
        f"{OFFSET} 2 cannot be imported: ifname 'too long for a name' must have 1 to 15 bytes",
        "IPPool kube-system/10.0.0.0-24 offset 3 has an id, a podref or an ifname that is no text",
        "OverlappingRangeIPReservation kube-system/no-address is not named after an address",
        "OverlappingRangeIPReservation kube-system/10.0.0.1 cannot be imported: podref 'no slash' must be NAMESPACE/NAME",
    ]


@pytest.mark.parametrize(
    "document", [{}, {"kind": "List"}, {"kind": "List", "items": []}, {"kind": "IPPoolList", "items": {}}, {"kind": 7}]
)
def test_a_document_of_another_kind_is_told(document: dict[str, Any]) -> None:
    with pytest.raises(BadSource):
        whereabouts.read(document)


def test_the_list_of_one_kind_and_a_single_object_are_read_too() -> None:
    plain = {key: value for key, value in pool("10.0.0.0/24", {"1": given_to()}).items() if key != "kind"}
    assert len(whereabouts.read({"kind": "IPPoolList", "items": [plain]}).findings) == 1
    assert len(whereabouts.read(pool("10.0.0.0/24", {"1": given_to()})).findings) == 1


def test_allocations_are_ordered_by_their_offset() -> None:
    plan = read(pool("10.0.0.0/24", {str(at): given_to(f"t/p{at}", f"c{at}") for at in (10, 9, 100, 1)}))
    assert list(held(plan)) == ["10.0.0.1", "10.0.0.9", "10.0.0.10", "10.0.0.100"]


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    json_values, json_values, json_values, st.sampled_from(["IPPool", "OverlappingRangeIPReservation", "NodeSlicePool"])
)
def test_anything_in_an_object_is_read_or_told(spec: Any, status: Any, allocation: Any, kind: str) -> None:
    items = [
        named(kind, "10.0.0.0-24", spec=spec, status=status),
        named(kind, "10.0.0.5", spec={"range": "10.0.0.0/24", "allocations": {"1": allocation}, "podref": allocation}),
        pool("10.0.0.0/24", {"5": allocation}),
    ]
    with contextlib.suppress(BadSource):
        assert all(str(one.address).startswith("10.0.0.") for one in read(*items).findings)
