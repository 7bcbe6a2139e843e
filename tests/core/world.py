"""Owns the small world of the core's tests: pools in a few words, a state that checks every step, and a clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ipamd.core.addresses import Address, parse_address, parse_network, usable_bounds
from ipamd.core.changes import Drop, Occupy, Put, Vacate
from ipamd.core.commands import (
    Add,
    CallStart,
    ChangeSettings,
    Command,
    ConfirmSilence,
    CreatePool,
    Del,
    DropPool,
    Expire,
    FindNodes,
    LiftQuarantine,
    LoseNodes,
    Origin,
    PoolRequest,
    Reclaim,
    Release,
    ReplacePool,
    Report,
    SetQuarantine,
    SilentNode,
)
from ipamd.core.decide import Decision
from ipamd.core.entries import Stamp
from ipamd.core.intervals import Span
from ipamd.core.invariants import violations
from ipamd.core.inventory import Inventory, Listed, seen_of
from ipamd.core.memory import KEYS, MemoryState
from ipamd.core.model import (
    AssignedAddress,
    Attachment,
    Cooling,
    Event,
    EventKind,
    Node,
    Owner,
    Pool,
    PoolDefinition,
    Quarantine,
    Range,
    Reservation,
    Settings,
)
from ipamd.core.outcomes import Code, Granted, Outcome, Refused, Released

ORIGIN = Origin("test", "r-1")
WALL_MS = 1_700_000_000_000
NO_COOLDOWN = Settings(cooldown_s=0)


def addresses(*texts: str) -> tuple[Address, ...]:
    """Addresses from their texts."""
    return tuple(parse_address(text) for text in texts)


def span_of(text: str) -> Span:
    """An exclude: `a`, `a-b` or a CIDR."""
    if "/" in text:
        network = parse_network(text)
        return Span(network.value, network.last)
    first, _, last = text.partition("-")
    return Span(parse_address(first).value, parse_address(last or first).value)


def range_of(subnet: str, start: str = "", end: str = "", *, exclude: tuple[str, ...] = (), gateway: str = "") -> Range:
    """A range, with the bounds that count worked out."""
    network = parse_network(subnet)
    first, last = usable_bounds(network)
    begin = parse_address(start).value if start else None
    finish = parse_address(end).value if end else None
    return Range(
        network,
        first if begin is None else max(first, begin),
        last if finish is None else min(last, finish),
        begin,
        finish,
        tuple(span_of(text) for text in exclude),
        parse_address(gateway).value if gateway else None,
    )


def definition(name: str, *sets: str | Range | tuple[Range, ...], **rest: Any) -> PoolDefinition:
    """A pool's definition; a set is a subnet, a range, or several ranges."""
    made = tuple((range_of(one),) if isinstance(one, str) else one for one in sets)
    return PoolDefinition(name, tuple((one,) if isinstance(one, Range) else one for one in made), **rest)


class LawError(AssertionError):
    """A decision broke a law."""


class CheckedState(MemoryState):
    """A state in memory that looks at each decision: the laws hold after it, and its changes fit what was there."""

    def carry_out(self, decision: Decision) -> None:
        """Write a decision, and check it."""
        spaces = self._spaces()
        before = {space: set(self.occupied(space)) for space in spaces}
        for change in decision.changes:
            self._fits(change)
            self.write(change)
        self.last_id, self.last_event = decision.last_id, decision.last_event
        self._check_occupation(decision, before)
        broken = violations(self)
        if broken:
            raise LawError("; ".join(broken))

    def _spaces(self) -> set[str]:
        occupying = {space for kind in (AssignedAddress, Cooling, Quarantine) for space, _ in self._tables[kind]}
        return occupying | {one.space for one in self.all(Pool)}

    def _fits(self, change: object) -> None:
        if isinstance(change, Drop):
            kind = type(change.record)
            if self._get(kind, *KEYS[kind](change.record)) != change.record:
                raise LawError(f"{change.record} is dropped, but is not what is stored")
        if isinstance(change, Put) and isinstance(change.record, AssignedAddress):
            old = self.holder(change.record.space, change.record.address)
            if old is not None and old.attachment_id != change.record.attachment_id:
                raise LawError(f"{change.record} is taken from {old}")

    def _check_occupation(self, decision: Decision, before: dict[str, set[Address]]) -> None:
        """Occupy and Vacate tell exactly how the set of what is not free has changed."""
        told = {space: set(there) for space, there in before.items()}
        for change in decision.changes:
            if isinstance(change, Occupy | Vacate):
                there = told.setdefault(change.space, set())
                if (change.address in there) is isinstance(change, Occupy):
                    raise LawError(f"{change} tells what is so already")
                there ^= {change.address}
        for space in self._spaces() | set(told):
            if set(self.occupied(space)) != told.get(space, set()):
                raise LawError(f"Occupy and Vacate in space {space} tell {told.get(space)}, not {self.occupied(space)}")


