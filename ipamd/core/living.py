"""Owns what reports claim after a restore: a pod that lives has the addresses that its node lists for it.

An address that is free is recorded for that pod. One that is recorded for another pod is in dispute: neither is given
it until one of the two lets go. What the pod is recorded with by the backup alone gives way to what it really has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from ipamd.core.addresses import Address
from ipamd.core.commands import ClaimLiving
from ipamd.core.draft import Draft
from ipamd.core.giving import Giving
from ipamd.core.imports import pod_ref_of
from ipamd.core.inventory import Inventory, Listed
from ipamd.core.model import OLDEST, AssignedAddress, Attachment, EventKind, Owner, Pool, Reservation
from ipamd.core.names import InvalidName, check_ifname, check_network, check_pod_ref
from ipamd.core.outcomes import Done, Outcome
from ipamd.core.pools import place_in
from ipamd.core.ports import View
from ipamd.core.restorecommands import Living, Settled
from ipamd.core.restored import Disputed
from ipamd.core.values import replace
from ipamd.core.withheld import end_dispute, is_doubtful

Claim = tuple[Pool, Address]


def claim_living(draft: Draft, command: ClaimLiving) -> Outcome:
    """Record what living pods have; end the disputes that the node speaks of no more."""
    if draft.view.restored() is None:
        return Done()
    claims = _Claims(draft, command.node, _giving(draft.view, command.living))
    for one in command.settled:
        claims.settle(one)
    for living in command.living:
        claims.take(living)
    return Done()


def claimed(view: View, giving: Giving, node: str, living: Living) -> list[Claim]:
    """The addresses of a living pod that an unconfirmed pool would give, and that are not recorded for it yet.

    Nothing, if another container of the pod has called since the restore, or this one was deleted.
    """
    if living.cni_network and view.tombstone(node, living.cni_network, living.container_id, living.ifname):
        return []
    found: list[Claim] = []
    for address in dict.fromkeys(living.addresses):
        pool = _pool_of(view, giving, living, address)
        if pool is None:
            continue
        holder, mine = view.holder(pool.space, address), _mine(view, pool, living)
        is_its = mine is not None and _is_its(mine, node, living)
        if mine is not None and not is_its and not is_doubtful(view, mine):
            continue
        if holder is None or (mine is not None and holder.attachment_id == mine.id and not is_its):
            found.append((pool, address))
    return found


class Claims(NamedTuple):
    """What an inventory claims after a restore that the state does not know yet, and the disputes that it ends."""

    living: tuple[Living, ...] = ()
    settled: tuple[Settled, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to record."""
        return not (self.living or self.settled)

    def parts(self, count: int) -> Iterator[Claims]:
        """The same in parts of so many addresses and disputes at most, but for one pod that has more."""
        taken, at = 0, 0
        while taken < len(self.living) or at < len(self.settled):
            totals = accumulate(len(one.addresses) for one in self.living[taken : taken + count])
            few = sum(total <= count for total in totals) or 1
            yield Claims(self.living[taken : taken + few], self.settled[at : at + count])
            taken, at = taken + few, at + count


def claims_of(view: View, inventory: Inventory) -> Claims:
    """What an inventory claims, as the state is."""
    if view.restored() is None:
        return Claims()
    lines = [one for one in inventory.listed if one.alive is not False and one.addresses]
    told = [one for line in lines if (one := _living(inventory.node, line))]
    giving = _giving(view, told)
    living = [one for one in told if _is_news(view, giving, inventory.node, one)]
    used = {(line.container_id, address) for line in lines for address in line.addresses}
    settled = [
        Settled(one.space, one.address, one.node, one.container_id)
        for one in view.disputes()
        if one.node == inventory.node and (one.container_id, one.address) not in used
    ]
    node = view.node(inventory.node)
    is_itself = inventory.boot_id is not None and (node is None or not node.clash)
    return Claims(tuple(living), tuple(settled) if is_itself else ())


def _living(node: str, line: Listed) -> Living | None:
    """A line as a claim; None: its names are none."""
    pod_ref = line.pod_ref or pod_ref_of(node, line.container_id)
    try:
        check_pod_ref(pod_ref)
        check_ifname(line.ifname)
        check_network(line.cni_network or "any")
    except InvalidName:
        return None
    place = (line.netns, line.netns_inode)
    return Living(pod_ref, line.ifname, line.container_id, line.addresses, line.cni_network, line.pool, *place)


