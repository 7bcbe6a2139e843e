"""Owns reading what happened."""

from __future__ import annotations

from ipamd.core.model import Event
from ipamd.core.ports import Snapshot
from ipamd.errors import ApiError
from ipamd.service.reader import Reader
from ipamd.service.request import At, Page, Request, page_of


class Events:
    """Reads events in their order."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def page(self, after: int | None, limit: int, request: Request) -> At[Page[Event]]:
        """Up to `limit` events after an index (None: from the oldest kept). Raises ApiError, Unavailable.

        An index that this cluster never gave, or behind which events are kept no longer, is refused as gone: a reader
        that goes on from it would miss some and not know.
        """

        def look(snapshot: Snapshot) -> Page[Event]:
            found = list(snapshot.events(after or 0, limit + 1))
            if after is not None:
                _refuse_gap(after, found, snapshot.last_event)
            return page_of(found, limit)

        return await self._reader.read(look, request)


def _refuse_gap(after: int, found: list[Event], last: int) -> None:
    if after > last:
        raise ApiError("gone", f"this cluster has no event {after}: its newest is {last}", last=last)
    oldest = found[0].index if found else last + 1
    if after and oldest > after + 1:
        raise ApiError(
            "gone", f"events up to {oldest - 1} are kept no longer, {after + 1} is among them", oldest=oldest
        )
