"""Owns the JSON of reservations."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ipamd.api.schema.common import Given, LetGoShown, ListQuery, Shown, let_go, when
from ipamd.core.addresses import Address, AddressError, parse_address
from ipamd.core.commands import Add, Origin, PoolRequest, Release
from ipamd.core.definition import DefinitionError, check_seconds
from ipamd.core.imports import is_open_pod, known_ifname
from ipamd.core.model import AttachmentState, Held, Owner, Reservation
from ipamd.core.names import InvalidName, check_container_id, check_ifname, check_name, check_node, check_pod_ref
from ipamd.core.outcomes import Grant, Released
from ipamd.core.ports import ReservationFilter, ReservationRow
from ipamd.errors import ApiError

Text = Annotated[str, msgspec.Meta(max_length=1024)]
Note = Annotated[str, msgspec.Meta(max_length=1024)]


class ReservationBody(Given):
    """The ADD of those who are not CNI. Without `container_id` it is held, until `ttl_s` or a release."""

    pool: Text
    pod_ref: Text
    ifname: Text = "eth0"
    container_id: Text | None = None
    node: Text | None = None
    addresses: Annotated[tuple[Text, ...], msgspec.Meta(max_length=64)] = ()
    pin: bool = False
    ttl_s: int | None = None
    note: Note = ""

    def command(self, origin: Origin) -> Add:
        """What is proposed. Raises ApiError."""
        self._check()
        owner = None if self.container_id is None else Owner(self.container_id, self.node)
        return Add(
            origin,
            (PoolRequest(self.pool),),
            self.pod_ref,
            self.ifname,
            owner,
            addresses=tuple(read_address(text, f"addresses[{at}]") for at, text in enumerate(self.addresses)),
            pin=self.pin,
            ttl_s=self.ttl_s,
            note=self.note,
        )

    def _check(self) -> None:
        try:
            check_name(self.pool, "pool")
            check_pod_ref(self.pod_ref)
            check_ifname(self.ifname)
            if self.container_id is not None:
                check_container_id(self.container_id)
            if self.node is not None:
                check_node(self.node)
            if self.ttl_s is not None:
                check_seconds(self.ttl_s, "ttl_s")
        except (InvalidName, DefinitionError) as error:
            raise ApiError("invalid_request", str(error)) from None
        if self.node is not None and self.container_id is None:
            raise ApiError("invalid_request", "node says where a container runs: container_id is missing")
        if self.ttl_s is not None and (self.container_id is not None or self.pin):
            raise ApiError("invalid_request", "ttl_s ends what is held: it goes with neither container_id nor pin")


class ReservationsQuery(ListQuery):
    """Of the list of reservations; a filter that is left out matches anything."""

    pool: Text | None = None
    pod_ref: Text | None = None
    node: Text | None = None
    container_id: Text | None = None
    address: Text | None = None
    state: Literal["bound", "held", "suspect"] | None = None

    def filter(self) -> ReservationFilter:
        """What the list is narrowed to. Raises ApiError."""
        return ReservationFilter(
            self.pool,
            self.pod_ref,
            self.node,
            self.container_id,
            None if self.address is None else read_address(self.address, "address"),
            None if self.state is None else AttachmentState(self.state),
        )


class ReleaseQuery(Given):
    """Which binding a release means."""

    ifname: Text | None = None
    container_id: Text | None = None
    generation: int | None = None
    force: bool = False

    def command(self, pool: str, pod_ref: str, origin: Origin) -> Release:
        """What is proposed. Raises ApiError."""
        try:
            if self.ifname is not None:
                check_ifname(self.ifname)
            if self.container_id is not None:
                check_container_id(self.container_id)
        except InvalidName as error:
            raise ApiError("invalid_request", str(error)) from None
        return Release(origin, pool, pod_ref, self.ifname, self.container_id, self.generation, self.force)


class AttachmentShown(Shown):
    """One interface of a reservation. What an import did not know is null."""

    ifname: str | None
    cni_network: str | None
    container_id: str | None
    node: str | None
    netns: str | None
    state: str
    generation: int
    since: str
    addresses: tuple[str, ...]


class ReservationShown(Shown):
    """A pool's promise to a pod. What an import did not know is null; such a pod's path is `_//CONTAINERID`."""

    pool: str
    space: str
    pod_ref: str | None
    pod_uid: str | None
    created: str
    pinned: bool
    note: str
    attachments: tuple[AttachmentShown, ...]


class ReleasedShown(Shown, omit_defaults=True):
    """The answer to a release. `reason` is `stale` where what was named is not the current binding."""

    released: bool
    items: tuple[LetGoShown, ...]
    reason: str | UnsetType = UNSET


def read_address(text: str, where: str) -> Address:
    """An address of a request. Raises ApiError."""
    try:
        return parse_address(text)
    except AddressError as error:
        raise ApiError("invalid_request", f"{where}: {error}") from None


def show_row(row: ReservationRow) -> ReservationShown:
    """A reservation that was read."""
    return _show(row.pool.name, row.pool.space, row.reservation, row.held)


def show_own(row: ReservationRow, node: str) -> ReservationShown:
    """A reservation as one node may see it: with its own attachments."""
    own = tuple(one for one in row.held if one.attachment.owner and one.attachment.owner.node == node)
    return _show(row.pool.name, row.pool.space, row.reservation, own)


def show_grant(grant: Grant) -> ReservationShown:
    """A reservation that was made or found by an ADD."""
    return _show(grant.pool, grant.space, grant.reservation, grant.held)


def show_released(released: Released) -> ReleasedShown:
    """The answer to a release."""
    if released.stale and not released.items:
        return ReleasedShown(released=False, items=(), reason="stale")
    return ReleasedShown(released=True, items=let_go(released.items))


def _show(pool: str, space: str, reservation: Reservation, held: tuple[Held, ...]) -> ReservationShown:
    return ReservationShown(
        pool=pool,
        space=space,
        pod_ref=None if is_open_pod(reservation.pod_ref) else reservation.pod_ref,
        pod_uid=reservation.pod_uid,
        created=when(reservation.created_ms),
        pinned=reservation.pinned,
        note=reservation.note,
        attachments=tuple(_attachment(one) for one in held),
    )


def _attachment(held: Held) -> AttachmentShown:
    attachment, owner = held.attachment, held.attachment.owner
    return AttachmentShown(
        ifname=known_ifname(attachment.ifname),
        cni_network=owner.cni_network if owner else None,
        container_id=owner.container_id if owner else None,
        node=owner.node if owner else None,
        netns=owner.netns if owner else None,
        state=attachment.state.value,
        generation=attachment.generation,
        since=when(attachment.since_ms),
        addresses=tuple(f"{one.address}/{one.prefix}" for one in held.addresses),
    )
