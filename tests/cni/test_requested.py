"""Asking for addresses or a pool: the order of strength, and the codes of what cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from ipamd.cni.call import AddCall
from tests.support.cni_calls import conf, ipam, read, refused

ARGS = "K8S_POD_NAMESPACE=t;K8S_POD_NAME=a;IP="
ANNOTATIONS = "io.kubernetes.cri.pod-annotations"


def asked(config: dict[str, Any], ip: str = "") -> list[str]:
    call = read("add", config, {"CNI-Args": ARGS + ip})
    assert isinstance(call, AddCall)
    return [str(address) for address in call.addresses]


def annotated(annotations: object, **runtime: object) -> dict[str, Any]:
    return {**ipam(pod_annotations=True), "runtimeConfig": {ANNOTATIONS: annotations, **runtime}}


def test_the_strongest_way_counts_alone() -> None:
    note = {"ipamd.io/addresses.eth0": "10.0.0.4"}
    weakest = annotated(note)
    assert asked(weakest) == ["10.0.0.4"]
    assert asked(weakest, "10.0.0.3") == ["10.0.0.3"]
    assert asked({**weakest, "args": {"cni": {"ips": ["10.0.0.2/24"]}}}, "10.0.0.3") == ["10.0.0.2"]
    assert asked({**annotated(note, ips=["10.0.0.1"]), "args": {"cni": {"ips": ["bogus"]}}}, "bogus") == ["10.0.0.1"]


@pytest.mark.parametrize("nothing", [None, []])
def test_a_null_or_empty_list_asks_for_nothing(nothing: object) -> None:
    assert asked(conf(runtimeConfig={"ips": nothing}, args={"cni": {"ips": nothing}}), "10.0.0.3") == ["10.0.0.3"]


def test_a_list_asks_for_several_each_once_without_prefix() -> None:
    assert asked(conf(), "2001:DB8::55, 192.0.2.055/8,192.0.2.55") == ["2001:db8::55", "192.0.2.55"]


@pytest.mark.parametrize("ip", ["bogus", "10.0.0.1,", "10.0.0.1/33", "::ffff:10.0.0.1", "10.0.0"])
def test_unreadable_arguments_have_code_4(ip: str) -> None:
    assert refused("add", headers={"CNI-Args": ARGS + ip}).code == 4


@pytest.mark.parametrize(
    "config",
    [
        conf(runtimeConfig={"ips": ["bogus"]}),
        conf(runtimeConfig={"ips": "10.0.0.1"}),
        conf(runtimeConfig={"ips": [17]}),
        conf(runtimeConfig=[]),
        conf(args={"cni": {"ips": ["10.0.0.1/x"]}}),
        conf(args={"cni": []}),
        conf(args="x"),
        annotated({"ipamd.io/addresses.eth0": "bogus"}),
        annotated({"ipamd.io/addresses.eth0": 17}),
        annotated({"ipamd.io/pool": "a/b"}),
        annotated({"ipamd.io/pool": 17}),
        annotated("x"),
        ipam(pod_annotations="yes"),
    ],
)
def test_an_unreadable_configuration_has_code_7(config: dict[str, Any]) -> None:
    assert refused("add", config).code == 7


def test_annotations_need_the_operators_leave() -> None:
    config = conf(runtimeConfig={ANNOTATIONS: {"ipamd.io/addresses.eth0": "10.0.0.4", "ipamd.io/pool": "q"}})
    call = read("add", config)
    assert isinstance(call, AddCall)
    assert (call.addresses, call.pools) == ((), ("p",))


def test_an_annotation_is_for_its_interface_alone() -> None:
    assert asked(annotated({"ipamd.io/addresses.eth1": "10.0.0.4", "other.test/x": "y"})) == []


@pytest.mark.parametrize("annotations", [None, {}, {"ipamd.io/pool": ""}, {"ipamd.io/pool": None}])
def test_annotations_may_be_silent(annotations: object) -> None:
    call = read("add", annotated(annotations))
    assert isinstance(call, AddCall)
    assert call.pools == ("p",)


@pytest.mark.parametrize(("pool", "pools"), [("p", ("q",)), (["p"], ("q",)), (["p", "r"], ("p", "r"))])
def test_an_annotated_pool_wins_over_a_single_one(pool: object, pools: tuple[str, ...]) -> None:
    config = {**ipam(pool=pool, pod_annotations=True), "runtimeConfig": {ANNOTATIONS: {"ipamd.io/pool": "q"}}}
    call = read("add", config)
    assert isinstance(call, AddCall)
    assert call.pools == pools


def test_a_long_value_does_not_make_a_long_sentence() -> None:
    assert len(refused("add", conf(runtimeConfig={"ips": ["1" * 100_000]})).msg) == 1000
