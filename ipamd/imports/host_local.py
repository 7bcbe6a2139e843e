"""Owns the import from host-local: a directory for each network, in it a file for each address with who has it.

A file holds the container's id and, since plugin version 0.8, CR LF and the interface. Beside them lie `lock` and one
`last_reserved_ip.N` for each range, which say nothing of who has what. Neither pod nor subnet is known: a container
is named after its id, and the subnet comes from a configuration, from a declared pool, or is taken for granted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ipamd.core.addresses import Address, AddressError, network_around, parse_address
from ipamd.core.commands import PoolRequest
from ipamd.core.imports import Finding, pod_ref_of
from ipamd.core.inline import inline_name
from ipamd.core.model import DEFAULT_SPACE, Pool
from ipamd.core.names import InvalidName, check_container_id, check_ifname, check_network
from ipamd.imports.configurations import Configurations, read_configurations
from ipamd.imports.plan import Fault, Gathering, Plan, forbidding, whole_pool

_PREFIX = {4: 24, 6: 64}
"""The subnet that is taken for granted, by family."""

_HINT = '; networks that may have equal addresses need a "space" each in their configurations'
_is_bookkeeping = re.compile(r"lock|last_reserved_ip\.[0-9]+").fullmatch


def read(
    networks: Mapping[str, Mapping[str, str]],
    confs: Sequence[Any],
    *,
    node: str | None = None,
    cluster: str | None = None,
    pools: Sequence[Pool] = (),
) -> Plan:
    """The plan that a bundle of directories means: network to file name to content. Raises BadSource.

    `node` is the whole name of the node that they lie on, `cluster` its Kubernetes cluster; `pools` are those of the
    default space.
    """
    gathering = Gathering()
    places = [(_place_of(number, conf), conf) for number, conf in enumerate(confs)]
    source = _Source(gathering, read_configurations(places, gathering), node, cluster, pools)
    for network in sorted(networks):
        source.read_network(network, networks[network])
    if not gathering.faults and not any(networks.values()):
        gathering.faults.append(Fault("the directory", "has no network with an address in it"))
    source.warn()
    return gathering.plan()


def _place_of(number: int, conf: object) -> str:
    name = conf.get("name") if isinstance(conf, dict) else None
    return f"confs[{number}]" + (f" ({name})" if isinstance(name, str) and name else "")


@dataclass(slots=True)
class _Source:
    gathering: Gathering
    configurations: Configurations
    node: str | None
    cluster: str | None
    pools: Sequence[Pool]
    _names: dict[int, str] = field(default_factory=dict)
    _granted: dict[tuple[str, str], list[Address]] = field(default_factory=dict)
    """Addresses of subnets that were taken for granted, by network and pool."""

    def read_network(self, network: str, files: Mapping[str, str]) -> None:
        """Take in the directory of a network."""
        try:
            check_network(network, "the network")
        except InvalidName as error:
            self._fault(network[:64], f"cannot be imported: {error}")
            return
        addresses = {name: self._address(network, name) for name in files if not _is_bookkeeping(name)}
        for name, address in sorted(addresses.items(), key=lambda item: (item[1] or Address(0, 0), item[0])):
            if address is not None:
                self._take(network, f"{network}/{name}", address, files[name])

    def warn(self) -> None:
        """Say which subnets were taken for granted, and who holds what its configuration would not give."""
        for (network, pool), addresses in self._granted.items():
            first, last = min(addresses), max(addresses)
            span = f"{first} is" if first == last else f"{len(addresses)} addresses from {first} to {last} are"
            self.gathering.warnings.append(
                f"{network}: {span} covered by no configuration and no pool, and go to pool {pool}"
            )
        limits = {number: self.configurations.limits(name) for number, name in self._names.items()}
        for finding in self.gathering.findings():
            why = forbidding(limits[finding.pool], finding.address)
            if why is not None:
                said = f"{finding.address} ({finding.place}) {why}: its container keeps it until it lets go"
                self.gathering.warnings.append(said)

    def _address(self, network: str, name: str) -> Address | None:
        """The address that a file is named after; Windows has no colon in the names of files."""
        try:
            return parse_address(name.replace("_", ":"))
        except AddressError as error:
            self._fault(f"{network}/{name[:64]}", f"is not named after an address: {error}")
            return None

    def _take(self, network: str, place: str, address: Address, content: str) -> None:
        lines = content.strip().split("\n")
        container_id, ifname = lines[0].strip(), lines[1].strip() if len(lines) > 1 else ""
        if not container_id:  # the plugin died between making the file and writing it
            self.gathering.warnings.append(f"{place} is empty: nobody has {address}, and it is left out")
            return
        if len(lines) > 2:
            self._fault(place, f"has {len(lines)} lines, not a container id and an interface")
            return
        try:
            check_container_id(container_id, "the container id")
            known = check_ifname(ifname, "the interface") if ifname else None
        except InvalidName as error:
            self._fault(place, f"cannot be imported: {error}")
            return
        number = self._pool(network, address)
        pod_ref = pod_ref_of(self.node, container_id, self.cluster)
        self.gathering.add(Finding(number, address, place, pod_ref, known, container_id, self.node, network), _HINT)

    def _pool(self, network: str, address: Address) -> int:
        """The pool of an address: of a configuration, of the default space, or of the subnet that it mostly is."""
        request = self.configurations.covering(network, address)
        space = request.inline.space if request and request.inline else DEFAULT_SPACE
        if request is None:
            there = _covering(self.pools, address)
            request = PoolRequest(there.name) if there else self._grant(network, address)
        number = self.gathering.pool(request, space)
        self._names[number] = request.pool
        return number

    def _grant(self, network: str, address: Address) -> PoolRequest:
        subnet = network_around(address, _PREFIX[address.family])
        name = inline_name(DEFAULT_SPACE, [subnet])
        self._granted.setdefault((network, name), []).append(address)
        return whole_pool(name, DEFAULT_SPACE, [subnet])

    def _fault(self, place: str, why: str) -> None:
        self.gathering.faults.append(Fault(place, why))


def _covering(pools: Sequence[Pool], address: Address) -> Pool | None:
    """The pool that an address lies in: a declared one before an inline one, one that gives it before others."""
    found = [
        (one.definition.inline, not it.gives(address), -it.subnet.prefix, one.name, one)
        for one in pools
        for ranges in one.sets
        for it in ranges
        if it.subnet.covers(address)
    ]
    return min(found, key=lambda it: it[:4])[4] if found else None
