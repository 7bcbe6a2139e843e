"""Owns a second allocator, of sets of single addresses: it reads configurations and gives addresses by brute force.

It shares nothing with the program: addresses and networks are those of the standard library, free is what is left of
a set when everything else is taken out of it. It serves small subnets only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Ip = IPv4Address | IPv6Address
Net = IPv4Network | IPv6Network
Key = tuple[str, frozenset[Net]]
"""A pool is its space and its subnets."""

Place = tuple[str, Ip]
Claim = tuple[Key, str, str]
"""Who holds: pool, pod, interface."""


@dataclass(frozen=True)
class Written:
    """A range of a configuration."""

    net: Net
    start: Ip | None = None
    end: Ip | None = None
    excludes: tuple[tuple[Ip, Ip], ...] = ()
    gateway: Ip | None = None
    """Of host-local; that of whereabouts stands beside the ranges."""


@dataclass(frozen=True)
class Config:
    """What a configuration says. `local`: as host-local has it, else as whereabouts has it."""

    local: bool
    sets: tuple[tuple[Written, ...], ...]
    gateway: Ip | None = None
    space: str = "default"
    separate: bool = False
    bridge: bool = False


@dataclass(frozen=True)
class Part:
    """A range as a request may use it: what it gives, lowest first, and the gateway that is told."""

    net: Net
    gives: tuple[Ip, ...]
    gateway: Ip | None


@dataclass(frozen=True)
class Wanted:
    """One pool of a request, and its ranges in the order in which they are tried."""

    key: Key
    parts: tuple[Part, ...]

    @property
    def allowed(self) -> set[Ip]:
        return {ip for part in self.parts for ip in part.gives}


@dataclass(frozen=True)
class Declared:
    """A pool of an operator: what it gives of each subnet, and its gateways."""

    gives: dict[Net, frozenset[Ip]]
    gateways: dict[Net, Ip]


@dataclass(frozen=True)
class Cool:
    """A freed address."""

    claim: Claim
    freed_ms: int
    until_ms: int


def usable(net: Net) -> list[Ip]:
    """All addresses that may be given at all."""
    hosts: list[Ip] = list(net)
    if len(hosts) <= 2:
        return hosts
    return hosts[1:-1] if net.version == 4 else hosts[1:]


def bounded(written: Written) -> list[Ip] | None:
    """The addresses between the bounds; None: they are no bounds."""
    first, last = written.start or written.net[0], written.end or written.net[-1]
    if first not in written.net or last not in written.net or int(first) > int(last):
        return None
    return [ip for ip in usable(written.net) if int(first) <= int(ip) <= int(last)] or None


def gateway_of(config: Config, written: Written) -> Ip | None:
    """The gateway of a range, as its dialect has it."""
    if config.local:
        default = written.net[1] if written.net.num_addresses > 2 else None
        return written.gateway or default
    return config.gateway if config.gateway is not None and config.gateway.version == written.net.version else None


@dataclass
class Brute:
    """The second allocator's state."""

    cooldown_ms: int
    declared: dict[Key, Declared] = field(default_factory=dict)
    held: dict[Place, Claim] = field(default_factory=dict)
    cooling: dict[Place, Cool] = field(default_factory=dict)
    quarantined: set[Place] = field(default_factory=set)
    made: set[Key] = field(default_factory=set)

    # Reading

    def read(self, config: Config) -> list[Wanted] | None:
        """What a configuration asks for; None: it is to be refused."""
        between = [[bounded(one) for one in inner] for inner in config.sets]
        if not config.sets or not all(config.sets) or any(one is None for inner in between for one in inner):
            return None
        seen: set[Ip] = set()
        for ips in (set(one or ()) for inner in between for one in inner):
            if seen & ips:
                return None
            seen |= ips
        if any(len({one.net.version for one in inner}) > 1 for inner in config.sets):
            return None
        gateways = [(one.net, one.gateway) for inner in config.sets for one in inner if one.gateway is not None]
        if any(net.version != gateway.version for net, gateway in gateways):
            return None
        wanted = [self._wanted(config, inner) for inner in config.sets]
        return wanted if len({one.key for one in wanted}) == len(wanted) else None

    def _wanted(self, config: Config, inner: Sequence[Written]) -> Wanted:
        nets = frozenset(one.net for one in inner)
        space = f"only {config.space} {sorted(map(str, nets))}" if config.separate else config.space
        key = (space, nets)
        gateways = {gateway_of(config, one) for ranges in config.sets for one in ranges}
        return Wanted(key, tuple(self._part(config, key, one, gateways) for one in inner))

    def _part(self, config: Config, key: Key, written: Written, gateways: set[Ip | None]) -> Part:
        gives = set(bounded(written) or ()) - gateways
        for first, last in written.excludes:
            gives = {ip for ip in gives if not int(first) <= int(ip) <= int(last)}
        gateway, pool = gateway_of(config, written), self.declared.get(key)
        if pool is not None:
            gives &= pool.gives[written.net]
            gateway = gateway or pool.gateways.get(written.net)
        return Part(written.net, tuple(sorted(gives - set(self._taken(config, written, gateway)), key=int)), gateway)

    def _taken(self, config: Config, written: Written, gateway: Ip | None) -> Iterator[Ip]:
        """What a bridge takes: the first host of each range without gateway."""
        for one in (one for inner in config.sets for one in inner if config.bridge and one.net.num_addresses > 1):
            if (gateway if one.net == written.net else gateway_of(config, one)) is None:
                yield one.net[1]

    # Time and operators

    def pass_time(self, now_ms: int) -> None:
        """End what has cooled."""
        self.cooling = {place: cool for place, cool in self.cooling.items() if cool.until_ms > now_ms}

    # Pods

    def add(self, wanted: Sequence[Wanted], pod: str, ifname: str, asked_for: Sequence[Ip]) -> list[Ip] | int:
        """The addresses that an ADD gets, or the code of its refusal."""
        given: list[Ip | None] = [self._own(one, pod, ifname) for one in wanted]
        owned = list(given)
        insisted: set[int] = set()
        for ip in dict.fromkeys(asked_for):
            at = self._seat(wanted, owned, ip)
            if at is None or at in insisted or owned[at] not in (None, ip):
                return 111
            if owned[at] is None and (
                (wanted[at].key[0], ip) in self.held or (wanted[at].key[0], ip) in self.quarantined
            ):
                return 111
            insisted.add(at)
            given[at] = ip
        for at, one in enumerate(wanted):
            if given[at] is None:
                chosen = {ip for other, ip in zip(wanted, given, strict=True) if ip and other.key[0] == one.key[0]}
                given[at] = self._choose(one, pod, ifname, chosen)
                if given[at] is None:
                    return 110
        result = [ip for ip in given if ip is not None]
        for one, ip in zip(wanted, result, strict=True):
            self.made.add(one.key)
            self.held[one.key[0], ip] = (one.key, pod, ifname)
            self.cooling.pop((one.key[0], ip), None)
        return result

    def _own(self, wanted: Wanted, pod: str, ifname: str) -> Ip | None:
        mine = [place[1] for place, claim in self.held.items() if claim == (wanted.key, pod, ifname)]
        return mine[0] if mine else None

    def _seat(self, wanted: Sequence[Wanted], owned: Sequence[Ip | None], ip: Ip) -> int | None:
        """Which pool an address that is insisted on belongs to: the one where it is held, else the one that gives it."""
        if ip in owned:
            return owned.index(ip)
        return next((at for at, one in enumerate(wanted) if ip in one.allowed), None)

    def _choose(self, wanted: Wanted, pod: str, ifname: str, chosen: set[Ip]) -> Ip | None:
        space = wanted.key[0]
        out = chosen | {ip for where, ip in self.quarantined if where == space}
        cool = {ip: one for (where, ip), one in self.cooling.items() if where == space and ip not in out}
        before = [ip for ip, one in cool.items() if one.claim == (wanted.key, pod, ifname) and ip in wanted.allowed]
        if before:
            return min(before, key=lambda ip: (-cool[ip].freed_ms, int(ip)))
        taken = out | set(cool) | {ip for where, ip in self.held if where == space}
        for part in wanted.parts:
            for ip in part.gives:
                if ip not in taken:
                    return ip
        coolest = [
            (cool[ip].freed_ms, at, int(ip), ip)
            for at, part in enumerate(wanted.parts)
            for ip in part.gives
            if ip in cool
        ]
        return min(coolest)[3] if coolest else None

    def delete(self, pod: str, ifname: str, now_ms: int) -> set[Ip]:
        """What a DEL gives back."""
        mine = {place: claim for place, claim in self.held.items() if claim[1:] == (pod, ifname)}
        for place, claim in mine.items():
            del self.held[place]
            if self.cooldown_ms:
                self.cooling[place] = Cool(claim, now_ms, now_ms + self.cooldown_ms)
        return {ip for _, ip in mine}
