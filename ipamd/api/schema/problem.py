"""Owns the JSON of an error: what every one has, and what some have besides."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from ipamd.api.schema.common import Shown, StrandedShown


class FaultShown(Shown):
    """A place in a body that cannot be used, and why."""

    place: str
    why: str


class ContradictionShown(Shown):
    """A place in what is to be imported that stands against another, or against what is there."""

    place: str
    address: str | None
    why: str


class Problem(Shown, omit_defaults=True):
    """An error (RFC 9457). `code` is one of the stable codes.

    `outcome` is that of a 503, `pool` and `ranges` those of a refused allocation, `newest`, `oldest` and `since` those
    of what is not kept; the lists name each part of what was refused.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    outcome: Literal["none", "unknown"] | UnsetType = UNSET
    pool: str | UnsetType = UNSET
    ranges: tuple[str, ...] | UnsetType = UNSET
    stranded: tuple[StrandedShown, ...] | UnsetType = UNSET
    faults: tuple[FaultShown, ...] | UnsetType = UNSET
    conflicts: tuple[ContradictionShown, ...] | UnsetType = UNSET
    newest: int | UnsetType = UNSET
    oldest: int | UnsetType = UNSET
    since: str | UnsetType = UNSET
