"""Headers that stand for the environment: how they are decoded, and what is said of those that are wrong."""

from __future__ import annotations

import pytest

from ipamd.cni.call import AddCall
from tests.support.cni_calls import DROP, read, refused


def test_values_are_percent_decoded() -> None:
    headers = {"CNI-Netns": "/run/%C3%A4%20b%25", "CNI-Args": "K8S_POD_NAMESPACE=t;K8S_POD_NAME=caf%C3%A9"}
    call = read("add", headers=headers)
    assert isinstance(call, AddCall)
    assert (call.netns, call.pod_ref) == ("/run/ä b%", "t/café")


def test_what_is_missing_is_named_together() -> None:
    error = refused("add", headers={"CNI-Netns": DROP, "CNI-IfName": DROP})
    assert error.code == 4
    assert "CNI_NETNS, CNI_IFNAME not set" in error.msg


def test_empty_is_told_apart_from_not_set() -> None:
    error = refused("add", headers={"CNI-ContainerID": "", "CNI-IfName": DROP})
    assert "CNI_IFNAME not set" in error.msg
    assert "CNI_CONTAINERID empty" in error.msg


@pytest.mark.parametrize("verb", ["add", "check"])
def test_a_namespace_is_needed(verb: str) -> None:
    for value in ("", DROP):
        error = refused(verb, headers={"CNI-Netns": value})
        assert error.code == 4
        assert "CNI_NETNS" in error.msg


@pytest.mark.parametrize(
    ("header", "value", "word"),
    [
        ("CNI-ContainerID", "-x", "CNI_CONTAINERID"),
        ("CNI-ContainerID", "%FF", "CNI_CONTAINERID"),
        ("CNI-IfName", "a%0D%0Ab", "CNI_IFNAME"),
        ("CNI-IfName", "abcdefghijklmnop", "CNI_IFNAME"),
        ("CNI-Netns", "/run/%00", "CNI_NETNS"),
        ("CNI-Netns", "x" * 5000, "CNI_NETNS"),
        ("CNI-Args", "%C3%28", "CNI_ARGS"),
        ("Ipamd-Node", "a/b", "node name"),
        ("Ipamd-Cluster", "a:b", "cluster name"),
        ("Ipamd-Boot-Id", "a b", "boot id"),
        ("Ipamd-Started", "-1", "Ipamd-Started"),
        ("Ipamd-Started", "1e9", "Ipamd-Started"),
        ("Ipamd-Started", str(2**63), "Ipamd-Started"),
        ("Ipamd-Deadline-Ms", "soon", "Ipamd-Deadline-Ms"),
        ("Ipamd-Deadline-Ms", "\u0663", "Ipamd-Deadline-Ms"),
    ],
)
def test_a_bad_value_is_named_and_has_code_4(header: str, value: str, word: str) -> None:
    error = refused("add", headers={header: value})
    assert error.code == 4
    assert word in error.msg


def test_the_path_of_the_plugins_is_not_required() -> None:
    assert read("add", headers={"CNI-Path": DROP}).node == "n1"