def _giving(view: View, living: Sequence[Living]) -> Giving:
    """The pools that claims are looked for in: all that are unconfirmed, for a node may list many addresses."""
    return Giving(view.unconfirmed() if living else ())


def _is_news(view: View, giving: Giving, node: str, living: Living) -> bool:
    if claimed(view, giving, node, living):
        return True
    return any(view.disputed(one.space, one.address) is None for one in disputes(view, giving, node, living, 0))


def disputes(view: View, giving: Giving, node: str, living: Living, now_ms: int) -> Iterator[Disputed]:
    """The addresses of a living pod that are recorded for another one."""
    for address in dict.fromkeys(living.addresses):
        pool = _pool_of(view, giving, living, address)
        holder = view.holder(pool.space, address) if pool else None
        if pool is None or holder is None or _is_own(view, holder, living):
            continue
        yield Disputed(pool.space, address, node, living.container_id, living.ifname, living.pod_ref, now_ms)


def _is_own(view: View, holder: AssignedAddress, living: Living) -> bool:
    """Whether an address is recorded for a living pod, or for its container under whatever name."""
    attachment = view.attachment_by_id(holder.attachment_id)
    reservation = view.reservation_by_id(attachment.reservation_id) if attachment else None
    if attachment is None or reservation is None:
        raise LookupError(f"{holder.address} in space {holder.space} is held by nobody")
    if attachment.owner is not None and attachment.owner.container_id == living.container_id:
        return True
    return (reservation.pod_ref, attachment.ifname) == (living.pod_ref, living.ifname)


def _pool_of(view: View, giving: Giving, living: Living, address: Address) -> Pool | None:
    """The unconfirmed pool that an address came from; None: none, or it cannot be told in which space.

    The pool that the node names counts. Else it is the one in which the pod has its reservation, or a declared one.
    """
    pools = giving.of(address)
    named = next((pool for pool in pools if pool.name == living.pool), None)
    if named is not None or len({pool.space for pool in pools}) != 1:
        return named
    own = (pool for pool in pools if view.reservation(pool.id, living.pod_ref) is not None)
    return next(own, None) or min(pools, key=lambda pool: pool.definition.inline)


def _mine(view: View, pool: Pool, living: Living) -> Attachment | None:
    """The interface of a living pod, as it is recorded in a pool."""
    reservation = view.reservation(pool.id, living.pod_ref)
    there = view.attachments(reservation.id) if reservation else ()
    return next((one for one in there if one.ifname == living.ifname), None)


def _is_its(mine: Attachment, node: str, living: Living) -> bool:
    owner = mine.owner
    return owner is not None and (owner.container_id, owner.node) == (living.container_id, node)


