"""Owns the laws that hold between commands, over all records of a state. Tests and `ipamd doctor` call them.

A law that a key already enforces (one holder for an address, say) is not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from ipamd.core.add import MAX_POD_UIDS
from ipamd.core.changes import Record
from ipamd.core.draft import MAX_BOOTS
from ipamd.core.model import (
    AssignedAddress,
    Attachment,
    Boot,
    Cooling,
    Cursor,
    Event,
    Node,
    Pool,
    Reservation,
    Sighting,
)
from ipamd.core.restored import Disputed, Restored, Unconfirmed

R = TypeVar("R", bound=Record)


class Records(Protocol):
    """All records of a state, by kind."""

    @property
    def last_id(self) -> int:
        """The highest record id given so far."""

    @property
    def last_event(self) -> int:
        """The index of the newest event."""

    def all(self, kind: type[R]) -> Iterable[R]:
        """The records of a kind, by key."""


def violations(records: Records) -> list[str]:
    """One sentence for each breach of a law; none where all is well."""
    return [sentence for law in LAWS for sentence in law(records)]


def _addresses_have_owners(records: Records) -> Iterator[str]:
    pools = {one.id: one.space for one in records.all(Pool)}
    attachments = {one.id: one.pool_id for one in records.all(Attachment)}
    for one in records.all(AssignedAddress):
        if attachments.get(one.attachment_id) != one.pool_id:
            yield f"{one.address} is held by attachment {one.attachment_id}, which pool {one.pool_id} does not have"
        if pools.get(one.pool_id) != one.space:
            yield f"{one.address} is in space {one.space}, its pool {one.pool_id} is not"


def _attachments_are_whole(records: Records) -> Iterator[str]:
    reservations = {one.id: one.pool_id for one in records.all(Reservation)}
    served = {one.attachment_id for one in records.all(AssignedAddress)}
    seen: set[tuple[int, str]] = set()
    for one in records.all(Attachment):
        if reservations.get(one.reservation_id) != one.pool_id:
            yield f"attachment {one.id} belongs to no reservation of pool {one.pool_id}"
        if one.id not in served:
            yield f"attachment {one.id} has no address"
        if (one.owner is None) != (one.hold_until_log_ms is not None):
            yield f"attachment {one.id} is neither bound nor held"
        if one.generation < 1:
            yield f"attachment {one.id} has generation {one.generation}"
        if (one.reservation_id, one.ifname) in seen:
            yield f"reservation {one.reservation_id} has {one.ifname} twice"
        seen.add((one.reservation_id, one.ifname))


def _reservations_are_whole(records: Records) -> Iterator[str]:
    pools = {one.id for one in records.all(Pool)}
    attached = {one.reservation_id for one in records.all(Attachment)}
    seen: set[tuple[int, str]] = set()
    for one in records.all(Reservation):
        if one.pool_id not in pools:
            yield f"reservation {one.id} of {one.pod_ref} belongs to no pool"
        if one.id not in attached:
            yield f"reservation {one.id} of {one.pod_ref} has no attachment"
        if len(one.pod_uids) > MAX_POD_UIDS:
            yield f"reservation {one.id} of {one.pod_ref} remembers {len(one.pod_uids)} pod uids"
        if (one.pool_id, one.pod_ref) in seen:
            yield f"pool {one.pool_id} has two reservations for {one.pod_ref}"
        seen.add((one.pool_id, one.pod_ref))


def _addresses_are_in_one_state(records: Records) -> Iterator[str]:
    assigned = {(one.space, one.address) for one in records.all(AssignedAddress)}
    for one in records.all(Cooling):
        if (one.space, one.address) in assigned:
            yield f"{one.address} in space {one.space} is held and cooling at once"
        if not one.freed_log_ms <= one.hard_until_log_ms <= one.until_log_ms:
            yield f"{one.address} in space {one.space} cools in no sensible order of times"


def _cursors_point_somewhere(records: Records) -> Iterator[str]:
    pools = {one.id: one for one in records.all(Pool)}
    for cursor in records.all(Cursor):
        pool = pools.get(cursor.pool_id)
        if pool is None or cursor.position >= len(pool.sets) or cursor.order >= len(pool.sets[cursor.position]):
            yield f"the cursor of pool {cursor.pool_id} points to no range"


def _names_are_unique(records: Records) -> Iterator[str]:
    seen: set[str] = set()
    for pool in records.all(Pool):
        if pool.name in seen:
            yield f"there are two pools {pool.name}"
        seen.add(pool.name)


def _boots_have_nodes(records: Records) -> Iterator[str]:
    nodes = {one.name: one for one in records.all(Node)}
    count: dict[str, int] = {}
    for boot in records.all(Boot):
        count[boot.node] = count.get(boot.node, 0) + 1
        if boot.node in nodes and boot.order > nodes[boot.node].newest_boot:
            yield f"boot {boot.order} of node {boot.node} is newer than its newest"
    for name, boots in count.items():
        if name not in nodes:
            yield f"there are boots of node {name}, which is not known"
        if boots > MAX_BOOTS:
            yield f"node {name} has {boots} boots"


def _bindings_have_nodes(records: Records) -> Iterator[str]:
    nodes = {one.name for one in records.all(Node)}
    for one in records.all(Attachment):
        if one.owner is not None and one.owner.node is not None and one.owner.node not in nodes:
            yield f"attachment {one.id} is bound on node {one.owner.node}, which is not known"


def _sightings_have_attachments(records: Records) -> Iterator[str]:
    generations = {one.id: one.generation for one in records.all(Attachment)}
    for one in records.all(Sighting):
        if one.generation > generations.get(one.attachment_id, 0):
            yield f"attachment {one.attachment_id} was seen in generation {one.generation}, which it never had"
        if one.gone_log_ms is not None and one.alive is not False:
            yield f"attachment {one.attachment_id} is gone and is not"


def _nodes_are_sensible(records: Records) -> Iterator[str]:
    for one in records.all(Node):
        if (one.lost_log_ms is None) != (one.silent_since_ms is None):
            yield f"node {one.name} is neither lost nor not"
        if one.lost_log_ms is not None and one.reported_log_ms is None:
            yield f"node {one.name} is lost and never reported"


def _restores_are_whole(records: Records) -> Iterator[str]:
    pools = {one.id for one in records.all(Pool)}
    held = {(one.space, one.address) for one in records.all(AssignedAddress)}
    is_restored = any(True for _ in records.all(Restored))
    for mark in records.all(Unconfirmed):
        if mark.pool_id not in pools or not is_restored:
            yield f"pool {mark.pool_id} waits to be confirmed, and there is no such pool or no restore"
    for one in records.all(Disputed):
        if (one.space, one.address) not in held or not is_restored:
            yield f"{one.address} in space {one.space} is in dispute, and recorded for nobody or not restored"


def _counters_are_ahead(records: Records) -> Iterator[str]:
    numbered: list[Iterable[Pool | Reservation | Attachment]] = [
        records.all(Pool),
        records.all(Reservation),
        records.all(Attachment),
    ]
    for kind in numbered:
        highest = max((one.id for one in kind), default=0)
        if highest > records.last_id:
            yield f"id {highest} was given, the counter stands at {records.last_id}"
    before: int | None = None
    for event in records.all(Event):
        if before is not None and event.index != before + 1:
            yield f"there is no event between {before} and {event.index}"
        before = event.index
    if before is not None and before != records.last_event:
        yield f"the newest event is {before}, the counter stands at {records.last_event}"


LAWS: tuple[Callable[[Records], Iterator[str]], ...] = (
    _addresses_have_owners,
    _attachments_are_whole,
    _reservations_are_whole,
    _addresses_are_in_one_state,
    _cursors_point_somewhere,
    _names_are_unique,
    _boots_have_nodes,
    _bindings_have_nodes,
    _sightings_have_attachments,
    _nodes_are_sensible,
    _restores_are_whole,
    _counters_are_ahead,
)
