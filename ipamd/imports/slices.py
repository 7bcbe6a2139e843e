"""Owns the node slices of whereabouts: which of its pools is a node's part of a larger range.

With `node_slice_size` each node has a pool of its own, named after it. The configuration says the whole range, and so
does the next ADD: what a slice holds belongs to the pool of the whole range, and its node is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ipamd.core.addresses import AddressError, Network, parse_network
from ipamd.core.names import InvalidName, check_node
from ipamd.imports.kubernetes import SLICES, Resource
from ipamd.imports.plan import Fault, Gathering


class Slice(NamedTuple):
    """A node's part of a range. `network` is the network_name of whereabouts; empty: it has none."""

    network: str
    node: str
    whole: Network


def read_slices(resources: Iterable[Resource], gathering: Gathering) -> dict[str, Slice]:
    """The slices, by the name that the pool of each has."""
    found: dict[str, Slice] = {}
    for resource in resources:
        if resource.kind == SLICES:
            found |= _of(resource, gathering)
    return found


def range_name(text: str) -> str:
    """A range as it stands in the name of a pool of whereabouts."""
    return (text + "0" if text.endswith(":") else text).replace(":", "-").replace("/", "-")


def _of(resource: Resource, gathering: Gathering) -> dict[str, Slice]:
    """Without network_name the slices bear the name of the CNI network, and their pools no name of a network."""
    whole = _whole(resource, gathering)
    status = resource.document.get("status")  # nothing is handed out yet where there is none
    allocations = status.get("allocations") if isinstance(status, dict) else None
    found: dict[str, Slice] = {}
    for number, item in enumerate(allocations or () if isinstance(allocations, list) else ()):
        place = f"{resource.place} allocation {number}"
        node, part = _texts(item)
        if node is None or part is None or whole is None:
            gathering.faults.append(Fault(place, "has no nodeName or no sliceRange"))
        elif node:  # an empty name: the slice is no node's yet
            _check(place, node, gathering)
            found[f"{node}-{range_name(part)}"] = Slice("", node, whole)
            found[f"{resource.name}-{node}-{range_name(part)}"] = Slice(resource.name, node, whole)
    return found


def _whole(resource: Resource, gathering: Gathering) -> Network | None:
    text = resource.section("spec", gathering).get("range")
    try:
        return parse_network(text if isinstance(text, str) else "")
    except AddressError as error:
        gathering.faults.append(Fault(resource.place, f"has no spec.range: {error}"))
        return None


def _texts(item: object) -> tuple[str | None, str | None]:
    if not isinstance(item, Mapping):
        return None, None
    node, part = item.get("nodeName"), item.get("sliceRange")
    return (node if isinstance(node, str) else None), (part if isinstance(part, str) else None)


def _check(place: str, node: str, gathering: Gathering) -> None:
    try:
        check_node(node)
    except InvalidName as error:
        gathering.faults.append(Fault(place, f"has a nodeName that is no node: {error}"))
