"""Owns what a decision may read of a restore; part of `ports.View`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ipamd.core.addresses import Address
from ipamd.core.model import Pool
from ipamd.core.restored import Disputed, Restored


class RestoredView(Protocol):
    """What waits since a restore. Every sequence is in a fixed order, the same on each member."""

    def restored(self) -> Restored | None:
        """The restore that is not confirmed in every pool; None: there is none."""

    def is_unconfirmed(self, pool_id: int) -> bool:
        """Whether a pool waits to be confirmed."""

    def unconfirmed_of_space(self, space: str) -> Sequence[Pool]:
        """The pools of a space that wait to be confirmed, by name."""

    def unconfirmed(self) -> Sequence[Pool]:
        """All pools that wait to be confirmed, by name."""

    def unconfirmed_around(self, address: Address) -> Sequence[Pool]:
        """The pools that wait to be confirmed and have an address between the bounds of a range, by name."""

    def disputed(self, space: str, address: Address) -> Disputed | None:
        """Who else uses an address than its record says."""

    def disputes(self) -> Sequence[Disputed]:
        """All of them, by space and address."""
