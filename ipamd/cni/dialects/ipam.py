"""Owns what every dialect comes to: the pools asked for, and what the configuration puts into the result."""

from __future__ import annotations

from dataclasses import dataclass

from ipamd.cni.overrides import Overrides


@dataclass(frozen=True, slots=True)
class Ipam:
    """An `ipam` section. `pod_annotations`: the pod itself may ask for a pool and for addresses."""

    pools: tuple[str, ...]
    overrides: Overrides
    pod_annotations: bool
