"""Owns reading reservations."""

from __future__ import annotations

from ipamd.core.ports import ReservationFilter, ReservationRow, Snapshot
from ipamd.errors import ApiError
from ipamd.service.pools import find
from ipamd.service.reader import Reader
from ipamd.service.request import At, Page, Request, page_of

After = tuple[str, str]
"""Where a list of reservations goes on: (pool name, pod_ref)."""


class Reservations:
    """Reads reservations."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def page(
        self, wanted: ReservationFilter, after: After | None, limit: int, request: Request
    ) -> At[Page[ReservationRow]]:
        """Up to `limit` matching reservations, by (pool, pod_ref). Raises Unavailable."""
        return await self._reader.read(
            lambda snapshot: page_of(list(snapshot.reservations(wanted, after, limit + 1)), limit), request
        )

    async def get(self, pool: str, pod_ref: str, request: Request) -> At[ReservationRow]:
        """One reservation. Raises ApiError, Unavailable."""

        def look(snapshot: Snapshot) -> ReservationRow:
            rows = snapshot.reservations(ReservationFilter(find(snapshot, pool).name, pod_ref), None, 1)
            if not rows:
                raise ApiError("reservation_not_found", f"{pod_ref} has no reservation in pool {pool}")
            return rows[0]

        return await self._reader.read(look, request)