@dataclass
class World:
    """A state, the log's clock, and the calls that pods and operators make, in a few words."""

    state: MemoryState = field(default_factory=CheckedState)
    log_ms: int = 1_000
    log_index: int = 0

    @property
    def stamp(self) -> Stamp:
        """Now, at the next place in the log."""
        return Stamp(self.log_ms, WALL_MS + self.log_ms, self.log_index + 1)

    def run(self, command: Command) -> Outcome:
        """Carry out a command."""
        stamp = self.stamp
        self.log_index += 1
        return self.state.run(command, stamp)

    def wait(self, seconds: float) -> None:
        """Let time pass, and what is due end."""
        self.log_ms += round(seconds * 1000)
        self.run(Expire(ORIGIN))

    def settings(self, **values: Any) -> None:
        """Change settings."""
        self.run(ChangeSettings(ORIGIN, **values))

    def pool(self, name: str, *sets: str | Range | tuple[Range, ...], **rest: Any) -> Outcome:
        """Make a pool; without cooldown, where none is given."""
        rest.setdefault("cooldown_s", 0)
        return self.run(CreatePool(ORIGIN, definition(name, *sets, **rest)))

    def replace(self, name: str, *sets: str | Range | tuple[Range, ...], force: bool = False, **rest: Any) -> Outcome:
        """Replace a pool's definition."""
        rest.setdefault("cooldown_s", 0)
        return self.run(ReplacePool(ORIGIN, definition(name, *sets, **rest), force))

    def drop_pool(self, name: str, *, force: bool = False) -> Outcome:
        """Delete a pool."""
        return self.run(DropPool(ORIGIN, name, force))

    def add(
        self,
        pod: str,
        container: str | None = None,
        *,
        pools: str = "p",
        ifname: str = "eth0",
        node: str | None = "n1",
        net: str = "k",
        at: int | None = None,
        boot: str = "b1",
        spooled: bool = False,
        uid: str | None = None,
        ips: tuple[str, ...] = (),
        pin: bool = False,
        ttl_s: int | None = None,
        inode: int | None = None,
    ) -> Outcome:
        """The ADD of a container (by default named after the pod); `at`: its start in ns, by default now."""
        owner = Owner(container or pod, node, net, "/run/netns/x" if inode else None, inode)
        call = CallStart(boot, self.log_ms if at is None else at, spooled)
        requests = tuple(PoolRequest(name) for name in pools.split())
        return self.run(Add(ORIGIN, requests, pod, ifname, owner, call, uid, addresses(*ips), pin, ttl_s))

    def reserve(self, pod: str, *, pools: str = "p", ifname: str = "eth0", **rest: Any) -> Outcome:
        """An ADD through the API, without a container: the reservation is held."""
        rest["addresses"] = addresses(*rest.pop("ips", ()))
        requests = tuple(PoolRequest(name) for name in pools.split())
        return self.run(Add(ORIGIN, requests, pod, ifname, None, **rest))

    def delete(
        self,
        container: str,
        *,
        ifname: str = "eth0",
        node: str = "n1",
        net: str = "k",
        at: int | None = None,
        boot: str = "b1",
        spooled: bool = False,
    ) -> Outcome:
        """The DEL of a container."""
        call = CallStart(boot, self.log_ms if at is None else at, spooled)
        return self.run(Del(ORIGIN, node, net, container, ifname, call))

    def release(self, pod: str, pool: str = "p", **rest: Any) -> Outcome:
        """A release through the API."""
        return self.run(Release(ORIGIN, pool, pod, **rest))

    def reclaim(self, **values: Any) -> Outcome:
        """A reclaim of bindings that somebody looked at."""
        return self.run(Reclaim(ORIGIN, **values))

    def report(
        self,
        node: str = "n1",
        *,
        boot: str | None = "b1",
        index: int | None = None,
        spooled: int = 0,
        **alive: bool | None,
    ) -> Outcome:
        """A node's report: what became of its containers, by their names (eth0, network k). `index`: by default now."""
        listed = tuple(Listed("k", container, "eth0", state) for container, state in alive.items())
        inventory = Inventory(node, boot, self.log_index if index is None else index, listed, spooled)
        seen = tuple(seen_of(self.state, inventory, self.log_ms))
        return self.run(Report(ORIGIN, node, boot, inventory.index, seen, spooled))

    def lose(self, *nodes: str, doubtful: tuple[str, ...] = ()) -> Outcome:
        """The leader counts nodes as lost."""
        return self.run(LoseNodes(ORIGIN, tuple(SilentNode(node, WALL_MS) for node in nodes), doubtful))

    def find(self, *nodes: str) -> Outcome:
        """Lost nodes are heard again."""
        return self.run(FindNodes(ORIGIN, nodes))

    def confirm(self) -> Outcome:
        """An operator confirms a mass silence."""
        return self.run(ConfirmSilence(ORIGIN))

    def quarantine(self, address: str, for_s: int | None = None, space: str = "default") -> Outcome:
        """Take an address out of use."""
        return self.run(SetQuarantine(ORIGIN, space, parse_address(address), for_s))

    def lift(self, address: str, space: str = "default") -> Outcome:
        """Put it back."""
        return self.run(LiftQuarantine(ORIGIN, space, parse_address(address)))

    # What is there

    def holders(self, pool: str = "p") -> dict[str, str]:
        """Who holds what in a pool: address to pod and interface."""
        found = self.state.pool(pool)
        return {
            str(one.address): f"{self._reservation(one).pod_ref} {self._attachment(one).ifname}"
            for one in (self.state.assigned_of_pool(found.id) if found else ())
        }

    def attachment(self, pod: str, ifname: str = "eth0", pool: str = "p") -> Attachment | None:
        """A pod's attachment in a pool."""
        reservation = self.reservation(pod, pool)
        there = self.state.attachments(reservation.id) if reservation else ()
        return next((one for one in there if one.ifname == ifname), None)

    def bound(self, pod: str, ifname: str = "eth0", pool: str = "p") -> Attachment:
        """A pod's attachment that must be there."""
        found = self.attachment(pod, ifname, pool)
        assert found is not None, f"{pod} has no {ifname} in {pool}"
        return found

    def reservation(self, pod: str, pool: str = "p") -> Reservation | None:
        """A pod's reservation in a pool."""
        found = self.state.pool(pool)
        return self.state.reservation(found.id, pod) if found else None

    def node(self, name: str = "n1") -> Node:
        """A node that must be known."""
        found = self.state.node(name)
        assert found is not None, f"there is no node {name}"
        return found

    def kinds(self, after: int = 0) -> list[EventKind]:
        """The kinds of what happened."""
        return [one.kind for one in self.events(after)]

    def occupied(self, space: str = "default") -> list[str]:
        """What is not free in a space."""
        return [str(one) for one in self.state.occupied(space)]

    def events(self, after: int = 0) -> list[Event]:
        """What happened."""
        return [one for one in self.state.all(Event) if one.index > after]

    def _attachment(self, one: AssignedAddress) -> Attachment:
        found = self.state.attachment_by_id(one.attachment_id)
        assert found is not None
        return found

    def _reservation(self, one: AssignedAddress) -> Reservation:
        found = self.state.reservation_by_id(self._attachment(one).reservation_id)
        assert found is not None
        return found


def texts(outcome: Outcome) -> list[str]:
    """The addresses that an ADD was granted, as text."""
    assert isinstance(outcome, Granted), outcome
    return [str(one.address) for grant in outcome.grants for one in grant.addresses]


def granted(outcome: Outcome) -> str:
    """The one address that an ADD was granted."""
    (text,) = texts(outcome)
    return text


def refused(outcome: Outcome) -> Code:
    """Why something was refused."""
    assert isinstance(outcome, Refused), outcome
    return outcome.code


def freed(outcome: Outcome) -> list[str]:
    """The addresses that were given up, as text."""
    assert isinstance(outcome, Released), outcome
    return [str(address) for item in outcome.items if not item.held for address in item.addresses]


def stale(outcome: Outcome) -> bool:
    """Whether a release named what is not current."""
    assert isinstance(outcome, Released), outcome
    return outcome.stale
