"""Owns a second opinion: who holds, cools and is out of use, kept by hand from what commands answered, in plain dicts.

It knows nothing of the core's decisions: free addresses come from sets of integers, one address at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ipamd.core.addresses import Address, usable_bounds
from ipamd.core.commands import Add
from ipamd.core.model import FOREVER, Event, EventKind, PoolDefinition, Range, Strategy
from ipamd.core.outcomes import Granted, Released

Claim = tuple[str, str, str]
"""Who holds: pool, pod, interface."""

Place = tuple[str, Address]
"""An address in its space."""


@dataclass(frozen=True)
class Cool:
    """A freed address: who had it, since when, and until when it waits."""

    claim: Claim
    freed: int
    hard: int
    until: int


@dataclass
class Book:
    """What is so, by the book."""

    pools: dict[str, PoolDefinition] = field(default_factory=dict)
    held: dict[Claim, set[Address]] = field(default_factory=dict)
    until: dict[Claim, int] = field(default_factory=dict)
    """When a hold ends; bound ones are not in it."""

    pinned: set[tuple[str, str]] = field(default_factory=set)
    cooling: dict[Place, Cool] = field(default_factory=dict)
    quarantined: dict[Place, int | None] = field(default_factory=dict)
    cooldown_s: int = 300
    told: dict[Place, Claim] = field(default_factory=dict)
    """Who holds what, according to the events alone."""

    def holders(self) -> dict[Place, Claim]:
        """Who holds each address."""
        return {(self.pools[claim[0]].space, one): claim for claim, held in self.held.items() for one in held}

    def occupied(self, space: str) -> set[Address]:
        """What is not free in a space."""
        return {address for where, address in (*self.holders(), *self.cooling, *self.quarantined) if where == space}

    # What changes it

    def grant(self, outcome: Granted, pod: str, ifname: str, *, pin: bool, now: int, ttl_s: int | None) -> None:
        """An ADD was granted; a `ttl_s` of -1 is without end, None is for a container."""
        for grant in outcome.grants:
            claim = (grant.pool, pod, ifname)
            was_bound = claim in self.held and claim not in self.until
            mine = self.held.setdefault(claim, set())
            for one in grant.addresses:
                mine.add(one.address)
                self.cooling.pop((grant.space, one.address), None)
            if pin:
                self._pin(grant.pool, pod)
            if ttl_s is None:
                self.until.pop(claim, None)
            elif not was_bound:
                forever = ttl_s == FOREVER or claim[:2] in self.pinned
                self.until[claim] = FOREVER if forever else now + ttl_s * 1000

    def _pin(self, pool: str, pod: str) -> None:
        self.pinned.add((pool, pod))
        for claim in self.until:
            if claim[:2] == (pool, pod):
                self.until[claim] = FOREVER

    def let_go(self, outcome: Released, now: int) -> None:
        """Something was released."""
        for item in outcome.items:
            claim = (item.pool, item.pod_ref, item.ifname)
            assert self.held[claim] == set(item.addresses)
            if item.held:
                forever = claim[:2] in self.pinned or self.pools[item.pool].hold_s == FOREVER
                self.until[claim] = FOREVER if forever else now + self.pools[item.pool].hold_s * 1000
            else:
                self.free(claim, now)

    def free(self, claim: Claim, now: int) -> None:
        """A claim ends, and its addresses cool."""
        pool = self.pools[claim[0]]
        soft_s = self.cooldown_s if pool.cooldown_s is None else pool.cooldown_s
        soft_s = max(soft_s, pool.cooldown_min_s)
        for address in self.held.pop(claim):
            if soft_s:
                cool = Cool(claim, now, now + pool.cooldown_min_s * 1000, now + soft_s * 1000)
                self.cooling[pool.space, address] = cool
        self.until.pop(claim, None)
        if not any(other[:2] == claim[:2] for other in self.held):
            self.pinned.discard(claim[:2])

    def drop_pool(self, name: str, now: int) -> None:
        """A pool was deleted. What it had cools on, but for nobody in particular."""
        for claim in [one for one in self.held if one[0] == name]:
            self.free(claim, now)
        space = self.pools.pop(name).space
        for place, cool in list(self.cooling.items()):
            if place[0] == space and cool.claim[0] == name:
                self.cooling[place] = Cool(("", "", ""), cool.freed, cool.hard, cool.until)

    def pass_time(self, now: int) -> None:
        """End what is due."""
        for place in [one for one, until in self.quarantined.items() if until is not None and until <= now]:
            del self.quarantined[place]
        ended = [one for one, until in self.until.items() if until not in (FOREVER, None) and until <= now]
        due = [place for place, cool in self.cooling.items() if cool.until <= now]
        for claim in ended:
            self.free(claim, now)
        for place in due:
            del self.cooling[place]

    def hear(self, event: Event) -> None:
        """Follow the events: a holding begins with bound or held, goes on, and ends with released."""
        if event.address is None or event.kind in (EventKind.QUARANTINED, EventKind.UNQUARANTINED):
            return
        assert event.space is not None
        assert event.pool is not None
        assert event.pod_ref is not None
        assert event.ifname is not None
        place, claim = (event.space, event.address), (event.pool, event.pod_ref, event.ifname)
        if event.kind in (EventKind.BOUND, EventKind.HELD):
            assert self.told.setdefault(place, claim) == claim
        elif event.kind is EventKind.RELEASED:
            assert self.told.pop(place) == claim
        else:
            assert self.told[place] == claim

    # What is to be expected

    def plan(self, command: Add, now: int) -> list[Address | None] | None:
        """What an ADD must get by the book; None where the book does not say."""
        found = [self.pools.get(one.pool) for one in command.requests]
        if command.addresses or None in found:
            return None
        chosen: dict[str, set[Address]] = {}
        plan: list[Address | None] = []
        for pool in found:
            assert pool is not None
            claim = (pool.name, command.pod_ref, command.ifname)
            if claim in self.held or pool.strategy is not Strategy.LOWEST:
                return None
            for position in range(len(pool.sets)):
                taken = chosen.setdefault(pool.space, set())
                one = self.expected(pool, position, claim, taken, now)
                plan.append(one)
                if one is None:
                    return plan
                taken.add(one)
        return plan

    def expected(
        self, pool: PoolDefinition, position: int, claim: Claim, taken: set[Address], now: int
    ) -> Address | None:
        """What the lowest strategy gives to a pod that holds nothing in a set."""
        ranges = pool.sets[position]
        mine = self._own(pool.space, claim, ranges, taken)
        if mine:
            return mine
        free = self.free_of(pool, position, taken)
        return free[0] if free else self.cooled(pool, position, taken, now)

    def free_of(self, pool: PoolDefinition, position: int, taken: set[Address]) -> list[Address]:
        """The free addresses of a set, range by range."""
        occupied = self.occupied(pool.space) | taken
        return [one for inner in pool.sets[position] for one in numbers(inner) if one not in occupied]

    def cooled(self, pool: PoolDefinition, position: int, taken: set[Address], now: int) -> Address | None:
        """The longest cooled address of a set that nobody has to wait for any more."""
        ready = [
            (self.cooling[pool.space, one].freed, order, one)
            for order, inner in enumerate(pool.sets[position])
            for one in numbers(inner)
            if (pool.space, one) in self.cooling
            and self.cooling[pool.space, one].hard <= now
            and (pool.space, one) not in self.quarantined
            and one not in taken
        ]
        return min(ready)[2] if ready else None

    def _own(self, space: str, claim: Claim, ranges: Iterable[Range], taken: set[Address]) -> Address | None:
        given = {one for inner in ranges for one in numbers(inner)} - taken
        mine = [
            (-cool.freed, address)
            for (where, address), cool in self.cooling.items()
            if where == space and cool.claim == claim and address in given and (space, address) not in self.quarantined
        ]
        return min(mine)[1] if mine else None


def numbers(one: Range) -> list[Address]:
    """The addresses that a range may hand out, one by one."""
    low, high = usable_bounds(one.subnet)
    low = low if one.range_start is None else max(low, one.range_start)
    high = high if one.range_end is None else min(high, one.range_end)
    barred = {value for span in one.excludes for value in range(span.first, span.last + 1)} | {one.gateway}
    return [Address(one.subnet.family, value) for value in range(low, high + 1) if value not in barred]


def gives(ranges: Iterable[Range], address: Address) -> bool:
    """Whether a set may hand an address out."""
    return any(address in numbers(inner) for inner in ranges)


def given(pool: PoolDefinition, address: Address) -> bool:
    """Whether any set of a pool may hand an address out."""
    return any(gives(ranges, address) for ranges in pool.sets)


def in_subnet(pool: PoolDefinition, address: Address) -> bool:
    """Whether an address lies in any subnet of a pool."""
    return any(inner.subnet.covers(address) for ranges in pool.sets for inner in ranges)
