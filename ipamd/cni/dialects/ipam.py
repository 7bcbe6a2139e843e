"""Owns what every dialect comes to: what is asked of which pools, and what the configuration puts into the result."""

from __future__ import annotations

from dataclasses import dataclass

from ipamd.cni.overrides import NO_OVERRIDES, Overrides
from ipamd.core.commands import PoolRequest


@dataclass(frozen=True, slots=True)
class Ipam:
    """An `ipam` section. `pod_annotations`: the pod itself may ask for a pool and for addresses.

    `resolv_conf` is the path of a file with name service settings, to be read by whoever answers the node.
    `warnings` are sentences about what does not do here what it did elsewhere.
    """

    dialect: str
    requests: tuple[PoolRequest, ...]
    overrides: Overrides = NO_OVERRIDES
    pod_annotations: bool = False
    resolv_conf: str | None = None
    warnings: tuple[str, ...] = ()
