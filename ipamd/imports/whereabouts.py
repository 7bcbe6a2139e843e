"""Owns the import from whereabouts: what `kubectl get ippools,overlappingrangeipreservations,nodeslicepools` prints.

An IPPool is a range and, by their offset from its address, what was given of it. Offsets are written as signed 64 bit
numbers by some versions, as unsigned by others: they count modulo 2^64. Whatever else is missing is open: the node
always, the interface and even the pod in what old versions wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ipamd.core.addresses import BITS, Address, AddressError, Network, parse_interface
from ipamd.core.commands import PoolRequest
from ipamd.core.imports import Conflict, Finding, pod_ref_of
from ipamd.core.inline import inline_name, separate_name
from ipamd.core.model import DEFAULT_SPACE
from ipamd.core.names import (
    InvalidName,
    check_container_id,
    check_ifname,
    check_name,
    check_pod_ref,
    with_cluster,
)
from ipamd.imports.configurations import ATTACHMENT_DEFINITION, Configurations, read_configurations
from ipamd.imports.kubernetes import POOL, Resource, read_resources
from ipamd.imports.overlapping import Overlapping
from ipamd.imports.plan import Fault, Gathering, Plan, forbidding, whole_pool
from ipamd.imports.slices import Slice, range_name, read_slices

_OFFSETS = 2**64
_LEAST, _MOST = -(2**63), 2**64 - 1
_HINT = "; where networks set enable_overlapping_ranges to false, give their configurations too"


def read(document: Mapping[str, Any], cluster: str | None = None) -> Plan:
    """The plan that a document of kubectl means. Raises BadSource.

    `cluster` is the name of its Kubernetes cluster, where several share one ipamd.
    """
    gathering = Gathering()
    resources = read_resources(document, gathering)
    definitions = [one for one in resources if one.kind == ATTACHMENT_DEFINITION]
    configurations = read_configurations(((one.place, one.document) for one in definitions), gathering)
    source = _Source(gathering, configurations, read_slices(resources, gathering), cluster)
    ranges = [one for it in resources if it.kind == POOL and (one := source.read_pool(it)) is not None]
    Overlapping(gathering, ranges, cluster).compare(resources)
    if not ranges and not gathering.faults:
        gathering.faults.append(Fault("the document", f"has no {POOL}: there is nothing to import"))
    source.warn()
    return gathering.plan()


class PoolRange(NamedTuple):
    """An IPPool as it was read. `network` is its network_name, empty without; `separate`: it overlaps with nothing."""

    place: str
    network: str
    subnet: Network
    number: int
    separate: bool


@dataclass(slots=True)
class _Source:
    gathering: Gathering
    configurations: Configurations
    slices: Mapping[str, Slice]
    cluster: str | None
    _names: dict[int, str] = field(default_factory=dict)

    def read_pool(self, resource: Resource) -> PoolRange | None:
        """Take in an IPPool with all that it gave."""
        spec = resource.section("spec", self.gathering)
        text, allocations = spec.get("range"), spec.get("allocations")
        try:
            base, part = parse_interface(text if isinstance(text, str) else "")
        except AddressError as error:
            self._fault(resource.place, f"has no spec.range: {error}")
            return None
        if not isinstance(allocations, dict):
            self._fault(resource.place, "has no spec.allocations: is it cut short?")
            return None
        network, node, subnet = self._network(resource, str(text), part)
        found = self._destination(resource, network, subnet)
        if found is None:
            return None
        for offset, allocation in sorted(allocations.items(), key=lambda item: _order(item[0])):
            place = f"{resource.place} offset {offset[:24]}"
            address = self._address(place, offset, base, subnet)
            if address is not None:
                self._take(place, found.number, address, allocation, node)
        return found

    def warn(self) -> None:
        """Say which pods hold what their configuration would not give them."""
        limits = {number: self.configurations.limits(name) for number, name in self._names.items()}
        for finding in self.gathering.findings():
            why = forbidding(limits[finding.pool], finding.address)
            if why is not None:
                said = f"{finding.address} of {finding.pod_ref} {why}: the pod keeps it until it lets go"
                self.gathering.warnings.append(said)

    def _network(self, resource: Resource, text: str, part: Network) -> tuple[str, str | None, Network]:
        """Network name, node and whole range of an IPPool, as its name says."""
        found = self.slices.get(resource.name)
        if found is not None:
            return found.network, with_cluster(self.cluster, found.node), found.whole
        name, tail = resource.name, range_name(text)
        if name == tail:
            return "", None, part
        if not name.endswith(f"-{tail}"):
            self.gathering.warnings.append(f"{resource.place} is not named after its range: taken as of no network")
            return "", None, part
        network = name.removesuffix(f"-{tail}")
        self.gathering.warnings.append(
            f"{resource.place} is taken as of network_name {network}; if that is a node, give the NodeSlicePools too"
        )
        return network, None, part

    def _destination(self, resource: Resource, network: str, subnet: Network) -> PoolRange | None:
        try:
            space = check_name(network, "network_name") if network else DEFAULT_SPACE
        except InvalidName as error:
            self._fault(resource.place, f"cannot be imported: {error}")
            return None
        name = inline_name(space, [subnet])
        alone = separate_name(name)
        separate = self.configurations.request(name) is None and self.configurations.request(alone) is not None
        request: PoolRequest = whole_pool(alone, alone, [subnet]) if separate else whole_pool(name, space, [subnet])
        number = self.gathering.pool(request, alone if separate else space)
        self._names[number] = request.pool
        return PoolRange(resource.place, network, subnet, number, separate)

    def _address(self, place: str, offset: str, base: Address, subnet: Network) -> Address | None:
        number = _offset(offset)
        if number is None:
            self._fault(place, "is no number of 64 bits")
            return None
        value = base.value + number % _OFFSETS
        if value >> BITS[base.family]:
            self.gathering.conflicts.append(Conflict(place, None, f"lies outside {subnet}"))
            return None
        address = Address(base.family, value)
        if subnet.covers(address):
            return address
        self.gathering.conflicts.append(Conflict(place, address, f"lies outside {subnet}"))
        return None

    def _take(self, place: str, number: int, address: Address, allocation: object, node: str | None) -> None:
        texts = _allocation(allocation)
        if texts is None:
            self._fault(place, "has an id, a podref or an ifname that is no text")
            return
        container_id, pod_ref, ifname = texts
        try:
            finding = Finding(
                number,
                address,
                place,
                _pod_ref(pod_ref, container_id, node, self.cluster),
                check_ifname(ifname) if ifname else None,
                check_container_id(container_id, "id") if container_id else None,
                node,
            )
        except InvalidName as error:
            self._fault(place, f"cannot be imported: {error}")
            return
        self.gathering.add(finding, _HINT)

    def _fault(self, place: str, why: str) -> None:
        self.gathering.faults.append(Fault(place, why))


def _pod_ref(text: str, container_id: str, node: str | None, cluster: str | None) -> str:
    """The pod, or what stands for it. Raises InvalidName."""
    if text:
        return check_pod_ref(with_cluster(cluster, text), "podref")
    if not container_id:
        raise InvalidName("it has neither id nor podref: nobody could ever claim it")
    return pod_ref_of(node, check_container_id(container_id, "id"), cluster)


def _allocation(value: object) -> tuple[str, str, str] | None:
    """Container id, pod and interface of an allocation; empty: it does not say."""
    if not isinstance(value, dict):
        return None
    container_id, pod_ref, ifname = (value.get(key) or "" for key in ("id", "podref", "ifname"))
    if not (isinstance(container_id, str) and isinstance(pod_ref, str) and isinstance(ifname, str)):
        return None
    return container_id.strip(), pod_ref, ifname


def _offset(text: str) -> int | None:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 20:
        return None
    number = int(text)
    return number if _LEAST <= number <= _MOST else None


def _order(text: str) -> tuple[int, str]:
    """Offsets by their number; what is none comes first."""
    number = _offset(text)
    return (-1 if number is None else number % _OFFSETS), text
