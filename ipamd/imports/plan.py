"""Owns the plan of an import: what every source comes to, and how a source that is not right is told.

Two kinds of mistakes: a source that cannot be read as what it should be (BadSource), and one that can but says what
cannot be true (a Conflict). All of either are listed, each with its place.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ipamd.core.addresses import Address, Network, usable_bounds
from ipamd.core.commands import PoolRequest
from ipamd.core.imports import Conflict, Finding
from ipamd.core.inline import InlinePool, Limits
from ipamd.core.intervals import contains
from ipamd.core.values import replace


class Fault(NamedTuple):
    """A place in a source that cannot be read; `why` is the end of a sentence that begins with the place."""

    place: str
    why: str


class BadSource(ValueError):  # noqa: N818 - what the source is
    """A source that is not what it should be."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(f"{faults[0].place} {faults[0].why}")
        self.faults = tuple(faults)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a source says. `conflicts` are in the source itself; `warnings` are sentences for whoever imports it."""

    pools: tuple[PoolRequest, ...]
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


@dataclass(slots=True)
class Gathering:
    """A plan as it grows. What a source says twice is one finding; what it contradicts is a conflict."""

    faults: list[Fault] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    _pools: list[PoolRequest] = field(default_factory=list)
    _spaces: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)
    _findings: dict[tuple[str, Address], Finding] = field(default_factory=dict)
    _interfaces: dict[Hashable, Finding] = field(default_factory=dict)

    def pool(self, request: PoolRequest, space: str) -> int:
        """The number of a pool; the same one for the same name."""
        number = self._numbers.setdefault(request.pool, len(self._pools))
        if number == len(self._pools):
            self._pools.append(_whole(request))
            self._spaces.append(space)
        return number

    def find(self, number: int, address: Address) -> Finding | None:
        """What is known of an address of a pool's space."""
        return self._findings.get((self._spaces[number], address))

    def findings(self) -> list[Finding]:
        """All that was found so far."""
        return list(self._findings.values())

    def add(self, finding: Finding, hint: str = "") -> bool:
        """Take a finding in, unless it contradicts another one; `hint` ends the sentence where it may help."""
        key = (self._spaces[finding.pool], finding.address)
        other = self._findings.get(key)
        if other is not None:
            if replace(other, place=finding.place, pool=finding.pool) != finding:
                self.conflict(finding, f"is given away twice: {other.place} says {_holder(other)}{hint}")
            return False
        return self._take_interface(finding) and self._findings.setdefault(key, finding) is finding

    def amend(self, old: Finding, new: Finding) -> None:
        """Put in what another part of the source knows of a finding."""
        self._take_interface(new)
        self._findings[self._spaces[old.pool], old.address] = new

    def conflict(self, finding: Finding, why: str) -> None:
        """A finding that contradicts something."""
        self.conflicts.append(Conflict(finding.place, finding.address, f"of {_holder(finding)} {why}"))

    def plan(self) -> Plan:
        """All of it. Raises BadSource."""
        if self.faults:
            raise BadSource(self.faults)
        return Plan(tuple(self._pools), tuple(self._findings.values()), tuple(self.warnings), tuple(self.conflicts))

    def _take_interface(self, finding: Finding) -> bool:
        """One interface of one pod is in one container: of two that say otherwise, one is a leak."""
        if finding.ifname is None:
            return True
        key = (finding.pool, finding.pod_ref, finding.ifname)
        other = self._interfaces.setdefault(key, finding)
        if other.container_id == finding.container_id:
            return True
        self.conflict(finding, f"is the second address of this interface: {other.place} says {_holder(other)}")
        return False


def forbidding(limits: Iterable[Limits], address: Address) -> str | None:
    """Why no configuration would give an address; None: one would, or none says anything."""
    reasons = [_forbids(one, address) for one in limits if one.subnet.covers(address)]
    return reasons[0] if reasons and all(reasons) else None


def whole_pool(name: str, space: str, subnets: Iterable[Network]) -> PoolRequest:
    """A request for an inline pool, for all of its subnets."""
    limits = tuple(Limits(subnet, *usable_bounds(subnet)) for subnet in subnets)
    return PoolRequest(name, InlinePool(space, limits))


def _forbids(limits: Limits, address: Address) -> str | None:
    if address.value == limits.gateway:
        return f"is the gateway of {limits.subnet}"
    if contains(limits.excludes, address.value):
        return "is excluded"
    if not limits.first <= address.value <= limits.last:
        first, last = Address(address.family, limits.first), Address(address.family, limits.last)
        return f"lies outside {first} to {last}"
    return None


def _whole(request: PoolRequest) -> PoolRequest:
    """A request for a pool without the limits, which are those of single ADDs."""
    inline = request.inline
    if inline is None:
        return request
    return whole_pool(request.pool, inline.space, inline.subnets)


def _holder(finding: Finding) -> str:
    interface = f"{finding.ifname} of " if finding.ifname else ""
    container = f", container {finding.container_id}" if finding.container_id else ""
    return f"{interface}{finding.pod_ref}{container}"
