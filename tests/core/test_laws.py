"""All commands in any order over small pools: the laws hold, and a second opinion kept by hand agrees on every address."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from ipamd.core.addresses import Address
from ipamd.core.commands import (
    Add,
    Binding,
    CallStart,
    Command,
    CreatePool,
    Del,
    DropPool,
    Expire,
    ForgetNode,
    LiftQuarantine,
    PoolRequest,
    PutSettings,
    Reclaim,
    ReclaimCause,
    Release,
    RenameNode,
    ReplacePool,
    SetQuarantine,
)
from ipamd.core.decide import decide, expire
from ipamd.core.entries import Stamp
from ipamd.core.model import (
    FOREVER,
    AssignedAddress,
    Attachment,
    Cooling,
    Event,
    Owner,
    Pool,
    PoolDefinition,
    Quarantine,
    Reservation,
    Settings,
    Strategy,
)
from ipamd.core.outcomes import Code, Granted, Outcome, PoolDropped, PoolStored, Refused, Released
from tests.core.book import Book, Claim, gives, in_subnet
from tests.core.world import ORIGIN, WALL_MS, CheckedState, addresses, definition, range_of

PODS = ("t/a", "t/b", "t/c", "t/d")
SPACES = {"a": "default", "b": "default", "c": "blue"}
NODES = ("n1", "n2", "n3")
SETS: tuple[tuple[Any, ...], ...] = (
    (range_of("192.0.2.0/29"),),
    (range_of("192.0.2.0/29", exclude=("192.0.2.2-192.0.2.3",), gateway="192.0.2.1"),),
    (range_of("192.0.2.4/30"),),
    ((range_of("192.0.2.0/30"), range_of("192.0.2.8/31"), range_of("192.0.2.4/30", "192.0.2.6")),),
    (range_of("192.0.2.0/29"), range_of("2001:db8::/126")),
    (range_of("2001:db8::/126", gateway="2001:db8::2"), range_of("192.0.2.0/28", end="192.0.2.3")),
    (range_of("2001:db8::/127"),),
    (range_of("192.0.2.0/29"), range_of("192.0.2.8/30")),
)
ADDRESSES = addresses(*(f"192.0.2.{number}" for number in range(12)), "2001:db8::", "2001:db8::1", "2001:db8::3")

pools = st.sampled_from(sorted(SPACES))
pods = st.sampled_from(PODS)
nodes = st.sampled_from(NODES)
containers = st.sampled_from(("c1", "c2", "c3"))
ifnames = st.sampled_from(("eth0", "net1"))
some_address = st.sampled_from(ADDRESSES)


@st.composite
def definitions(draw: st.DrawFn) -> PoolDefinition:
    name = draw(pools)
    return definition(
        name,
        *draw(st.sampled_from(SETS)),
        space=SPACES[name],
        strategy=draw(st.sampled_from((Strategy.LOWEST, *Strategy))),
        cooldown_s=draw(st.sampled_from((0, 8, None))),
        cooldown_min_s=draw(st.sampled_from((0, 0, 3))),
        hold_s=draw(st.sampled_from((0, 0, 6, FOREVER))),
        allow_overlap=draw(st.sampled_from((True, True, True, False))),
    )


@st.composite
def requests(draw: st.DrawFn) -> tuple[PoolRequest, ...]:
    names = draw(st.lists(pools, min_size=1, max_size=2, unique=True))
    return tuple(PoolRequest(name) for name in names)


class Laws(RuleBasedStateMachine):
    """The state, the book, and a clock."""

    seen = Bundle("seen")
    """Bindings that somebody saw at some time."""

    def __init__(self) -> None:
        super().__init__()
        self.state = CheckedState()
        self.book = Book()
        self.log_ms = 1000
        self.heard = 0

    # The way of every command

    def run(self, command: Command) -> Outcome:
        """Time first, then the command; a refusal changes nothing."""
        stamp = Stamp(self.log_ms, WALL_MS + self.log_ms)
        self.state.carry_out(expire(self.state, stamp))
        self.book.pass_time(self.log_ms)
        before = self.tables()
        decision = decide(self.state, command, stamp)
        self.state.carry_out(decision)
        if isinstance(decision.outcome, Refused):
            assert decision.changes == ()
            assert self.tables() == before
        return decision.outcome

    def tables(self) -> dict[type, dict[Any, Any]]:
        return {kind: dict(table) for kind, table in self.state._tables.items()}

    # Pods

    @rule(
        wanted=requests(),
        pod=pods,
        ifname=ifnames,
        node=nodes,
        container=containers,
        late_ms=st.sampled_from((0, 0, 0, 4000)),
        uid=st.sampled_from((None, None, "u1", "u2")),
        ips=st.just(()) | st.just(()) | st.tuples(some_address) | st.tuples(some_address, some_address),
        pin=st.sampled_from((False, False, False, True)),
    )
    def add(
        self,
        *,
        wanted: tuple[PoolRequest, ...],
        pod: str,
        ifname: str,
        node: str,
        container: str,
        late_ms: int,
        uid: str | None,
        ips: tuple[Address, ...],
        pin: bool,
    ) -> None:
        call = CallStart("b1", self.log_ms - late_ms)
        command = Add(ORIGIN, wanted, pod, ifname, Owner(container, node, "k"), call, uid, ips, pin)
        self._add(command)

    @rule(
        wanted=requests(),
        pod=pods,
        ifname=ifnames,
        ttl_s=st.sampled_from((None, 0, 5)),
        ips=st.just(()) | st.tuples(some_address),
        pin=st.sampled_from((False, False, True)),
    )
    def reserve(
        self,
        *,
        wanted: tuple[PoolRequest, ...],
        pod: str,
        ifname: str,
        ttl_s: int | None,
        ips: tuple[Address, ...],
        pin: bool,
    ) -> None:
        self._add(Add(ORIGIN, wanted, pod, ifname, None, None, None, ips, pin, ttl_s))

    def _add(self, command: Add) -> None:
        self.book.pass_time(self.log_ms)
        plan = self._plan(command)
        outcome = self.run(command)
        if isinstance(outcome, Granted):
            self._check_grant(command, outcome, plan)
            ttl_s = None if command.owner else FOREVER if command.ttl_s is None else command.ttl_s
            names = (command.pod_ref, command.ifname)
            self.book.grant(outcome, *names, pin=command.pin, now=self.log_ms, ttl_s=ttl_s)
        else:
            assert isinstance(outcome, Refused)
            if plan is not None and outcome.code is not Code.LATE:
                assert None in plan or outcome.code is Code.POOL_NOT_FOUND
            if outcome.code is Code.POOL_EXHAUSTED and not command.addresses:
                self._check_exhausted(command, outcome)

    def _plan(self, command: Add) -> list[Address | None] | None:
        """What an ADD must get by the book; None where the book does not say."""
        found = [self.book.pools.get(one.pool) for one in command.requests]
        if command.addresses or None in found:
            return None
        chosen: dict[str, set[Address]] = {}
        plan: list[Address | None] = []
        for pool in found:
            assert pool is not None
            claim = (pool.name, command.pod_ref, command.ifname)
            if claim in self.book.held or pool.strategy is not Strategy.LOWEST:
                return None
            for position in range(len(pool.sets)):
                taken = chosen.setdefault(pool.space, set())
                one = self.book.expected(pool, position, claim, taken, self.log_ms)
                plan.append(one)
                if one is None:
                    return plan
                taken.add(one)
        return plan

    def _check_grant(self, command: Add, outcome: Granted, plan: list[Address | None] | None) -> None:
        given = [one.address for grant in outcome.grants for one in grant.addresses]
        if plan is not None:
            assert given == plan
        assert set(command.addresses) <= set(given)
        assert [grant.pool for grant in outcome.grants] == [one.pool for one in command.requests]
        holders = self.book.holders()
        for grant in outcome.grants:
            pool, claim = self.book.pools[grant.pool], (grant.pool, command.pod_ref, command.ifname)
            mine = self.book.held.get(claim, set())
            assert len(grant.addresses) == len(pool.sets)
            kept = {one.address for held in grant.held for one in held.addresses if held.attachment.ifname == claim[2]}
            assert mine <= kept, "a pod keeps what it has"
            for address in {one.address for one in grant.addresses} - mine:
                assert (grant.space, address) not in holders
                self._check_new(pool, claim, address, asked_for=address in command.addresses)

    def _check_new(self, pool: PoolDefinition, claim: Claim, address: Address, *, asked_for: bool) -> None:
        """A newly given address is one that the pool gives, in nobody's way, and cools for others only if it must."""
        assert gives(pool, address)
        assert (pool.space, address) not in self.book.quarantined
        cool = self.book.cooling.get((pool.space, address))
        if cool is not None and cool.claim != claim:
            assert cool.hard <= self.log_ms
            positions = [at for at in range(len(pool.sets)) if gives_in(pool, at, address)]
            # What the same ADD took elsewhere is free by the book still: at most one for each other set.
            most = sum(len(one.sets) for one in self.book.pools.values()) - 1
            assert asked_for or any(len(self.book.free_of(pool, at, set())) <= most for at in positions)

    def _check_exhausted(self, command: Add, outcome: Refused) -> None:
        assert outcome.pool is not None
        assert outcome.position is not None
        pool = self.book.pools[outcome.pool]
        others = sum(len(self.book.pools[one.pool].sets) for one in command.requests) - 1
        assert len(self.book.free_of(pool, outcome.position, set())) <= others
        if len(command.requests) == 1 and others == 0:
            assert self.book.cooled(pool, outcome.position, set(), self.log_ms) is None

    @rule(container=containers, ifname=ifnames, node=nodes, late_ms=st.sampled_from((0, 0, 0, 4000)))
    def delete(self, container: str, ifname: str, node: str, late_ms: int) -> None:
        mine = {
            one.id
            for one in self.state.all(Attachment)
            if one.owner and (one.owner.container_id, one.owner.node, one.ifname) == (container, node, ifname)
        }
        others = {one.id: one for one in self.state.all(Attachment) if one.owner and one.id not in mine}
        call = CallStart("b1", self.log_ms - late_ms)
        outcome = self.run(Del(ORIGIN, node, "k", container, ifname, call))
        assert isinstance(outcome, Released)
        self.book.let_go(outcome, self.log_ms)
        assert others == {one.id: one for one in self.state.all(Attachment) if one.owner and one.id not in mine}

    @rule(
        pool=pools,
        pod=pods,
        ifname=st.none() | ifnames,
        container=st.none() | containers,
        generation=st.none() | st.integers(1, 3),
        force=st.booleans(),
    )
    def release(
        self, *, pool: str, pod: str, ifname: str | None, container: str | None, generation: int | None, force: bool
    ) -> None:
        outcome = self.run(Release(ORIGIN, pool, pod, ifname, container, generation, force))
        if isinstance(outcome, Released):
            self.book.let_go(outcome, self.log_ms)

    @rule(target=seen, pod=pods)
    def look(self, pod: str) -> tuple[Binding, ...]:
        mine = {one.id for one in self.state.all(Reservation) if one.pod_ref == pod}
        return tuple(
            Binding(one.id, one.generation) for one in self.state.all(Attachment) if one.reservation_id in mine
        )

    @rule(
        bindings=seen,
        node=st.none() | nodes,
        cause=st.sampled_from(ReclaimCause),
        late_ms=st.none() | st.sampled_from((0, 4000)),
    )
    def reclaim(
        self, bindings: tuple[Binding, ...], node: str | None, cause: ReclaimCause, late_ms: int | None
    ) -> None:
        call = None if late_ms is None else CallStart("b1", self.log_ms - late_ms)
        current = {Binding(one.id, one.generation) for one in self.state.all(Attachment)}
        outcome = self.run(Reclaim(ORIGIN, cause, node, bindings, call))
        assert isinstance(outcome, Released)
        assert len(outcome.items) <= len(current & set(bindings))
        self.book.let_go(outcome, self.log_ms)

    # Operators

    @initialize(first=definitions(), second=definitions())
    def begin(self, first: PoolDefinition, second: PoolDefinition) -> None:
        for one in (first, second):
            self.create_pool(one)

    @rule(wanted=definitions())
    def create_pool(self, wanted: PoolDefinition) -> None:
        outcome = self.run(CreatePool(ORIGIN, wanted))
        if isinstance(outcome, PoolStored):
            assert outcome.created is (wanted.name not in self.book.pools)
            self.book.pools.setdefault(wanted.name, outcome.pool.definition)

    @rule(wanted=definitions(), force=st.booleans())
    def replace_pool(self, wanted: PoolDefinition, force: bool) -> None:
        self.book.pass_time(self.log_ms)
        mine = [(claim, one) for claim, held in self.book.held.items() for one in held if claim[0] == wanted.name]
        outcome = self.run(ReplacePool(ORIGIN, wanted, force))
        if isinstance(outcome, PoolStored):
            assert force or all(in_subnet(wanted, address) for _, address in mine if self._moved(wanted))
            left = {(claim[1], claim[2], address) for claim, address in mine if not gives(wanted, address)}
            assert {tuple(one.__getstate__()) for one in outcome.stranded} == left  # type: ignore[arg-type]
            self.book.pools[wanted.name] = outcome.pool.definition
        elif isinstance(outcome, Refused) and outcome.code is Code.POOL_IN_USE:
            assert not all(in_subnet(wanted, address) for _, address in mine)

    def _moved(self, wanted: PoolDefinition) -> bool:
        """Whether a replacement changes the ranges; else those who are stranded already stay so without force."""
        return self.book.pools[wanted.name].sets != wanted.sets

    @rule(pool=pools, force=st.booleans())
    def drop_pool(self, pool: str, force: bool) -> None:
        outcome = self.run(DropPool(ORIGIN, pool, force))
        mine = [claim for claim in self.book.held if claim[0] == pool]
        if isinstance(outcome, PoolDropped):
            assert force or not mine
            self.book.drop_pool(pool, self.log_ms)
        elif isinstance(outcome, Refused) and outcome.code is Code.POOL_IN_USE:
            assert mine

    @rule(
        space=st.sampled_from(sorted(set(SPACES.values()))), address=some_address, for_s=st.none() | st.integers(0, 9)
    )
    def quarantine(self, space: str, address: Address, for_s: int | None) -> None:
        if not isinstance(self.run(SetQuarantine(ORIGIN, space, address, for_s)), Refused):
            self.book.quarantined[space, address] = None if for_s is None else self.log_ms + for_s * 1000

    @rule(space=st.sampled_from(sorted(set(SPACES.values()))), address=some_address)
    def lift(self, space: str, address: Address) -> None:
        outcome = self.run(LiftQuarantine(ORIGIN, space, address))
        assert isinstance(outcome, Refused) is ((space, address) not in self.book.quarantined)
        self.book.quarantined.pop((space, address), None)

    @rule(node=nodes, to=nodes)
    def rename_node(self, node: str, to: str) -> None:
        self.run(RenameNode(ORIGIN, node, to))

    @rule(node=nodes)
    def forget_node(self, node: str) -> None:
        self.run(ForgetNode(ORIGIN, node))

    @rule(cooldown_s=st.sampled_from((0, 5)))
    def put_settings(self, cooldown_s: int) -> None:
        self.run(PutSettings(ORIGIN, Settings(cooldown_s=cooldown_s, tombstone_s=7)))
        self.book.cooldown_s = cooldown_s

    @rule(passed_ms=st.sampled_from((1, 1000, 3000, 5000, 20_000)))
    def wait(self, passed_ms: int) -> None:
        self.log_ms += passed_ms
        self.run(Expire(ORIGIN))

    # What must be so after each step

    @invariant()
    def book_and_state_agree(self) -> None:
        names = {one.id: one.name for one in self.state.all(Pool)}
        pods = {one.id: one.pod_ref for one in self.state.all(Reservation)}
        claims = {
            one.id: (names[one.pool_id], pods[one.reservation_id], one.ifname) for one in self.state.all(Attachment)
        }
        held = {(one.space, one.address): claims[one.attachment_id] for one in self.state.all(AssignedAddress)}
        assert held == self.book.holders()
        cooling = {
            (one.space, one.address): (one.freed_log_ms, one.hard_until_log_ms, one.until_log_ms)
            for one in self.state.all(Cooling)
        }
        assert cooling == {place: (it.freed, it.hard, it.until) for place, it in self.book.cooling.items()}
        quarantined = {(one.space, one.address): one.until_log_ms for one in self.state.all(Quarantine)}
        assert quarantined == self.book.quarantined
        holds = {
            claims[one.id]: one.hold_until_log_ms
            for one in self.state.all(Attachment)
            if one.hold_until_log_ms is not None
        }
        assert holds == self.book.until

    @invariant()
    def the_events_tell_who_holds_what(self) -> None:
        for event in self.state.all(Event)[self.heard :]:
            self.book.hear(event)
        self.heard = self.state.last_event
        assert self.book.told == self.book.holders()


def gives_in(pool: PoolDefinition, position: int, address: Address) -> bool:
    return any(one.gives(address) for one in pool.sets[position])


TestLaws = Laws.TestCase
TestLaws.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
