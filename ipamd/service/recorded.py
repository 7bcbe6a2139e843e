"""Owns reading what the runtime's CNI library keeps of an attachment: whose it is, and which addresses it was given."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any

from ipamd.core.addresses import Address, AddressError, parse_host
from ipamd.core.names import (
    InvalidName,
    check_container_id,
    check_ifname,
    check_network,
    check_pod_ref,
    container_pod_ref,
    pod_ref_of,
    with_cluster,
)
from ipamd.service.sandbox import Sandbox

OWN_TYPE = "ipamd"


def read_recorded(data: bytes, node: str, cluster: str | None) -> Sandbox | None:
    """The attachment of a record (libcni's `cniCacheV1`) on a node (its bare name); None: none that ipamd served."""
    try:
        record = json.loads(data)
        ipams = list(_own_ipams(json.loads(base64.b64decode(record["config"]))))
        if not ipams:
            return None
        container_id = check_container_id(str(record["containerId"]))
        return Sandbox(
            check_network(str(record["networkName"])),
            container_id,
            check_ifname(str(record["ifName"])),
            _text(record.get("netns")),
            None,
            check_pod_ref(with_cluster(cluster, _pod_ref(record) or container_pod_ref(node, container_id))),
            tuple(dict.fromkeys(_addresses(record["result"]))),
            _pool(ipams),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidName, binascii.Error):
        return None  # somebody else's file, or of a format that nobody knows yet: it says nothing


def _own_ipams(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The `ipam` sections that name this plugin, of a network configuration or a list of them."""
    for plugin in config.get("plugins") or [config]:
        ipam = plugin.get("ipam") or {}
        if ipam.get("type") == OWN_TYPE:
            yield ipam


def _pod_ref(record: Mapping[str, Any]) -> str | None:
    pairs = {str(key): str(value) for key, value in record.get("cniArgs") or []}
    given = pairs.get("IPAMD_POD_REF")
    if given:
        return given
    namespace, name = pairs.get("K8S_POD_NAMESPACE"), pairs.get("K8S_POD_NAME")
    return pod_ref_of(namespace, name) if namespace and name else None


def _addresses(result: Mapping[str, Any]) -> Iterator[Address]:
    """The addresses of a result, of whatever version; what cannot be read is left out."""
    texts = [one.get("address") for one in result.get("ips") or []]
    texts += [(result.get(family) or {}).get("ip") for family in ("ip4", "ip6")]
    for text in texts:
        try:
            yield parse_host(str(text))
        except AddressError:
            continue


def _pool(ipams: list[Mapping[str, Any]]) -> str | None:
    """The pool, where the configuration names one."""
    pool = ipams[0].get("pool")
    return pool if len(ipams) == 1 and isinstance(pool, str) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
