"""Owns the comparison of what the pools of whereabouts gave with its reservations of addresses over all ranges.

A reservation is named after its address, with the network's name before it, both with dashes. It says what the pool
does not where an old version wrote that; where both say something, they have to say the same. One that no pool knows
of is a leak, or a pool that lost it: nobody can tell, so its address is kept for its pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ipamd.core.addresses import Address, AddressError, Network, parse_address
from ipamd.core.imports import Conflict, Finding, is_named_after
from ipamd.core.names import InvalidName, check_container_id, check_ifname, check_pod_ref, with_cluster
from ipamd.core.values import replace
from ipamd.imports.kubernetes import RESERVATION, Resource
from ipamd.imports.plan import Fault, Gathering


class Range(Protocol):
    """A pool of whereabouts."""

    @property
    def place(self) -> str:
        """Where it stands."""

    @property
    def network(self) -> str:
        """Its network_name."""

    @property
    def subnet(self) -> Network:
        """What it gives addresses of."""

    @property
    def number(self) -> int:
        """The number of the import's pool that it becomes."""

    @property
    def separate(self) -> bool:
        """Whether it knows of no other range: then no reservation is of it."""


class _Said(NamedTuple):
    """What a reservation says; None: it does not."""

    pod_ref: str
    container_id: str | None
    ifname: str | None


class Overlapping:
    """Compares, and completes what the pools said."""

    def __init__(self, gathering: Gathering, ranges: Sequence[Range], cluster: str | None) -> None:
        self._gathering, self._cluster = gathering, cluster
        self._ranges = [one for one in ranges if not one.separate]
        self._met: set[tuple[int, Address]] = set()

    def compare(self, resources: Iterable[Resource]) -> None:
        """Hold every reservation against the pools."""
        for resource in resources:
            if resource.kind == RESERVATION:
                self._compare(resource)
        self._warn_of_missing()

    def _compare(self, resource: Resource) -> None:
        said = self._read(resource, resource.section("spec", self._gathering))
        if said is None:
            return
        readings = list(_readings(resource.name))
        if not readings:
            self._gathering.faults.append(Fault(resource.place, "is not named after an address"))
            return
        place = next((found for network, address in readings if (found := self._range(network, address))), None)
        if place is None:
            why = "is reserved, and no IPPool of its network covers it: is one missing? Else delete the reservation"
            self._gathering.conflicts.append(Conflict(resource.place, readings[0][1], why))
            return
        number, address = place
        finding = self._gathering.find(number, address)
        if finding is None:
            self._keep(resource, number, address, said)
        else:
            self._match(resource, finding, said)

    def _range(self, network: str, address: Address) -> tuple[int, Address] | None:
        """The pool of a network that an address lies in; one that gave it comes first."""
        numbers = [one.number for one in self._ranges if one.network == network and one.subnet.covers(address)]
        numbers.sort(key=lambda number: self._gathering.find(number, address) is None)
        return (numbers[0], address) if numbers else None

    def _match(self, resource: Resource, finding: Finding, said: _Said) -> None:
        self._met.add((finding.pool, finding.address))
        is_open = is_named_after(finding.pod_ref, finding.container_id)
        if not is_open and said.pod_ref != finding.pod_ref:
            self._gathering.conflict(finding, f"is reserved for {said.pod_ref} by {resource.place}")
        elif None not in (said.ifname, finding.ifname) and said.ifname != finding.ifname:
            self._gathering.conflict(finding, f"is reserved for its {said.ifname} by {resource.place}")
        else:
            known = replace(finding, pod_ref=said.pod_ref, ifname=finding.ifname or said.ifname)
            self._gathering.amend(finding, known)

    def _keep(self, resource: Resource, number: int, address: Address, said: _Said) -> None:
        finding = Finding(number, address, resource.place, said.pod_ref, said.ifname, said.container_id)
        if self._gathering.add(finding):
            self._met.add((number, address))
            self._gathering.warnings.append(
                f"{address} is reserved for {said.pod_ref} by {resource.place}, and no IPPool has given it: it is kept "
                "for that pod"
            )

    def _read(self, resource: Resource, spec: Mapping[str, Any]) -> _Said | None:
        texts = [spec.get(key) or "" for key in ("podref", "containerid", "ifname")]
        try:
            pod_ref, container_id, ifname = (one if isinstance(one, str) else str(one) for one in texts)
            return _Said(
                check_pod_ref(with_cluster(self._cluster, pod_ref), "podref"),
                check_container_id(container_id.strip(), "containerid") if container_id.strip() else None,
                check_ifname(ifname) if ifname else None,
            )
        except InvalidName as error:
            self._gathering.faults.append(Fault(resource.place, f"cannot be imported: {error}"))
            return None

    def _warn_of_missing(self) -> None:
        """A pool of which some addresses are reserved and others not: whereabouts would give these away again."""
        given: dict[int, list[Address]] = {}
        for finding in self._gathering.findings():
            given.setdefault(finding.pool, []).append(finding.address)
        for number, place in {one.number: one.place for one in self._ranges}.items():
            there = given.get(number, [])
            missing = [address for address in there if (number, address) not in self._met]
            if missing and len(missing) < len(there):
                count = f"{len(missing)} of {len(there)} addresses" if len(missing) > 1 else str(missing[0])
                self._gathering.warnings.append(f"{place} gave {count} without a reservation over all ranges")


def _readings(name: str) -> Iterator[tuple[str, Address]]:
    """What the name of a reservation may mean: network_name and address, the longest address first.

    `ab-cd--1` is the address ab:cd::1, or cd::1 in the network ab: the pools say which.
    """
    parts = name.split("-")
    for at in range(len(parts)):
        text = "-".join(parts[at:])
        try:
            yield "-".join(parts[:at]), parse_address(text if "." in text else text.replace("-", ":"))
        except AddressError:
            continue
