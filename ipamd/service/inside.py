"""Owns what members tell and do for each other: this member's own log, and what it says of itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import NamedTuple

from ipamd.core.model import Member
from ipamd.core.ports import Log
from ipamd.service.ports import Glimpse


class StateFile(NamedTuple):
    """A file with a state, whole and closed, for a member that lags too far behind the log."""

    path: str
    size_bytes: int


def _no_days() -> int | None:
    """Nothing is known of a certificate where there is none."""
    return None


def _no_clock() -> int | None:
    """It does not say what time it is."""
    return None


def _nobody_counts(_node: str) -> None:
    """Nobody watches the nodes."""


@dataclass(frozen=True)
class Inside:
    """A member as the others see it. `log` is its own: who asks it has looked for the leader already."""

    name: str
    member_id: str
    log: Log
    cluster_id: Callable[[], str | None]
    members: Callable[[], tuple[Member, ...]]
    state_file: Callable[[], AbstractAsyncContextManager[StateFile]]
    digests: Callable[[], Mapping[int, str]]
    hand_over: Callable[[str | None, float], Awaitable[None]]
    """Have another member lead (None: the most advanced), within so many seconds. Raises Unavailable."""

    certificate_days: Callable[[], int | None] = _no_days
    heard: Callable[[str], None] = _nobody_counts
    """A node was heard by another member, and this one leads."""

    version: str = ""
    """Of this program."""

    wall_ms: Callable[[], int | None] = _no_clock
    insecure: bool = False
    """Members have no certificates; they are believed on loopback."""

    def glimpse(self) -> Glimpse:
        """What it says of itself."""
        status = self.log.status()
        return Glimpse(
            self.name,
            self.member_id,
            self.cluster_id(),
            status.leader,
            status.term,
            status.applied,
            status.committed,
            self.certificate_days(),
            self.digests(),
            self.version,
            self.wall_ms(),
        )

    def knows(self, name: str) -> bool:
        """Whether a member has this name."""
        return any(member.name == name for member in self.members())
