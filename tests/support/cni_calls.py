"""Ready-made CNI calls for tests: headers and bodies of a good call, and ways to spoil them."""

from __future__ import annotations

import json
from typing import Any

from ipamd.cni.call import AnyCall, parse
from ipamd.cni.errors import CniError

HEADERS = {
    "CNI-ContainerID": "c1",
    "CNI-Netns": "/var/run/netns/x",
    "CNI-IfName": "eth0",
    "CNI-Args": "IgnoreUnknown=1;K8S_POD_NAMESPACE=t;K8S_POD_NAME=a;K8S_POD_UID=u-1",
    "CNI-Path": "/opt/cni/bin",
    "Ipamd-Boot-Id": "0e1d6f6a-1111-4222-8333-444455556666",
    "Ipamd-Started": "123456789",
    "Ipamd-Deadline-Ms": "9990",
}

DROP: Any = object()
"""As a value: the key is left out."""


def conf(**changes: Any) -> dict[str, Any]:
    """A good network configuration with some keys changed."""
    good = {"cniVersion": "1.1.0", "name": "net", "type": "bridge", "ipam": {"type": "ipamd", "pool": "p"}}
    return {key: value for key, value in {**good, **changes}.items() if value is not DROP}


def ipam(**changes: Any) -> dict[str, Any]:
    """A good configuration with some keys of its `ipam` section changed."""
    section = {"type": "ipamd", "pool": "p", **changes}
    return conf(ipam={key: value for key, value in section.items() if value is not DROP})


def read(
    verb: str, config: object = None, headers: dict[str, Any] | None = None, *, cluster: str | None = None
) -> AnyCall:
    """Parse a good call with some headers changed, as the server n1 would."""
    sent = {key: value for key, value in {**HEADERS, **(headers or {})}.items() if value is not DROP}
    body = config if isinstance(config, bytes) else json.dumps(conf() if config is None else config).encode()
    return parse(verb, sent, body, node="n1", cluster=cluster)


def refused(
    verb: str, config: object = None, headers: dict[str, Any] | None = None, *, cluster: str | None = None
) -> CniError:
    """The error that a call ends with."""
    try:
        read(verb, config, headers, cluster=cluster)
    except CniError as error:
        return error
    raise AssertionError(f"{verb} was not refused")
