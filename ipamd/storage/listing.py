"""Owns the list of reservations: a walk in order where most match, a look-up and a sort where few can."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from sqlalchemy import ColumnElement, Select, literal_column, select

from ipamd.core.addresses import to_blob
from ipamd.core.model import Attachment, AttachmentState, Held, Pool, Reservation
from ipamd.core.ports import ReservationFilter, ReservationRow
from ipamd.storage.compiled import sql, value
from ipamd.storage.rows import to_attachment, to_reservation
from ipamd.storage.tables import addresses, attachments, pools, reservations
from ipamd.storage.view import SqliteView

FEW: Final = 10_000
"""Up to so many attachments are looked up and sorted; more are met soon enough on the walk."""

Place = tuple[str, str]
"""Pool name and pod_ref: the order of the list."""

_POOLS_FROM: Final = sql(
    select(pools.c.id, pools.c.revision).where(pools.c.name >= value("name")).order_by(pools.c.name)
)
_IN_POOL: Final = sql(
    reservations.select()
    .where(reservations.c.pool_id == value("pool"), reservations.c.pod_ref > value("after"))
    .order_by(reservations.c.pod_ref)
)
_SPACES: Final = sql(select(pools.c.space).distinct())


def _attachments(*where: ColumnElement[bool]) -> Select[tuple[object, ...]]:
    return attachments.select().where(*where)


_OF_NODE: Final = sql(_attachments(attachments.c.node == value("node")))
_OF_CONTAINER: Final = sql(_attachments(attachments.c.container_id == value("container")))
_IN_STATE: Final = {
    AttachmentState.HELD: sql(_attachments(attachments.c.bound == literal_column("0")).limit(value("limit"))),
    AttachmentState.SUSPECT: sql(_attachments(attachments.c.suspect == literal_column("1")).limit(value("limit"))),
}
_HOLDERS: Final = sql(
    select(addresses.c.attachment_id).where(
        addresses.c.space == value("space"), addresses.c.address == value("address")
    )
)


def list_reservations(
    view: SqliteView, wanted: ReservationFilter, after: Place | None, limit: int
) -> list[ReservationRow]:
    """Up to `limit` matching reservations above a place, in order."""
    candidates = _candidates(view, wanted)
    found = _walk(view, wanted, after) if candidates is None else _sorted(view, candidates, after)
    return list(islice(_matching(view, wanted, found), limit))


def _candidates(view: SqliteView, wanted: ReservationFilter) -> list[Attachment] | None:
    """The few attachments that can match, by the narrowest index; None: many can."""
    run = view.connection.execute
    if wanted.address is not None:
        blob = to_blob(wanted.address)
        ids = [one for (space,) in run(_SPACES).fetchall() for (one,) in run(_HOLDERS, (space, blob))]
        return [one for one in map(view.attachment_by_id, ids) if one is not None]
    if wanted.container_id is not None:
        return [to_attachment(row) for row in run(_OF_CONTAINER, (wanted.container_id,))]
    if wanted.node is not None:
        return [to_attachment(row) for row in run(_OF_NODE, (wanted.node,))]
    if wanted.state in _IN_STATE and wanted.pod_ref is None:
        rows = run(_IN_STATE[wanted.state], (FEW + 1,)).fetchall()
        return None if len(rows) > FEW else [to_attachment(row) for row in rows]
    return None


def _walk(view: SqliteView, wanted: ReservationFilter, after: Place | None) -> Iterator[tuple[Pool, Reservation]]:
    """All reservations of the pools that are wanted, in order."""
    for pool in _pools(view, wanted.pool, after):
        if wanted.pod_ref is not None:
            one = view.reservation(pool.id, wanted.pod_ref)
            if one is not None and _is_after(pool, one, after):
                yield pool, one
            continue
        start = after[1] if after and after[0] == pool.name else ""
        rows = view.connection.execute(_IN_POOL, (pool.id, start))
        yield from ((pool, to_reservation(row)) for row in rows)


def _pools(view: SqliteView, name: str | None, after: Place | None) -> Iterator[Pool]:
    if name is not None:
        pool = view.pool(name)
        if pool is not None and (after is None or after[0] <= name):
            yield pool
        return
    for row in view.connection.execute(_POOLS_FROM, (after[0] if after else "",)):
        yield view.stored(*row).pool


def _sorted(view: SqliteView, candidates: list[Attachment], after: Place | None) -> Iterator[tuple[Pool, Reservation]]:
    found: dict[Place, tuple[Pool, Reservation]] = {}
    for reservation_id in dict.fromkeys(one.reservation_id for one in candidates):
        reservation = view.reservation_by_id(reservation_id)
        pool = reservation and view.pool_by_id(reservation.pool_id)
        if reservation and pool and _is_after(pool, reservation, after):
            found[pool.name, reservation.pod_ref] = pool, reservation
    return (found[place] for place in sorted(found))


def _is_after(pool: Pool, reservation: Reservation, after: Place | None) -> bool:
    return after is None or (pool.name, reservation.pod_ref) > after


def _matching(
    view: SqliteView, wanted: ReservationFilter, found: Iterator[tuple[Pool, Reservation]]
) -> Iterator[ReservationRow]:
    """What is wanted of attachments has to be true of one of them."""
    for pool, reservation in found:
        if wanted.pool not in (None, pool.name) or wanted.pod_ref not in (None, reservation.pod_ref):
            continue
        held = tuple(Held(one, tuple(view.assigned(one.id))) for one in view.attachments(reservation.id))
        if _wants_attachment(wanted) and not any(_matches(wanted, one) for one in held):
            continue
        yield ReservationRow(pool, reservation, held)


def _wants_attachment(wanted: ReservationFilter) -> bool:
    return (wanted.node, wanted.container_id, wanted.address, wanted.state) != (None,) * 4


def _matches(wanted: ReservationFilter, held: Held) -> bool:
    attachment, owner = held.attachment, held.attachment.owner
    return (
        (wanted.node is None or (owner is not None and owner.node == wanted.node))
        and (wanted.container_id is None or (owner is not None and owner.container_id == wanted.container_id))
        and (wanted.address is None or any(one.address == wanted.address for one in held.addresses))
        and wanted.state in (None, attachment.state)
    )
