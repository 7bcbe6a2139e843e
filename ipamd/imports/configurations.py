"""Owns the configurations that go with an import: which pools they ask for, and within which limits.

They are read as an ADD would read them, whatever plugin they still name: what is refused here would be refused after
the change-over, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ipamd.cni.dialects import read_ipam
from ipamd.cni.errors import CniError
from ipamd.core.addresses import Address
from ipamd.core.commands import PoolRequest
from ipamd.core.inline import Limits
from ipamd.imports.plan import Fault, Gathering

_TYPES = frozenset({"whereabouts", "host-local", "ipamd"})
ATTACHMENT_DEFINITION = "NetworkAttachmentDefinition"


@dataclass(frozen=True, slots=True)
class Configuration:
    """One network configuration: its name, and what it asks for."""

    name: str
    requests: tuple[PoolRequest, ...]


@dataclass(frozen=True, slots=True)
class Configurations:
    """All that go with an import."""

    items: tuple[Configuration, ...] = ()

    def request(self, name: str) -> PoolRequest | None:
        """The first request for a pool of this name."""
        return next((one for one in self._requests() if one.pool == name), None)

    def limits(self, name: str) -> tuple[Limits, ...]:
        """What all requests for a pool say of it."""
        return tuple(one for it in self._requests() if it.pool == name and it.inline for one in it.inline.ranges)

    def covering(self, network: str, address: Address) -> PoolRequest | None:
        """The request that covers an address; one of the network itself comes first."""
        own = (one for it in self.items if it.name == network for one in it.requests)
        others = (one for it in self.items if it.name != network for one in it.requests)
        return next((one for found in (own, others) for one in found if _covers(one, address)), None)

    def _requests(self) -> Iterator[PoolRequest]:
        return (one for it in self.items for one in it.requests)


def read_configurations(documents: Iterable[tuple[str, object]], gathering: Gathering) -> Configurations:
    """Read configurations, each with its place: of a plugin, a list of plugins, or a NetworkAttachmentDefinition."""
    found: list[Configuration] = []
    for place, document in documents:
        before = len(found)
        for name, conf in _plugins(place, document, gathering):
            try:
                requests = tuple(one for one in read_ipam(conf).requests if one.inline is not None)
            except CniError as error:
                gathering.faults.append(Fault(place, f"would be refused: {error.msg}"))
                before = -1
            else:
                found.append(Configuration(name, requests))
        if len(found) == before:
            gathering.warnings.append(f"{place} has no ipam section of whereabouts or host-local: it says nothing here")
    return Configurations(tuple(found))


def _covers(request: PoolRequest, address: Address) -> bool:
    return request.inline is not None and any(subnet.covers(address) for subnet in request.inline.subnets)


def _plugins(place: str, document: object, gathering: Gathering) -> Iterator[tuple[str, dict[str, Any]]]:
    """The configurations of plugins that a document holds, with the name of their network."""
    if not isinstance(document, dict):
        gathering.faults.append(Fault(place, "is no JSON object"))
        return
    name = document.get("name")
    if document.get("kind") == ATTACHMENT_DEFINITION:
        document, name = _attachment_definition(place, document, gathering)
    listed = document.get("plugins")
    for conf in listed if isinstance(listed, list) else [document]:
        ipam = conf.get("ipam") if isinstance(conf, dict) else None
        if isinstance(ipam, dict) and ipam.get("type") in _TYPES:
            yield str(name or ""), conf


def _attachment_definition(
    place: str, document: Mapping[str, Any], gathering: Gathering
) -> tuple[dict[str, Any], object]:
    """The configuration in a NetworkAttachmentDefinition; one without a name is called as its object is."""
    spec, metadata = document.get("spec"), document.get("metadata")
    text = spec.get("config") if isinstance(spec, dict) else None
    try:
        conf = json.loads(text) if text else {}
    except (TypeError, ValueError, RecursionError) as error:
        gathering.faults.append(Fault(place, f"has a spec.config that is no JSON: {error}"))
        return {}, None
    if not isinstance(conf, dict):
        gathering.faults.append(Fault(place, "has a spec.config that is no JSON object"))
        return {}, None
    return conf, conf.get("name") or (metadata.get("name") if isinstance(metadata, dict) else None)
