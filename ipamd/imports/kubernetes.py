"""Owns what kubectl prints: a List, the list of one kind, or one object; each object with its place in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ipamd.imports.configurations import ATTACHMENT_DEFINITION
from ipamd.imports.plan import Fault, Gathering

POOL = "IPPool"
RESERVATION = "OverlappingRangeIPReservation"
SLICES = "NodeSlicePool"

_GROUPS = {
    POOL: "whereabouts.cni.cncf.io",
    RESERVATION: "whereabouts.cni.cncf.io",
    SLICES: "whereabouts.cni.cncf.io",
    ATTACHMENT_DEFINITION: "k8s.cni.cncf.io",
}


@dataclass(frozen=True, slots=True)
class Resource:
    """An object of a kind that is read here. `place` names it as kubectl would."""

    kind: str
    name: str
    place: str
    document: Mapping[str, Any]

    def section(self, name: str, gathering: Gathering) -> Mapping[str, Any]:
        """`spec` or `status`; one that is no object is a fault, and empty."""
        found = self.document.get(name)
        if isinstance(found, dict):
            return found
        gathering.faults.append(Fault(self.place, f"has no {name}: is it cut short?"))
        return {}


def read_resources(document: Mapping[str, Any], gathering: Gathering) -> list[Resource]:
    """The objects that a document holds, in its order."""
    return [one for item, kind, place in _items(document, gathering) for one in _resource(item, kind, place, gathering)]


def _items(document: Mapping[str, Any], gathering: Gathering) -> Iterator[tuple[object, str | None, str]]:
    """Each item with the kind that its list says, and its number."""
    kind = document.get("kind")
    if not isinstance(kind, str) or not kind:
        gathering.faults.append(Fault("the document", "has no kind: it is not what kubectl -o json prints"))
        return
    if not kind.endswith("List"):
        yield document, None, "the document"
        return
    items = document.get("items")
    if not isinstance(items, list):
        gathering.faults.append(Fault(f"the {kind}", "has no items: is it cut short?"))
        return
    for number, item in enumerate(items):
        yield item, kind.removesuffix("List") or None, f"items[{number}]"


def _resource(item: object, kind_of_list: str | None, place: str, gathering: Gathering) -> Iterator[Resource]:
    if not isinstance(item, dict):
        gathering.faults.append(Fault(place, "is no object"))
        return
    kind, metadata = item.get("kind", kind_of_list), item.get("metadata")
    if not isinstance(kind, str) or kind not in _GROUPS:
        gathering.faults.append(Fault(place, f"is of kind {str(kind)[:64]!r}, not one of {', '.join(_GROUPS)}"))
        return
    group = str(item.get("apiVersion", _GROUPS[kind])).partition("/")[0]
    if group != _GROUPS[kind]:
        gathering.faults.append(Fault(place, f"is a {kind} of API group {group[:64]!r}, not of {_GROUPS[kind]}"))
        return
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name, str) or not name:
        gathering.faults.append(Fault(place, f"is a {kind} without metadata.name"))
        return
    namespace = metadata.get("namespace")
    where = f"{namespace}/{name}" if isinstance(namespace, str) and namespace else name
    yield Resource(kind, name, f"{kind} {where}"[:300], item)
