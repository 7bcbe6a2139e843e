"""Owns what happened, as it is read and written about: pages of events, which of them somebody wants, and notes."""

from __future__ import annotations

from typing import Final, NamedTuple

from ipamd.core.addresses import Address
from ipamd.core.commands import Note
from ipamd.core.model import Event, EventKind
from ipamd.core.outcomes import Done
from ipamd.core.ports import Snapshot
from ipamd.errors import ApiError
from ipamd.service.proposer import Proposer
from ipamd.service.reader import Reader
from ipamd.service.request import At, Request

MOST_LOOKED_AT: Final = 20_000
"""So many events a page looks at where few are wanted: it ends there, and the next one goes on."""

_STRETCH: Final = 1000


class Wanted(NamedTuple):
    """What events are narrowed to; None: anything."""

    pool: str | None = None
    pod_ref: str | None = None
    node: str | None = None
    address: Address | None = None
    kinds: frozenset[EventKind] | None = None

    def takes(self, event: Event) -> bool:
        """Whether an event is among them."""
        return (
            self.pool in (None, event.pool)
            and self.pod_ref in (None, event.pod_ref)
            and self.node in (None, event.node)
            and self.address in (None, event.address)
            and (self.kinds is None or event.kind in self.kinds)
        )


ALL: Final = Wanted()


class Place(NamedTuple):
    """Where somebody is in the events: behind an index (None: the oldest kept) that a cluster gave (None: this one)."""

    after: int | None = None
    cluster_id: str | None = None


class EventPage(NamedTuple):
    """Some events, and the index behind which the next page begins; None: there are no more."""

    items: tuple[Event, ...]
    next: int | None


class Events:
    """Reads events in their order, and adds notes."""

    def __init__(self, proposer: Proposer, reader: Reader) -> None:
        self._proposer, self._reader = proposer, reader

    async def note(self, text: str, pool: str | None, node: str | None, request: Request) -> At[Done]:
        """Put a note among the events. Raises ApiError, Unavailable."""
        return await self._proposer.carry_out(Note(request.origin, text, pool, node), request, Done)

    async def page(self, place: Place, limit: int, wanted: Wanted, request: Request) -> At[EventPage]:
        """Up to `limit` events behind a place. Raises ApiError, Unavailable.

        An index that this cluster never gave, or behind which events are kept no longer, is refused as gone: a reader
        that goes on from it would miss some and not know.
        """
        request = await self.reaching(place.after, request)
        return await self._reader.read(lambda snapshot: _page(snapshot, place, limit, wanted), request)

    async def newest(self, request: Request) -> At[int]:
        """The index of the newest event. Raises Unavailable."""
        return await self._reader.read(lambda snapshot: snapshot.last_event, request)

    async def reaching(self, after: int | None, request: Request) -> Request:
        """The request, as one that sees the event `after`: that is news to a member that lags. Raises Unavailable.

        A cluster has applied somewhere what it told somebody: behind a barrier this member has it too, or nobody has.
        """
        if after is None or not request.stale:
            return request
        newest = await self.newest(request)
        return request if after <= newest.value else request.fresh()


def refuse_foreign(place: Place, snapshot: Snapshot) -> None:
    """Raises ApiError for a place in the events of another cluster, such as this one before it was restored."""
    own = snapshot.cluster_id()
    if place.cluster_id not in (None, own):
        detail = f"event {place.after or 0} is one of cluster {place.cluster_id}; this is cluster {own}"
        raise ApiError("gone", detail, newest=snapshot.last_event)


def refuse_gap(after: int, found: list[Event], newest: int) -> None:
    """Raises ApiError unless the events found are those behind an index; 0 is before the oldest that is kept."""
    if after > newest:
        raise ApiError("gone", f"this cluster has no event {after}: its newest is {newest}", newest=newest)
    oldest = found[0].index if found else newest + 1
    if after and oldest > after + 1:
        raise ApiError(
            "gone", f"events up to {oldest - 1} are kept no longer, {after + 1} is among them", oldest=oldest
        )


def _page(snapshot: Snapshot, begin: Place, limit: int, wanted: Wanted) -> EventPage:
    refuse_foreign(begin, snapshot)
    stretch = limit + 1 if wanted == ALL else _STRETCH
    place, items = begin.after or 0, list[Event]()
    for turn in range(MOST_LOOKED_AT // _STRETCH):
        found = list(snapshot.events(place, stretch))
        if turn == 0 and begin.after is not None:
            refuse_gap(begin.after, found, snapshot.last_event)
        for event in found:
            if len(items) == limit:
                return EventPage(tuple(items), place)
            place = event.index
            if wanted.takes(event):
                items.append(event)
        if len(found) < stretch:
            return EventPage(tuple(items), None)
    return EventPage(tuple(items), place)
