"""All commands in any order over small pools: the laws hold, and a second opinion kept by hand agrees on every address."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from ipamd.core.addresses import Address
from ipamd.core.commands import (
    Add,
    Binding,
    CallStart,
    ChangeSettings,
    Command,
    CreatePool,
    Del,
    DropPool,
    Expire,
    ForgetNode,
    LiftQuarantine,
    PoolRequest,
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
)
from ipamd.core.outcomes import Code, Granted, Outcome, PoolDropped, PoolStored, Refused, Released
from tests.core.book import Book, Claim, given, gives, in_subnet
from tests.core.draws import containers, definitions, ifnames, nodes, picks, pods, pools, requests, some_address, spaces
from tests.core.world import ORIGIN, WALL_MS, CheckedState


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
        plan = self.book.plan(command, self.log_ms)
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
        assert given(pool, address)
        assert (pool.space, address) not in self.book.quarantined
        cool = self.book.cooling.get((pool.space, address))
        if cool is not None and cool.claim != claim:
            assert cool.hard <= self.log_ms
            positions = [at for at, ranges in enumerate(pool.sets) if gives(ranges, address)]
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

    @rule(pick=picks, late_ms=st.sampled_from((0, 0, 0, 4000)))
    def delete_what_is_there(self, pick: int, late_ms: int) -> None:
        bound = [(one.owner, one.ifname) for one in self.state.all(Attachment) if one.owner is not None]
        if bound:
            owner, ifname = bound[pick % len(bound)]
            self._delete(owner.container_id or "", ifname, owner.node or "", late_ms)

    @rule(container=containers, ifname=ifnames, node=nodes)
    def delete(self, container: str, ifname: str, node: str) -> None:
        self._delete(container, ifname, node, 0)

    def _delete(self, container: str, ifname: str, node: str, late_ms: int) -> None:
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
        pick=picks,
        ifname=st.none() | ifnames,
        container=st.none() | containers,
        by_generation=st.booleans(),
        force=st.booleans(),
    )
    def release(
        self, *, pick: int, ifname: str | None, container: str | None, by_generation: bool, force: bool
    ) -> None:
        there = self.state.all(Attachment)
        if not there:
            return
        one = there[pick % len(there)]
        reservation, pool = self.state.reservation_by_id(one.reservation_id), self.state.pool_by_id(one.pool_id)
        assert reservation is not None
        assert pool is not None
        generation = one.generation if by_generation else None
        outcome = self.run(Release(ORIGIN, pool.name, reservation.pod_ref, ifname, container, generation, force))
        if isinstance(outcome, Released):
            self.book.let_go(outcome, self.log_ms)

    @rule(target=seen)
    def look(self) -> tuple[Binding, ...]:
        return tuple(Binding(one.id, one.generation) for one in self.state.all(Attachment))

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
        assert all(item.node == node for item in outcome.items if node is not None)
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
            left = {(claim[1], claim[2], address) for claim, address in mine if not given(wanted, address)}
            assert {msgspec.structs.astuple(one) for one in outcome.stranded} == left
            self.book.pools[wanted.name] = outcome.pool.definition
        elif isinstance(outcome, Refused) and outcome.code is Code.POOL_IN_USE:
            assert not all(in_subnet(wanted, address) for _, address in mine)

    def _moved(self, wanted: PoolDefinition) -> bool:
        """Whether a replacement changes the ranges; else those who are stranded already stay so without force."""
        return self.book.pools[wanted.name].sets != wanted.sets

    @rule(pool=pools, force=st.sampled_from((False, False, False, True)))
    def drop_pool(self, pool: str, force: bool) -> None:
        outcome = self.run(DropPool(ORIGIN, pool, force))
        mine = [claim for claim in self.book.held if claim[0] == pool]
        if isinstance(outcome, PoolDropped):
            assert force or not mine
            self.book.drop_pool(pool, self.log_ms)
        elif isinstance(outcome, Refused) and outcome.code is Code.POOL_IN_USE:
            assert mine

    @rule(pick=picks, for_s=st.none() | st.sampled_from((3, 5, 6, 8)))
    def quarantine_what_is_not_free(self, pick: int, for_s: int | None) -> None:
        there = sorted({*self.book.holders(), *self.book.cooling})
        if there:
            self._quarantine(*there[pick % len(there)], for_s)

    @rule(space=spaces, address=some_address, for_s=st.none() | st.integers(0, 9))
    def quarantine(self, space: str, address: Address, for_s: int | None) -> None:
        self._quarantine(space, address, for_s)

    def _quarantine(self, space: str, address: Address, for_s: int | None) -> None:
        if not isinstance(self.run(SetQuarantine(ORIGIN, space, address, for_s)), Refused):
            self.book.quarantined[space, address] = None if for_s is None else self.log_ms + for_s * 1000

    @rule(pick=picks)
    def lift_what_is_there(self, pick: int) -> None:
        there = sorted(self.book.quarantined)
        if there:
            self._lift(*there[pick % len(there)])

    @rule(space=spaces, address=some_address)
    def lift(self, space: str, address: Address) -> None:
        self._lift(space, address)

    def _lift(self, space: str, address: Address) -> None:
        outcome = self.run(LiftQuarantine(ORIGIN, space, address))
        assert isinstance(outcome, Refused) is ((space, address) not in self.book.quarantined)
        self.book.quarantined.pop((space, address), None)

    @rule(node=nodes, to=nodes | st.just("n3"))
    def rename_node(self, node: str, to: str) -> None:
        on_it = [one.id for one in self.state.all(Attachment) if one.owner and one.owner.node == node]
        if not isinstance(self.run(RenameNode(ORIGIN, node, to)), Refused):
            moved = [self.state.attachment_by_id(one) for one in on_it]
            assert {one.owner.node for one in moved if one and one.owner} <= {to}

    @rule(node=nodes)
    def forget_node(self, node: str) -> None:
        self.run(ForgetNode(ORIGIN, node))

    @rule(cooldown_s=st.sampled_from((0, 5)))
    def put_settings(self, cooldown_s: int) -> None:
        self.run(ChangeSettings(ORIGIN, cooldown_s=cooldown_s, tombstone_s=7))
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


TestLaws = Laws.TestCase
TestLaws.settings = settings(max_examples=100, stateful_step_count=50)
