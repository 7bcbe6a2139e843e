"""Owns how pools look as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipamctl.render import columns, fields


def pool_table(pool: Mapping[str, Any]) -> str:
    """One pool, and whom a change leaves stranded."""
    plain = [(name, value) for name, value in pool.items() if name not in {"ranges", "stranded"}]
    ranges = [
        (f"ranges[{position}][{order}]", _range_text(entry))
        for position, alternatives in enumerate(pool["ranges"])
        for order, entry in enumerate(alternatives)
    ]
    text = fields([*plain[:2], *ranges, *plain[2:]])
    stranded = pool.get("stranded")
    return f"{text}\n\n{stranded_table(stranded)}" if stranded else text


def pools_table(pools: Mapping[str, Any]) -> str:
    """A list of pools."""
    rows = [(pool["name"], pool["space"], _ranges_text(pool), pool.get("strategy")) for pool in pools["items"]]
    return columns(("NAME", "SPACE", "RANGES", "STRATEGY"), rows)


def stranded_table(stranded: list[Mapping[str, Any]]) -> str:
    """Holders that the pool would not serve again."""
    return columns(
        ("STRANDED POD", "INTERFACE", "ADDRESS"), [(s["pod_ref"], s["ifname"], s["address"]) for s in stranded]
    )


def _ranges_text(pool: Mapping[str, Any]) -> str:
    """Alternatives joined by `|`, the entries that each give an address by `+`."""
    return " + ".join(" | ".join(_span_text(entry) for entry in alternatives) for alternatives in pool["ranges"])


def _span_text(entry: Mapping[str, Any]) -> str:
    start, end = entry.get("range_start"), entry.get("range_end")
    if start and end:
        return f"{entry['subnet']} ({start}-{end})"
    bound = f" (from {start})" if start else f" (to {end})" if end else ""
    return f"{entry['subnet']}{bound}"


def _range_text(entry: Mapping[str, Any]) -> str:
    text = _span_text(entry)
    if entry.get("gateway"):
        text += f", gateway {entry['gateway']}"
    if entry.get("exclude"):
        text += f", without {', '.join(entry['exclude'])}"
    return text
