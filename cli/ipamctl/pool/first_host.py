"""Owns the warning about a pool without gateway: its first host goes to a pod."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any


def gateway_notes(pool: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each range without gateway whose first host can be handed out. `pool` as the API answers it."""
    for alternatives in pool["ranges"]:
        for entry in alternatives:
            first = _first_host(entry)
            if not entry.get("gateway") and not _is_excluded(first, entry.get("exclude") or []):
                yield (
                    f"pool {pool['name']}: {entry['subnet']} has no gateway, so its first host, {first}, "
                    f"will be handed out to a pod"
                )


def _first_host(entry: Mapping[str, Any]) -> int | ipaddress.IPv4Address | ipaddress.IPv6Address:
    subnet = ipaddress.ip_network(entry["subnet"])
    # The lowest address is the network's or, with IPv6, the routers' own; in the two smallest sizes all are hosts.
    first = subnet[0] if subnet.prefixlen >= subnet.max_prefixlen - 1 else subnet[1]
    start = entry.get("range_start")
    return max(first, ipaddress.ip_address(start)) if start else first


def _is_excluded(address: Any, excludes: list[str]) -> bool:
    return any(first <= address <= last for first, last in map(_bounds, excludes) if first.version == address.version)


def _bounds(text: str) -> tuple[Any, Any]:
    if "-" in text:
        first, last = text.split("-", 1)
        return ipaddress.ip_address(first), ipaddress.ip_address(last)
    network = ipaddress.ip_network(text, strict=False)
    return network[0], network[-1]
