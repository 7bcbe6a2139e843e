"""Owns reading reservations."""

from __future__ import annotations

from ipamd.core.ports import ReservationFilter, ReservationRow, Snapshot
from ipamd.errors import ApiError
from ipamd.service.pools import find
from ipamd.service.reader import Reader
from ipamd.service.request import At, Page, Request, page_of

After = tuple[int, str, str]
"""Where a list of reservations goes on: behind the one with an id; where that is gone, behind (pool name, pod_ref)."""


class Reservations:
    """Reads reservations."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def page(
        self, wanted: ReservationFilter, after: After | None, limit: int, request: Request
    ) -> At[Page[ReservationRow]]:
        """Up to `limit` matching reservations, by (pool, pod_ref). Raises Unavailable."""
        return await self._reader.read(
            lambda snapshot: page_of(list(snapshot.reservations(wanted, _place(snapshot, after), limit + 1)), limit),
            request,
        )

    async def get(self, pool: str, pod_ref: str, request: Request) -> At[ReservationRow]:
        """One reservation. Raises ApiError, Unavailable."""

        def look(snapshot: Snapshot) -> ReservationRow:
            rows = snapshot.reservations(ReservationFilter(find(snapshot, pool).name, pod_ref), None, 1)
            if not rows:
                raise ApiError("reservation_not_found", f"{pod_ref} has no reservation in pool {pool}")
            return rows[0]

        return await self._reader.read(look, request)


def _place(snapshot: Snapshot, after: After | None) -> tuple[str, str] | None:
    """A name that is cut short, as some see it, stands before all that begin with it: then some come twice."""
    if after is None:
        return None
    reservation_id, pool_name, pod_ref = after
    found = snapshot.reservation_by_id(reservation_id)
    pool = None if found is None else snapshot.pool_by_id(found.pool_id)
    return (pool_name, pod_ref) if found is None or pool is None else (pool.name, found.pod_ref)
