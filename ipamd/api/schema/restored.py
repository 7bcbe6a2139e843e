"""Owns the JSON of what waits after a restore."""

from __future__ import annotations

from ipamd.api.schema.common import Shown, when
from ipamd.core.addresses import address_text
from ipamd.core.outcomes import Confirmed
from ipamd.core.restored import Disputed


class ConflictingShown(Shown):
    """An address that is recorded for one pod, and that a node says another one of its pods uses."""

    space: str
    address: str
    node: str
    container_id: str
    ifname: str
    pod_ref: str
    since: str


class ConfirmedShown(Shown):
    """A pool that is confirmed after a restore; not `confirmed`: it was so already.

    `unreported` are the nodes that have not reported since, `conflicts` the addresses that two pods use, `unconfirmed`
    the pools that still wait.
    """

    pool: str
    confirmed: bool
    unreported: tuple[str, ...]
    conflicts: tuple[ConflictingShown, ...]
    unconfirmed: tuple[str, ...]


def show_confirmed(confirmed: Confirmed) -> ConfirmedShown:
    """What a confirmation found and did."""
    return ConfirmedShown(
        pool=confirmed.pool,
        confirmed=confirmed.changed,
        unreported=confirmed.silent,
        conflicts=tuple(map(show_disputed, confirmed.disputed)),
        unconfirmed=confirmed.left,
    )


def show_disputed(disputed: Disputed) -> ConflictingShown:
    """An address in conflict."""
    return ConflictingShown(
        space=disputed.space,
        address=address_text(disputed.address),
        node=disputed.node,
        container_id=disputed.container_id,
        ifname=disputed.ifname,
        pod_ref=disputed.pod_ref,
        since=when(disputed.since_ms),
    )
