"""Whatever comes in: a call, or a CniError that can be printed; and nothing else."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ipamd.cni.call import VERBS, parse
from ipamd.cni.errors import CniError, render_error
from tests.support.cni_calls import HEADERS, conf

KEYS = st.sampled_from(
    [
        *("cniVersion", "name", "ipam", "pool", "routes", "dns", "addresses", "dst", "gw", "mtu", "address", "ips"),
        *("runtimeConfig", "args", "cni", "prevResult", "pod_annotations", "io.kubernetes.cri.pod-annotations"),
        *("ipamd.io/pool", "ipamd.io/addresses.eth0", "cni.dev/valid-attachments", "containerID", "ifname", "x"),
    ]
)
TEXTS = st.one_of(st.text(max_size=12), st.sampled_from(["p", "1.1.0", "10.0.0.1/24", "::1", "0.0.0.0/0", "\ud800"]))
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
CONFS = st.dictionaries(KEYS, VALUES, max_size=5).map(lambda changes: json.dumps({**conf(), **changes}).encode())
BODIES = st.one_of(
    st.binary(max_size=64), CONFS, CONFS.flatmap(lambda body: st.integers(0, len(body)).map(lambda n: body[:n]))
)
HEADER_VALUES = st.one_of(
    st.text(max_size=24), st.text("%0123456789ABCDEFabcdef=;IPK8S_ODNAME", max_size=40), st.just("IP=10.0.0.1")
)
CHANGES = st.dictionaries(
    st.sampled_from([*HEADERS, "Ipamd-Node", "Ipamd-Cluster", "Ipamd-Spooled"]), HEADER_VALUES | st.none(), max_size=4
)


def answer(verb: str, changes: dict[str, Any], body: bytes, cluster: str | None) -> None:
    headers = {key: value for key, value in {**HEADERS, **changes}.items() if value is not None}
    try:
        call = parse(verb, headers, body, node="n1", cluster=cluster)
    except CniError as error:
        refusal = error
    else:
        repr(call).encode()
        assert call.node.endswith("n1") or "Ipamd-Node" in changes
        return
    printed = json.loads(render_error(None, refusal, "n1", "r-1"))
    assert printed["code"] in (1, 4, 6, 7)
    assert printed["msg"].endswith("(node n1, request r-1)")
    assert refusal.msg.isprintable()
    assert len(refusal.msg) <= 1000


@given(st.sampled_from(VERBS), st.just({}), BODIES, st.none())
def test_any_body(verb: str, changes: dict[str, Any], body: bytes, cluster: str | None) -> None:
    answer(verb, changes, body, cluster)


@given(st.sampled_from(VERBS), CHANGES, st.just(json.dumps(conf()).encode()), st.sampled_from([None, "east"]))
def test_any_headers(verb: str, changes: dict[str, Any], body: bytes, cluster: str | None) -> None:
    answer(verb, changes, body, cluster)


@given(st.sampled_from(VERBS), CHANGES, CONFS, st.sampled_from([None, "east"]))
def test_both(verb: str, changes: dict[str, Any], body: bytes, cluster: str | None) -> None:
    answer(verb, changes, body, cluster)
