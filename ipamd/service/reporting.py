"""Owns telling the cluster of this node, on a server and on an agent alike: heartbeats, and what is found of its pods.

What the cluster answers first - what it thinks is bound here - is what is looked at; the log index of that answer goes
with the report, so that nothing that was bound meanwhile is judged by it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ipamd.core.inventory import Inventory
from ipamd.core.ports import Unavailable
from ipamd.errors import ApiError
from ipamd.service.background import Background
from ipamd.service.heartbeats import EVERY_S as HEARTBEAT_EVERY_S
from ipamd.service.nodes import Conflict
from ipamd.service.ports import Clock
from ipamd.service.sandboxes import Sandbox, Sandboxes

REPORT_EVERY_S: Final = 30.0
AGAIN_S: Final = 2.0
"""How soon it is tried again where the cluster did not answer: a node that comes back says so at once."""

_PATIENCE_S: Final = 8.0

logger = logging.getLogger("ipamd.node")


@dataclass(frozen=True, slots=True)
class Known:
    """What the cluster thinks is bound on a node, at a log index."""

    node: str
    index: int
    cluster_id: str | None
    sandboxes: tuple[Sandbox, ...]
    boots: tuple[str, ...] = ()
    """The node's boots, the newest last."""

    wants_all: bool = False
    """The cluster may have given some up: it does not know this node, counted it as lost, or was restored."""


class Reach(Protocol):
    """How a node reaches its cluster. Each may raise Unavailable and ApiError; `deadline_s` is on the clock's scale."""

    async def known(self, deadline_s: float) -> Known:
        """What is bound on this node, as of all that was acknowledged before. None of it where the node is unknown."""

    async def report(self, inventory: Inventory, cluster_id: str | None, deadline_s: float) -> Sequence[Conflict]:
        """Send what was found; who else has addresses that are in use here still."""

    async def heartbeat(self, deadline_s: float) -> None:
        """Say that this node is there."""


class Reporting(Background):
    """Goes on for as long as the process runs."""

    @staticmethod
    async def no_order(_deadline_s: float) -> None:
        """Nothing waits to be delivered before."""

    def __init__(
        self,
        reach: Reach,
        sandboxes: Sandboxes,
        clock: Clock,
        *,
        boot_id: str | None,
        spooled: Callable[[], int] = lambda: 0,
        in_order: Callable[[float], Awaitable[None]] = no_order,
        heartbeat_every_s: float = HEARTBEAT_EVERY_S,
        report_every_s: float = REPORT_EVERY_S,
    ) -> None:
        """`boot_id` None: the kernel does not say it, and nothing is reported.

        `spooled` counts the DELs that wait, `in_order` waits until those that wait now are delivered.
        """
        super().__init__()
        self._reach, self._sandboxes, self._clock, self._boot_id = reach, sandboxes, clock, boot_id
        self._spooled, self._in_order = spooled, in_order
        self._heartbeat_every_s, self._report_every_s = heartbeat_every_s, report_every_s
        self._said: str | None = None
        self._has_waited = False
        self.conflicts: tuple[Conflict, ...] = ()
        """What the last report was answered."""

    async def _run(self) -> None:
        report_s = self._clock.monotonic_s()
        while True:
            is_due = self._clock.monotonic_s() >= report_s
            is_done = await self._try(self.report if is_due else self.heartbeat)
            if is_due and is_done:
                report_s = self._clock.monotonic_s() + self._report_every_s
            elif not is_done:
                report_s = self._clock.monotonic_s()  # whoever was away reports before anything else
            until_report_s = max(0.0, report_s - self._clock.monotonic_s())
            await asyncio.sleep(
                min(self._heartbeat_every_s, until_report_s) if is_done else min(AGAIN_S, self._heartbeat_every_s)
            )

    async def heartbeat(self) -> None:
        """Say once that this node is there. Raises Unavailable, ApiError."""
        await self._reach.heartbeat(self._deadline_s())

    async def report(self) -> None:
        """Look once at what is bound here, and report it. Raises Unavailable, ApiError."""
        await self._wait_for_spooled()
        deadline_s = self._deadline_s()
        known = await self._reach.known(deadline_s)
        boot_id = self._settle_boot(known)
        if boot_id is None:
            await self._reach.heartbeat(deadline_s)
            return
        try:
            listed = await self._sandboxes.look(known.sandboxes, with_forgotten=known.wants_all)
        except TimeoutError:
            raise Unavailable("this node's namespaces could not be looked at in time", "none") from None
        inventory = Inventory(known.node, boot_id, known.index, listed, self._spooled())
        self._tell(tuple(await self._reach.report(inventory, known.cluster_id, self._deadline_s())))

    async def _wait_for_spooled(self) -> None:
        """Until what is to be delivered before is delivered; meanwhile the node is there."""
        try:
            await self._in_order(self._deadline_s())
        except Unavailable:
            await self.heartbeat()
            raise

    def _settle_boot(self, known: Known) -> str | None:
        """The boot to report from; None: not now.

        It is the one that the plugins here say, since their calls are ordered by it. Until one has called, a newer boot
        than the kernel's own means that another host has this name, or that the plugins see another id than this
        process does: so one report is left out, for a call to tell which.
        """
        heard = self._sandboxes.boot_id
        if heard is not None or self._boot_id not in known.boots[:-1] or self._has_waited:
            return heard or self._boot_id
        self._has_waited = True
        return None

    async def _try(self, work: Callable[[], Awaitable[None]]) -> bool:
        try:
            await work()
        except (Unavailable, ApiError) as error:
            if error.detail != self._said:
                logger.warning("this node cannot report: %s", error.detail)
                self._said = error.detail
            return False
        if self._said is not None:
            self._said = None
            logger.info("this node reports again")
        return True

    def _tell(self, conflicts: tuple[Conflict, ...]) -> None:
        for one in sorted(set(conflicts) - set(self.conflicts), key=lambda one: one.address):
            who = (
                f"{one.ifname or 'an interface'} of {one.pod_ref} in pool {one.pool}"
                if one.pod_ref
                else "nobody yet, but may be any time"
            )
            logger.error("conflict: a container here still uses %s, which was given to %s", one.address, who)
        self.conflicts = conflicts

    def _deadline_s(self) -> float:
        return self._clock.monotonic_s() + _PATIENCE_S
