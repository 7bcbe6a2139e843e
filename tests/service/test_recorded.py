"""What the runtime's CNI library keeps of an attachment says whose it is, also to a cluster that has forgotten it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from ipamd.core.addresses import parse_address
from ipamd.service.recorded import read_recorded
from ipamd.service.sandbox import Sandbox

CONF = {"cniVersion": "1.0.0", "name": "k", "plugins": [{"type": "bridge", "ipam": {"type": "ipamd", "pool": "p"}}]}
RESULT = {"cniVersion": "1.0.0", "ips": [{"address": "192.0.2.7/24"}, {"address": "2001:db8::7/64"}]}
ARGS = [["IgnoreUnknown", "1"], ["K8S_POD_NAMESPACE", "shop"], ["K8S_POD_NAME", "web-0"]]


def record(conf: Any = CONF, **other: Any) -> bytes:
    encoded = base64.b64encode(json.dumps(conf).encode()).decode()
    whole = {
        "kind": "cniCacheV1",
        "containerId": "c1",
        "config": encoded,
        "ifName": "eth0",
        "networkName": "k",
        "netns": "/run/netns/a",
        "cniArgs": ARGS,
        "result": RESULT,
    }
    return json.dumps(whole | other).encode()


def test_it_has_all_that_a_report_needs() -> None:
    assert read_recorded(record(), "n1", None) == Sandbox(
        "k",
        "c1",
        "eth0",
        "/run/netns/a",
        None,
        "shop/web-0",
        (parse_address("192.0.2.7"), parse_address("2001:db8::7")),
        "p",
    )


def test_the_pod_is_named_as_an_add_names_it() -> None:
    def pod(cluster: str | None = None, **other: Any) -> str:
        found = read_recorded(record(**other), "n1", cluster)
        assert found is not None
        return found.pod_ref

    assert pod(cniArgs=None) == "_/n1/c1"
    assert pod(cniArgs=[["IPAMD_POD_REF", "a/b"], *ARGS]) == "a/b"
    assert pod("east") == "east:shop/web-0"
    assert pod("east", cniArgs=[]) == "east:_/n1/c1"


def test_a_configuration_of_one_plugin_and_old_results_are_read() -> None:
    alone = {"name": "k", "type": "bridge", "ipam": {"type": "ipamd", "pool": ["p", "q"]}}
    found = read_recorded(record(alone, result={"ip4": {"ip": "192.0.2.7/24"}}), "n1", None)
    assert found is not None
    assert (found.addresses, found.pool) == ((parse_address("192.0.2.7"),), None)


@pytest.mark.parametrize(
    "data",
    [
        record({"name": "k", "plugins": [{"type": "bridge", "ipam": {"type": "host-local"}}]}),
        record({"name": "k", "plugins": [{"type": "loopback"}]}),
        record({"name": "k", "plugins": 7}),
        record([]),
        record(config="%%%"),
        record(containerId="/"),
        record(ifName=""),
        record(cniArgs=[["K8S_POD_NAMESPACE", "a/b"], ["K8S_POD_NAME", "c"]]),
        record(cniArgs=7),
        record(result=None),
        b"",
        b"\xff",
        b"[]",
        b"[" * 100_000,
        b'{"result": {}}',
    ],
)
def test_what_is_not_its_own_or_cannot_be_read_says_nothing(data: bytes) -> None:
    assert read_recorded(data, "n1", None) is None
