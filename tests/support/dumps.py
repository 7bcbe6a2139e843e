"""Owns dumps of whereabouts for tests, as large as they need."""

from __future__ import annotations

from typing import Any

GROUP = "whereabouts.cni.cncf.io/v1alpha1"


def whereabouts_dump(entries: int) -> dict[str, Any]:
    """Two pools with half of the entries each, and a reservation over all ranges for each, as kubectl prints them."""
    half = entries // 2
    items: list[dict[str, Any]] = []
    for octet in (80, 81):
        allocations = {
            str(at + 1): {"id": f"{octet}{at:062x}", "podref": f"team-{at % 50}/web-{octet}-{at}", "ifname": "net1"}
            for at in range(half)
        }
        items.append(_object("IPPool", f"10.{octet}.0.0-16", range=f"10.{octet}.0.0/16", allocations=allocations))
        for at in range(half):
            name = f"10.{octet}.{(at + 1) >> 8}.{(at + 1) & 255}"
            said = {"podref": f"team-{at % 50}/web-{octet}-{at}", "ifname": "net1"}
            items.append(_object("OverlappingRangeIPReservation", name, **said))
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _object(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "kube-system", "resourceVersion": "1", "uid": "x" * 36}
    return {"apiVersion": GROUP, "kind": kind, "metadata": metadata, "spec": spec}
