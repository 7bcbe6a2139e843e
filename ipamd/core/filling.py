"""Owns filling in what an import left open of bindings: a claim or a report names the node, network and interface."""

from __future__ import annotations

from ipamd.core.draft import Draft
from ipamd.core.imports import is_open_ifname, is_open_pod, known_ifname, pod_ref_of
from ipamd.core.model import Attachment, EventKind, Owner, Reservation
from ipamd.core.values import replace


class Filling:
    """Fills in the bindings that one command names. It remembers what it filled in: the view does not show it yet."""

    def __init__(self, draft: Draft, node: str) -> None:
        self._draft, self._node = draft, node
        self._ifnames: set[tuple[int, str]] = set()
        self._pod_refs: dict[tuple[int, str], int] = {}

    def fill(self, old: Attachment, ifname: str | None, cni_network: str | None) -> Attachment:
        """A binding with what is known now, which the caller writes; what is known already stays. None: not known.

        What else changes with it is written here: the name of its pod, the event, the node.
        """
        reservation = self._draft.view.reservation_by_id(old.reservation_id)
        if old.owner is None or reservation is None:
            return old
        owner = replace(old.owner, node=old.owner.node or self._node, cni_network=old.owner.cni_network or cni_network)
        new = replace(old, owner=owner, ifname=self._ifname(old, ifname))
        if new == old:
            return old
        named = self._named(reservation, owner)
        self._draft.meet_node(self._node)
        if named != reservation:
            self._draft.put(named)
        self._tell(new, named)
        return new

    def _tell(self, new: Attachment, reservation: Reservation) -> None:
        pool = self._draft.view.pool_by_id(new.pool_id)
        for one in self._draft.view.assigned(new.id):
            self._draft.event(
                EventKind.CLAIMED,
                space=one.space,
                pool=pool.name if pool else None,
                pod_ref=reservation.pod_ref,
                ifname=known_ifname(new.ifname),
                address=one.address,
                node=new.owner.node if new.owner else None,
            )

    def _ifname(self, old: Attachment, ifname: str | None) -> str:
        if ifname is None or not is_open_ifname(old.ifname) or (old.reservation_id, ifname) in self._ifnames:
            return old.ifname
        if any(one.ifname == ifname for one in self._draft.view.attachments(old.reservation_id)):
            return old.ifname
        self._ifnames.add((old.reservation_id, ifname))
        return ifname

    def _named(self, reservation: Reservation, owner: Owner) -> Reservation:
        """With its node known, a container without pod data has its full name."""
        if owner.container_id is None or not is_open_pod(reservation.pod_ref):
            return reservation
        pod_ref = pod_ref_of(owner.node, owner.container_id)
        there = self._draft.view.reservation(reservation.pool_id, pod_ref)
        holder = self._pod_refs.setdefault((reservation.pool_id, pod_ref), there.id if there else reservation.id)
        return replace(reservation, pod_ref=pod_ref) if holder == reservation.id else reservation
