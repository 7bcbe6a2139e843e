"""Owns the state as plain dicts: the executable specification that every other store is compared with.

Free space is never stored here: it is what the ranges give without what occupies the space, worked out anew at each
question. So a store that keeps an index of free spans, and follows Occupy and Vacate, is checked against arithmetic
that knows neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ipamd.core.addresses import Address, Network
from ipamd.core.changes import Change, Drop, Put, Record
from ipamd.core.commands import Command
from ipamd.core.decide import Decision, decide, expire
from ipamd.core.entries import Stamp
from ipamd.core.imports import StagedPart, is_open_ifname
from ipamd.core.intervals import Span, intersect, normalise, subtract
from ipamd.core.model import (
    FOREVER,
    AssignedAddress,
    Attachment,
    Boot,
    Cluster,
    Cooling,
    Cursor,
    Event,
    GenerationFloor,
    MassSilence,
    Member,
    Node,
    Pool,
    Quarantine,
    Reservation,
    Settings,
    Sighting,
    Token,
    Tombstone,
)
from ipamd.core.outcomes import Outcome
from ipamd.core.restored import Disputed, Restored, Unconfirmed
from ipamd.core.withheld import withheld_spans

Key = tuple[object, ...]
R = TypeVar("R", bound=Record)

KEYS: dict[type, Callable[..., Key]] = {
    Pool: lambda one: (one.id,),
    Reservation: lambda one: (one.id,),
    Attachment: lambda one: (one.id,),
    AssignedAddress: lambda one: (one.space, one.address),
    Cooling: lambda one: (one.space, one.address),
    Quarantine: lambda one: (one.space, one.address),
    Cursor: lambda one: (one.pool_id, one.position),
    GenerationFloor: lambda one: (one.pool_id,),
    Tombstone: lambda one: (one.node, one.cni_network, one.container_id, one.ifname),
    Node: lambda one: (one.name,),
    Boot: lambda one: (one.node, one.order),
    Event: lambda one: (one.index,),
    Settings: lambda _: (),
    Token: lambda one: (one.id,),
    Cluster: lambda _: (),
    Member: lambda one: (one.name,),
    StagedPart: lambda one: (one.import_id, one.number),
    Sighting: lambda one: (one.attachment_id,),
    MassSilence: lambda _: (),
    Restored: lambda _: (),
    Unconfirmed: lambda one: (one.pool_id,),
    Disputed: lambda one: (one.space, one.address),
}
"""What makes two records of a kind the same one."""


class MemoryState:
    """A View over dicts that carries out decisions at once."""

    def __init__(self) -> None:
        self._tables: dict[type, dict[Any, Any]] = {kind: {} for kind in KEYS}
        self.last_id = 0
        self.last_event = 0

    # What changes it

    def run(self, command: Command, stamp: Stamp) -> Outcome:
        """What one log entry with one command does: time first, then the command."""
        self.carry_out(expire(self, stamp))
        decision = decide(self, command, stamp)
        self.carry_out(decision)
        return decision.outcome

    def carry_out(self, decision: Decision) -> None:
        """Write a decision."""
        for change in decision.changes:
            self.write(change)
        self.last_id, self.last_event = decision.last_id, decision.last_event

    def write(self, change: Change) -> None:
        """Carry out one change."""
        if isinstance(change, Put):
            kind = type(change.record)
            self._tables[kind][KEYS[kind](change.record)] = change.record
        elif isinstance(change, Drop):
            kind = type(change.record)
            del self._tables[kind][KEYS[kind](change.record)]
            if isinstance(change.record, Pool):
                self._forget_details(change.record.id)
            if isinstance(change.record, Attachment):
                self._tables[Sighting].pop((change.record.id,), None)

    def all(self, kind: type[R]) -> list[R]:
        """All records of a kind, by key."""
        table = self._tables[kind]
        return [table[key] for key in sorted(table)]

    def _forget_details(self, pool_id: int) -> None:
        details: list[Cursor | GenerationFloor | Unconfirmed] = [
            *self.all(Cursor),
            *self.all(GenerationFloor),
            *self.all(Unconfirmed),
        ]
        for one in details:
            if one.pool_id == pool_id:
                self.write(Drop(one))

    def _get(self, kind: type[R], *key: object) -> R | None:
        found: R | None = self._tables[kind].get(key)
        return found

    # The View

    def cluster(self) -> Cluster | None:
        return self._get(Cluster)

    def cluster_id(self) -> str | None:
        cluster = self.cluster()
        return cluster.id if cluster else None

    def members(self) -> Sequence[Member]:
        return self.all(Member)

    def settings(self) -> Settings:
        return self._get(Settings) or Settings()

    def pool(self, name: str) -> Pool | None:
        return next((one for one in self.all(Pool) if one.name == name), None)

    def pool_by_id(self, pool_id: int) -> Pool | None:
        return self._get(Pool, pool_id)

    def pools_of_space(self, space: str) -> Sequence[Pool]:
        return sorted((one for one in self.all(Pool) if one.space == space), key=lambda one: one.name)

    def pools_on(self, space: str, subnet: Network) -> Sequence[Pool]:
        return [
            pool
            for pool in self.pools_of_space(space)
            if any(one.subnet == subnet for ranges in pool.sets for one in ranges)
        ]

    def reservation(self, pool_id: int, pod_ref: str) -> Reservation | None:
        found = (one for one in self.all(Reservation) if (one.pool_id, one.pod_ref) == (pool_id, pod_ref))
        return next(found, None)

    def reservation_by_id(self, reservation_id: int) -> Reservation | None:
        return self._get(Reservation, reservation_id)

    def attachment_by_id(self, attachment_id: int) -> Attachment | None:
        return self._get(Attachment, attachment_id)

    def reservations_named(self, prefix: str) -> Sequence[Reservation]:
        return [one for one in self.all(Reservation) if one.pod_ref.startswith(prefix)]

    def cooling_named(self, prefix: str) -> Sequence[Cooling]:
        mine = (one for one in self.all(Cooling) if one.pod_ref.startswith(prefix))
        return [one for one in mine if self.pool_by_id(one.pool_id) is not None]

    def attachments(self, reservation_id: int) -> Sequence[Attachment]:
        mine = (one for one in self.all(Attachment) if one.reservation_id == reservation_id)
        return sorted(mine, key=lambda one: one.ifname.encode())

    def attachments_of_container(self, container_id: str, ifname: str) -> Sequence[Attachment]:
        return [
            one
            for one in self.all(Attachment)
            if one.owner
            and one.owner.container_id == container_id
            and (one.ifname == ifname or is_open_ifname(one.ifname))
        ]

    def attachments_of_node(self, node: str, after_id: int, limit: int) -> Sequence[Attachment]:
        bound = [one for one in self.all(Attachment) if one.owner and one.owner.node == node and one.id > after_id]
        return bound[:limit]

    def attachments_of_pool(self, pool_id: int) -> Iterable[Attachment]:
        return [one for one in self.all(Attachment) if one.pool_id == pool_id]

    def assigned(self, attachment_id: int) -> Sequence[AssignedAddress]:
        mine = [one for one in self.all(AssignedAddress) if one.attachment_id == attachment_id]
        return sorted(mine, key=lambda one: (one.position, one.address))

    def assigned_of_pool(self, pool_id: int) -> Iterable[AssignedAddress]:
        return [one for one in self.all(AssignedAddress) if one.pool_id == pool_id]

    def holder(self, space: str, address: Address) -> AssignedAddress | None:
        return self._get(AssignedAddress, space, address)

    def cooling(self, space: str, address: Address) -> Cooling | None:
        return self._get(Cooling, space, address)

    def cooling_of_pod(self, pool_id: int, pod_ref: str, ifname: str) -> Sequence[Cooling]:
        wanted = (pool_id, pod_ref, ifname)
        return [one for one in self.all(Cooling) if (one.pool_id, one.pod_ref, one.ifname) == wanted]

    def oldest_cooling(self, space: str, first: Address, last: Address, now_log_ms: int) -> Cooling | None:
        ready = [
            one
            for one in self.all(Cooling)
            if one.space == space and first <= one.address <= last and one.hard_until_log_ms <= now_log_ms
        ]
        return min(ready, key=lambda one: (one.freed_log_ms, one.address), default=None)

    def quarantine(self, space: str, address: Address) -> Quarantine | None:
        return self._get(Quarantine, space, address)

    def next_free(self, pool: Pool, position: int, order: int, first: int, last: int) -> int | None:
        one = pool.sets[position][order]
        occupied = normalise(
            Span(address.value, address.value) for address in self.occupied(pool.space) if address.family == one.family
        )
        taken = normalise((*occupied, *withheld_spans(self, pool.space, one.family)))
        free = intersect(subtract(one.usable, taken), normalise([Span(first, last)]))
        return free[0].first if free else None

    def occupied(self, space: str) -> list[Address]:
        """What is not free in a space: assigned, cooling or in quarantine."""
        return sorted(
            {one.address for one in self.all(AssignedAddress) if one.space == space}
            | {one.address for one in self.all(Cooling) if one.space == space}
            | {one.address for one in self.all(Quarantine) if one.space == space}
        )

    def cursor(self, pool_id: int, position: int) -> Cursor | None:
        return self._get(Cursor, pool_id, position)

    def generation_floor(self, pool_id: int) -> int:
        floor = self._get(GenerationFloor, pool_id)
        return floor.generation if floor else 0

    def tombstone(self, node: str, cni_network: str, container_id: str, ifname: str) -> Tombstone | None:
        return self._get(Tombstone, node, cni_network, container_id, ifname)

    def node(self, name: str) -> Node | None:
        return self._get(Node, name)

    def known_nodes(self) -> Iterable[Node]:
        return self.all(Node)

    def sighting(self, attachment_id: int) -> Sighting | None:
        return self._get(Sighting, attachment_id)

    def mass_silence(self) -> MassSilence | None:
        return self._get(MassSilence)

    def restored(self) -> Restored | None:
        return self._get(Restored)

    def is_unconfirmed(self, pool_id: int) -> bool:
        return self._get(Unconfirmed, pool_id) is not None

    def unconfirmed_of_space(self, space: str) -> Sequence[Pool]:
        return [one for one in self.pools_of_space(space) if self.is_unconfirmed(one.id)]

    def unconfirmed(self) -> Sequence[Pool]:
        return sorted((one for one in self.all(Pool) if self.is_unconfirmed(one.id)), key=lambda one: one.name)

    def unconfirmed_around(self, address: Address) -> Sequence[Pool]:
        return [
            pool
            for pool in self.unconfirmed()
            if any(
                one.family == address.family and one.first <= address.value <= one.last
                for inner in pool.sets
                for one in inner
            )
        ]

    def disputed(self, space: str, address: Address) -> Disputed | None:
        return self._get(Disputed, space, address)

    def disputes(self) -> Sequence[Disputed]:
        return self.all(Disputed)

    def boot(self, node: str, boot_id: str) -> Boot | None:
        return next((one for one in self.boots(node) if one.boot_id == boot_id), None)

    def boots(self, node: str) -> Sequence[Boot]:
        return [one for one in self.all(Boot) if one.node == node]

    def tombstones_of_node(self, node: str) -> Iterable[Tombstone]:
        return [one for one in self.all(Tombstone) if one.node == node]

    def token(self, token_id: str) -> Token | None:
        return self._get(Token, token_id)

    def token_of_digest(self, digest: bytes) -> Token | None:
        return next((one for one in self.all(Token) if one.digest == digest), None)

    def tokens_of_node(self, node: str) -> Sequence[Token]:
        return [one for one in self.all(Token) if one.node == node]

    def ended_tokens(self, until_ms: int, limit: int) -> Sequence[Token]:
        ended = [one for one in self.all(Token) if one.expires_ms is not None and one.expires_ms <= until_ms]
        return sorted(ended, key=lambda one: (one.expires_ms or 0, one.id))[:limit]

    def due_holds(self, now_log_ms: int, limit: int) -> Sequence[Attachment]:
        held = [one for one in self.all(Attachment) if _due(one.hold_until_log_ms, now_log_ms)]
        return sorted(held, key=lambda one: (one.hold_until_log_ms or 0, one.id))[:limit]

    def due_cooling(self, now_log_ms: int, limit: int) -> Sequence[Cooling]:
        cooled = [one for one in self.all(Cooling) if _due(one.until_log_ms, now_log_ms)]
        return sorted(cooled, key=lambda one: (one.until_log_ms, one.space, one.address))[:limit]

    def due_quarantines(self, now_log_ms: int, limit: int) -> Sequence[Quarantine]:
        ended = [one for one in self.all(Quarantine) if _due(one.until_log_ms, now_log_ms)]
        return sorted(ended, key=lambda one: (one.until_log_ms or 0, one.space, one.address))[:limit]

    def due_tombstones(self, now_log_ms: int, limit: int) -> Sequence[Tombstone]:
        ended = [one for one in self.all(Tombstone) if _due(one.until_log_ms, now_log_ms)]
        return sorted(ended, key=lambda one: (one.until_log_ms, *KEYS[Tombstone](one)))[:limit]

    def staged(self, import_id: str) -> Sequence[StagedPart]:
        return [one for one in self.all(StagedPart) if one.import_id == import_id]

    def due_parts(self, now_log_ms: int, limit: int) -> Sequence[StagedPart]:
        ended = [one for one in self.all(StagedPart) if _due(one.until_log_ms, now_log_ms)]
        return sorted(ended, key=lambda one: (one.until_log_ms, *KEYS[StagedPart](one)))[:limit]


def _due(until_log_ms: int | None, now_log_ms: int) -> bool:
    return until_log_ms is not None and until_log_ms != FOREVER and until_log_ms <= now_log_ms
