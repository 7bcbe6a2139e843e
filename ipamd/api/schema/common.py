"""Owns what all shapes share: the bases, times, counts, lists and the problem document."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Generic, Literal, TypeVar

import msgspec

from ipamd.core.imports import known_ifname
from ipamd.core.outcomes import LetGo, Stranded
from ipamd.errors import ApiError

T = TypeVar("T")

MAX_EXACT = 2**53
"""The largest integer that every JSON reader keeps exact."""

_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_FRACTION = re.compile(r"(\.\d{6})\d+")
_EPOCH, _MS = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)

MAX_LIMIT = 5000
DEFAULT_LIMIT = 500


class Given(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a caller sends: nothing that is not known."""


class Shown(msgspec.Struct, kw_only=True):
    """What the API answers."""


class NoQuery(Given):
    """Of a request that takes no query parameters."""


class ReadQuery(Given):
    """Of a read: `stale=ok` is content with the state of the member that is asked."""

    stale: Literal["ok"] | None = None


class ListQuery(ReadQuery):
    """Of a list: how many items, and where to go on."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT
    cursor: str | None = None


class SpaceQuery(ReadQuery):
    """Of a read in an address space."""

    space: str = "default"


class WriteSpaceQuery(Given):
    """Of a write in an address space."""

    space: str = "default"


class Items(Shown, Generic[T]):
    """A list, or a part of it: `next` is the cursor of the following part."""

    items: tuple[T, ...]
    next: str | None = None


class StrandedShown(Shown):
    """A holder that a changed pool would not serve again, or a deleted one frees."""

    pod_ref: str
    ifname: str | None
    address: str


class LetGoShown(Shown):
    """An interface that was let go: `held` addresses are kept for their pod, others are free."""

    pool: str
    pod_ref: str
    ifname: str | None
    node: str | None
    addresses: tuple[str, ...]
    held: bool


def when(ms: int) -> str:
    """A time as RFC 3339 in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_time(text: str, name: str) -> int:
    """A time of RFC 3339, with its offset from UTC, in ms. Raises ApiError."""
    try:
        at = (
            datetime.fromisoformat(_FRACTION.sub(r"\1", text.upper())).astimezone(UTC)
            if _TIME.fullmatch(text)
            else None
        )
    except (ValueError, OverflowError):  # the 30th of February; before the year 1
        at = None
    if at is None:
        detail = f"{name} must be a time like 2026-11-24T09:00:00Z (RFC 3339), not {text[:40]!r}"
        raise ApiError("invalid_request", detail)
    return (at - _EPOCH) // _MS


def maybe_when(ms: int | None) -> str | None:
    """The same for a time that may be missing."""
    return None if ms is None else when(ms)


def amount(number: int) -> int | str:
    """A count: an integer as long as every reader keeps it exact, then a decimal string."""
    return number if number <= MAX_EXACT else str(number)


def stranded(holders: tuple[Stranded, ...]) -> tuple[StrandedShown, ...]:
    """Holders as they are listed."""
    return tuple(
        StrandedShown(pod_ref=one.pod_ref, ifname=known_ifname(one.ifname), address=str(one.address)) for one in holders
    )


def let_go(items: tuple[LetGo, ...]) -> tuple[LetGoShown, ...]:
    """What was let go, as it is listed."""
    return tuple(
        LetGoShown(
            pool=one.pool,
            pod_ref=one.pod_ref,
            ifname=known_ifname(one.ifname),
            node=one.node,
            addresses=tuple(str(address) for address in one.addresses),
            held=one.held,
        )
        for one in items
    )