class _Claims:
    """Carries claims out. It remembers what it wrote: the view does not show it yet."""

    def __init__(self, draft: Draft, node: str, giving: Giving) -> None:
        self._draft, self._view, self._node, self._giving = draft, draft.view, node, giving
        self._taken: set[tuple[str, Address]] = set()
        self._reservations: dict[tuple[int, str], Reservation] = {}
        self._attached: set[tuple[int, str]] = set()
        self._disputed: dict[tuple[str, Address], Disputed] = {}
        self._ended: set[tuple[str, Address]] = set()

    def settle(self, one: Settled) -> None:
        """The node speaks of a dispute no more."""
        old = self._view.disputed(one.space, one.address)
        if old is not None and (old.node, old.container_id) == (one.node, one.container_id):
            self._end(old, "its node lists it no more")

    def take(self, living: Living) -> None:
        """What one living pod has."""
        self._dispute(living)
        by_pool: dict[int, list[Claim]] = {}
        for pool, address in claimed(self._view, self._giving, self._node, living):
            if (pool.space, address) not in self._taken:
                by_pool.setdefault(pool.id, []).append((pool, address))
        for claims in by_pool.values():
            self._record(living, claims[0][0], [address for _, address in claims])

    def _dispute(self, living: Living) -> None:
        for one in disputes(self._view, self._giving, self._node, living, self._draft.stamp.wall_ms):
            if (one.space, one.address) in self._taken or self._view.disputed(one.space, one.address):
                continue
            self._taken.add((one.space, one.address))
            self._disputed[one.space, one.address] = one
            self._draft.put(one)
            self._tell(EventKind.CONFLICT, living, None, one.space, one.address)

    def _record(self, living: Living, pool: Pool, addresses: Sequence[Address]) -> None:
        """Bind the pod's interface to its container, with these addresses."""
        reservation, mine = self._reservation(living, pool), _mine(self._view, pool, living)
        if (reservation.id, living.ifname) in self._attached:
            return
        self._attached.add((reservation.id, living.ifname))
        bound = self._bind(living, pool, reservation, mine)
        if bound != mine:
            self._draft.meet_node(self._node)
            self._draft.put(bound)
        old = {one.address: one for one in self._view.assigned(mine.id)} if mine else {}
        places = {address: place_in(pool, address) or (0, 0) for address in addresses}
        for address, (position, prefix) in places.items():
            self._taken.add((pool.space, address))
            if address not in old:
                self._occupy(pool, address)
                self._draft.put(AssignedAddress(pool.space, address, bound.id, pool.id, position, prefix))
            self._tell(EventKind.BOUND if address not in old else EventKind.REBOUND, living, pool, pool.space, address)
        served = {position for position, _ in places.values()}
        for one in old.values():
            if one.position in served and one.address not in living.addresses:
                self._give_way(living, pool, one)

    def _reservation(self, living: Living, pool: Pool) -> Reservation:
        key = (pool.id, living.pod_ref)
        found = self._reservations.get(key) or self._view.reservation(*key)
        if found is None:
            found = Reservation(self._draft.new_id(), pool.id, living.pod_ref, created_ms=self._draft.stamp.wall_ms)
            self._draft.put(found)
        self._reservations[key] = found
        return found

    def _bind(self, living: Living, pool: Pool, reservation: Reservation, mine: Attachment | None) -> Attachment:
        index, now_ms = self._draft.stamp.log_index, self._draft.stamp.wall_ms
        owner = Owner(living.container_id, self._node, living.cni_network, living.netns, living.netns_inode)
        if mine is None:
            id_, generation = self._draft.new_id(), self._view.generation_floor(pool.id) + 1
            return Attachment(
                id_, reservation.id, pool.id, living.ifname, owner, OLDEST, generation, now_ms, bound_index=index
            )
        if _is_its(mine, self._node, living):
            return mine
        return replace(
            mine,
            owner=owner,
            start=OLDEST,
            generation=mine.generation + 1,
            since_ms=now_ms,
            hold_until_log_ms=None,
            suspect=False,
            bound_index=index,
        )

    def _give_way(self, living: Living, pool: Pool, old: AssignedAddress) -> None:
        """What the pod has instead takes the place of what the backup said, which stays withheld."""
        self._taken.add((old.space, old.address))
        self._settle(old.space, old.address)
        self._draft.drop(old)
        if not self._draft.in_quarantine(old.space, old.address):
            self._draft.vacate(old.space, old.address)
        self._tell(EventKind.RELEASED, living, pool, old.space, old.address)

    def _occupy(self, pool: Pool, address: Address) -> None:
        """Take an address; what cools since the restore cools no longer."""
        self._settle(pool.space, address)
        cooling = self._view.cooling(pool.space, address)
        if cooling is not None:
            self._draft.drop(cooling)
        elif not self._draft.in_quarantine(pool.space, address):
            self._draft.occupy(pool.space, address)

    def _settle(self, space: str, address: Address) -> None:
        disputed = self._disputed.get((space, address)) or self._view.disputed(space, address)
        if disputed is not None:
            self._end(disputed, "nobody is recorded with it any more")

    def _end(self, disputed: Disputed, detail: str) -> None:
        if (disputed.space, disputed.address) not in self._ended:
            self._ended.add((disputed.space, disputed.address))
            end_dispute(self._draft, disputed, detail)

    def _tell(self, kind: EventKind, living: Living, pool: Pool | None, space: str, address: Address) -> None:
        self._draft.event(
            kind,
            space=space,
            pool=pool.name if pool else None,
            pod_ref=living.pod_ref,
            ifname=living.ifname,
            address=address,
            node=self._node,
            detail=_TOLD[kind],
            begins=kind is EventKind.BOUND,
        )


_TOLD = {
    EventKind.BOUND: "its node says that it has it",
    EventKind.REBOUND: "its node says that it has it",
    EventKind.RELEASED: "its node says that it has another address",
    EventKind.CONFLICT: "it is recorded for another pod",
}
