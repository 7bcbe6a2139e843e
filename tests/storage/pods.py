"""Owns the calls of the store's tests in a few words."""

from __future__ import annotations

from typing import Any

from ipamd.core.commands import Add, CreatePool, Del, PoolRequest
from ipamd.core.model import Owner, Range, Strategy
from tests.core.world import ORIGIN, definition


def pool(name: str, *sets: str | Range | tuple[Range, ...], **rest: Any) -> CreatePool:
    """Make a pool; without cooldown, where none is given."""
    rest.setdefault("cooldown_s", 0)
    if "strategy" in rest:
        rest["strategy"] = Strategy(rest["strategy"])
    return CreatePool(ORIGIN, definition(name, *sets, **rest))


def add(pod: str, container: str | None = None, *, pools: str = "p", ifname: str = "eth0", node: str = "n1") -> Add:
    """The ADD of a container, by default named after the pod."""
    requests = tuple(PoolRequest(name) for name in pools.split())
    return Add(ORIGIN, requests, pod, ifname, Owner(container or pod, node, "k"))


def delete(container: str, *, ifname: str = "eth0", node: str = "n1") -> Del:
    """The DEL of a container."""
    return Del(ORIGIN, node, "k", container, ifname)
