"""CNI_ARGS: pairs, pod data, and what is ignored."""

from __future__ import annotations

import pytest

from ipamd.cni.args import PodArgs, parse_args
from ipamd.cni.errors import CniError


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("", PodArgs()),
        (";;", PodArgs()),
        ("K8S_POD_NAMESPACE=t;K8S_POD_NAME=a;", PodArgs("t/a")),
        ("IgnoreUnknown=1;FOO=BAR;K8S_POD_NAMESPACE=t;K8S_POD_NAME=a;K8S_POD_UID=u", PodArgs("t/a", "u")),
        ("K8S_POD_NAMESPACE=t;K8S_POD_NAME=a;K8S_POD_UID=", PodArgs("t/a")),
        ("IPAMD_POD_REF=x/y;K8S_POD_NAMESPACE=t;K8S_POD_NAME=a", PodArgs("x/y")),
        ("IPAMD_POD_REF=;K8S_POD_NAMESPACE=t;K8S_POD_NAME=a", PodArgs("t/a")),
        ("K8S_POD_NAME=a", PodArgs()),
        ("K8S_POD_NAMESPACE=Web_1;K8S_POD_NAME=Web_1", PodArgs("Web_1/Web_1")),
        ("IP=10.0.0.1,2001:db8::1", PodArgs(ip="10.0.0.1,2001:db8::1")),
    ],
)
def test_pod_data_is_read(text: str, args: PodArgs) -> None:
    assert parse_args(text) == args


@pytest.mark.parametrize(
    "text",
    [
        "K8S_POD_NAME=a=b;K8S_POD_NAMESPACE=t",
        "=x",
        "FOO",
        "a=b;FOO",
        "K8S_POD_NAME=a/b;K8S_POD_NAMESPACE=t",
        "K8S_POD_NAME=a:b;K8S_POD_NAMESPACE=t",
        f"K8S_POD_NAME=a;K8S_POD_NAMESPACE={'t' * 64}",
        f"K8S_POD_NAME={'a' * 254};K8S_POD_NAMESPACE=t",
        "K8S_POD_NAME=a\x01;K8S_POD_NAMESPACE=t",
        "IPAMD_POD_REF=noslash",
        "IPAMD_POD_REF=a/b/c",
        "IPAMD_POD_REF=east:a/b",
        f"K8S_POD_UID={'u' * 129}",
    ],
)
def test_what_is_malformed_has_code_4(text: str) -> None:
    with pytest.raises(CniError) as caught:
        parse_args(text)
    assert caught.value.code == 4
    assert "CNI_ARGS" in caught.value.msg
