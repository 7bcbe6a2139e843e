"""Owns the networks of the end-to-end tests: a real CNI plugin each, with what it needs of the host."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from demo.cni import Namespaces, ip

SUFFIX = os.getpid() % 10**7

FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
"""ptp switches forwarding on for the whole host; the tests put it back."""


class Network(NamedTuple):
    """A kind of network: how its part of the configuration looks, and its pool."""

    configure: Callable[[Namespaces], dict[str, Any]]
    pool: dict[str, Any]


def bridge(namespaces: Namespaces) -> dict[str, Any]:
    """Pods on a bridge device, which the plugin makes."""
    name = f"ipbr{SUFFIX}"
    namespaces.devices.add(name)
    return {"type": "bridge", "bridge": name}


def macvlan(namespaces: Namespaces) -> dict[str, Any]:
    """Pods on one end of a veth pair that stands for the host's network card."""
    master, other = f"ipma{SUFFIX}", f"ipmb{SUFFIX}"
    ip("link", "add", master, "type", "veth", "peer", "name", other)
    namespaces.devices.add(master)
    ip("link", "set", master, "up")
    ip("link", "set", other, "up")
    return {"type": "macvlan", "master": master, "mode": "bridge"}


def ptp(_: Namespaces) -> dict[str, Any]:
    """Each pod on a veth pair of its own, routed by the host."""
    return {"type": "ptp"}


NETWORKS = {
    "bridge": Network(bridge, {"name": "e2e-bridge", "subnet": "10.166.1.0/24"}),
    "macvlan": Network(macvlan, {"name": "e2e-macvlan", "subnet": "10.166.2.0/24"}),
    "ptp": Network(ptp, {"name": "e2e-ptp", "subnet": "10.166.3.0/24", "gateway": "10.166.3.1"}),
}
