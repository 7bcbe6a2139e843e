"""Owns the JSON of single addresses."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from ipamd.api.schema.common import Given, ListQuery, Shown, maybe_when, read_time, when
from ipamd.core.model import Quarantine
from ipamd.core.ports import HistoryRow
from ipamd.errors import ApiError
from ipamd.service.addresses import ShownAddress


class HistoryQuery(ListQuery):
    """Of the holders of an address; `at`: of the one at that time."""

    space: str = "default"
    at: str | None = None

    def at_ms(self) -> int | None:
        """That time. Raises ApiError."""
        if self.at is None:
            return None
        if self.cursor is not None:
            raise ApiError("invalid_request", "query parameter cursor: at a time there is one holder at most")
        return read_time(self.at, "query parameter at")


class QuarantineBody(Given):
    """How long an address is out of use (without `for_s`: until that is lifted), and why."""

    for_s: int | None = None
    note: Annotated[str, msgspec.Meta(max_length=1024)] = ""


class AddressShown(Shown, omit_defaults=True):
    """What an address is doing now; `reason` is a sentence for people."""

    address: str
    space: str
    state: str
    pools: tuple[str, ...]
    reason: str
    pod_ref: str | UnsetType = UNSET
    ifname: str | UnsetType = UNSET
    node: str | UnsetType = UNSET
    since: str | UnsetType = UNSET


class HolderShown(Shown):
    """One holder of an address; `to` null: it holds it still."""

    pool: str
    pod_ref: str
    ifname: str
    node: str | None
    from_: str = msgspec.field(name="from")
    to: str | None
    from_index: int
    to_index: int | None


class QuarantineShown(Shown):
    """An address that is out of use, until then at the latest (null: until it is lifted)."""

    address: str
    space: str
    since: str
    until: str | None
    note: str
    by: str


def show(shown: ShownAddress) -> AddressShown:
    """What an address is doing."""
    return AddressShown(
        address=str(shown.address),
        space=shown.space,
        state=shown.state,
        pools=shown.pools,
        reason=shown.reason,
        pod_ref=_or_unset(shown.pod_ref),
        ifname=_or_unset(shown.ifname),
        node=_or_unset(shown.node),
        since=_or_unset(maybe_when(shown.since_ms)),
    )


def show_holder(row: HistoryRow) -> HolderShown:
    """One holder of an address."""
    return HolderShown(
        pool=row.pool,
        pod_ref=row.pod_ref,
        ifname=row.ifname,
        node=row.node,
        from_=when(row.from_ms),
        to=maybe_when(row.to_ms),
        from_index=row.from_index,
        to_index=row.to_index,
    )


def show_quarantine(quarantine: Quarantine, for_s: int | None) -> QuarantineShown:
    """A quarantine that was set for so many seconds of log time, which people read as wall time."""
    return QuarantineShown(
        address=str(quarantine.address),
        space=quarantine.space,
        since=when(quarantine.since_ms),
        until=None if for_s is None else when(quarantine.since_ms + for_s * 1000),
        note=quarantine.note,
        by=quarantine.by,
    )


def _or_unset(text: str | None) -> str | UnsetType:
    return UNSET if text is None else text
