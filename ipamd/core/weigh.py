"""Owns what becomes of the findings of an import: each is made, kept as it is, or contradicts what is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ipamd.core.addresses import Address
from ipamd.core.imports import Fate, Finding, Verdict, is_named_after, is_open_ifname
from ipamd.core.model import Attachment, Pool, Reservation
from ipamd.core.pools import place_in
from ipamd.core.ports import View
from ipamd.core.values import Value

_MADE = Verdict(Fate.MADE)
_KEPT = Verdict(Fate.KEPT)


class Destination(Value):
    """A pool of an import. `is_new`: the state does not have it yet."""

    pool: Pool
    is_new: bool


def weigh(view: View, destinations: Sequence[Destination], findings: Sequence[Finding]) -> Iterator[Verdict]:
    """What becomes of each finding, in their order; nothing is changed."""
    places: dict[tuple[str, Address], str] = {}
    for finding in findings:
        destination = destinations[finding.pool]
        key = (destination.pool.space, finding.address)
        if key in places:
            yield _refused(f"is given away twice: {places[key]}")
            continue
        places[key] = finding.place
        yield _weigh(view, destination, finding)


def _weigh(view: View, destination: Destination, finding: Finding) -> Verdict:
    pool, address = destination.pool, finding.address
    if place_in(pool, address) is None:
        return _refused(f"lies in no subnet of pool {pool.name}")
    holder = view.holder(pool.space, address)
    if holder is not None:
        attachment = view.attachment_by_id(holder.attachment_id)
        reservation = None if attachment is None else view.reservation_by_id(attachment.reservation_id)
        if attachment is None or reservation is None:
            raise LookupError(f"{address} in space {pool.space} is held by nobody")
        return _KEPT if _is_same(attachment, reservation, finding) else _refused(_held(attachment, reservation))
    return _MADE if destination.is_new else _weigh_free(view, pool, finding)


def _weigh_free(view: View, pool: Pool, finding: Finding) -> Verdict:
    """Of an address that nobody holds: whether its pod gave it back, or has another one by now."""
    cooling = view.cooling(pool.space, finding.address)
    is_own = cooling is not None and (cooling.pool_id, cooling.pod_ref) == (pool.id, finding.pod_ref)
    if is_own and cooling is not None and finding.ifname in (None, cooling.ifname):
        return Verdict(Fate.GONE, f"was given back by {finding.pod_ref} since, and cools")
    if finding.ifname is None:
        return _MADE
    reservation = view.reservation(pool.id, finding.pod_ref)
    for one in view.attachments(reservation.id) if reservation else ():
        if one.ifname == finding.ifname and not _is_of_container(one, finding):
            own = ", ".join(str(assigned.address) for assigned in view.assigned(one.id))
            return _refused(f"is not what {finding.ifname} of {finding.pod_ref} holds in pool {pool.name}: {own}")
    return _MADE


def _is_same(attachment: Attachment, reservation: Reservation, finding: Finding) -> bool:
    """Whether a holder is the one that the source names. What either does not know is no difference."""
    if not (is_open_ifname(attachment.ifname) or finding.ifname in (None, attachment.ifname)):
        return False
    if reservation.pod_ref == finding.pod_ref:
        return True
    pod_is_open = any(is_named_after(ref, finding.container_id) for ref in (reservation.pod_ref, finding.pod_ref))
    return pod_is_open and _is_of_container(attachment, finding)


def _is_of_container(attachment: Attachment, finding: Finding) -> bool:
    owner = attachment.owner
    return owner is not None and finding.container_id is not None and owner.container_id == finding.container_id


def _held(attachment: Attachment, reservation: Reservation) -> str:
    owner = attachment.owner
    interface = "" if is_open_ifname(attachment.ifname) else f"{attachment.ifname} of "
    container = f", container {owner.container_id}" if owner and owner.container_id else ""
    node = f" on node {owner.node}" if owner and owner.node else ""
    return f"is held by {interface}{reservation.pod_ref}{container}{node}"


def _refused(why: str) -> Verdict:
    return Verdict(Fate.REFUSED, why)
