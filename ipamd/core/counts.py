"""Owns how the addresses of a pool are counted."""

from __future__ import annotations

from typing import NamedTuple


class FamilyCounts(NamedTuple):
    """How the usable addresses of one family of a pool are spent: all but `total` sum to `total`.

    Usable are addresses that a range of the pool gives; `elsewhere` are held through another pool of the space.
    """

    total: int
    bound: int
    held: int
    cooling: int
    quarantined: int
    withheld: int
    elsewhere: int
    free: int


class Doubt(NamedTuple):
    """How many of a pool's bound addresses of a family are in doubt on one node: suspect, or lost with it."""

    family: int
    node: str
    suspect: int
    lost: int
    silent_since_ms: int | None
