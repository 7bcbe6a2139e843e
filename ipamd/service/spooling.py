"""Owns DELs that the cluster cannot take now: they are put aside, and delivered in order before anything else goes on.

A DEL never blocks a node: what nobody takes within half a second is kept on the disk, and is a success for its caller.
What allocates, collects or reports waits until all that was kept before it is delivered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

from ipamd.core.commands import CallStart
from ipamd.core.ports import Unavailable
from ipamd.core.spooled import Damaged, Spool, SpooledCall, SpoolError
from ipamd.core.values import replace
from ipamd.errors import ApiError
from ipamd.service.background import Background
from ipamd.service.ports import Clock

T = TypeVar("T")

PATIENCE_S: Final = 0.5
"""How long the cluster has to take a DEL before it is put aside."""

ALONE_PATIENCE_S: Final = 3.0
"""The same where there is nobody else: what is put aside would only be done later by the same process."""

_SLACK_S: Final = 0.1
"""An attempt that overruns its time by so much is cut off."""

DELIVERY_S: Final = 5.0
"""How long one attempt to deliver may take."""

_PAUSE_S: Final = (0.1, 0.2, 0.4, 0.8)
"""How long to wait after an attempt in vain, after two, ...: a cluster that is back is found within a second."""

FEW: Final = 64
"""So many are delivered one after the other; ..."""

AT_ONCE: Final = 32
"""... where more wait, so many are under way at once."""

_FAULTS: Final = 10
"""After so many answers that are the server's own fault, or readings that fail, one call keeps the others no longer."""

_NOT_NOW: Final = frozenset({"unauthorized", "forbidden", "too_many_requests"})
"""Refusals that are about the moment and not about the call."""

_log = logging.getLogger("ipamd.spool")


class Undeliverable(Exception):  # noqa: N818 - what the call is
    """A call that no server will ever take. One sentence."""


class Faulty(Unavailable):
    """A server answered that it made a mistake: it may make it again with this call, for ever."""


Deliver = Callable[[SpooledCall, float], Awaitable[None]]
"""Gives a call to the cluster, until a moment of the monotonic clock. Raises Unavailable, Undeliverable."""


class Spooling(Background):
    """The spool of this process, and its delivery. Used in one loop."""

    def __init__(
        self,
        spool: Spool,
        deliver: Deliver,
        *,
        clock: Clock,
        now: Callable[[], CallStart | None],
        is_on: bool = True,
        is_alone: Callable[[], bool] = lambda: False,
    ) -> None:
        """`now`: boot and time since boot, for a call that does not say them. `is_on` False: nothing is put aside.

        `is_alone`: this process is the whole cluster, which needs no quorum: it is slow at worst.
        """
        super().__init__()
        self._spool, self._deliver, self._clock, self._now = spool, deliver, clock, now
        self.is_on, self._is_alone = is_on, is_alone
        self._came, self._moved = asyncio.Event(), asyncio.Event()
        self._said: str | None = None
        self._faults = 0

    @property
    def length(self) -> int:
        """How many calls wait."""
        return self._spool.length

    @property
    def refused(self) -> int:
        """How many calls that nobody takes are kept for people."""
        return self._spool.refused

    async def take(self, call: SpooledCall, attempt: Callable[[float], Awaitable[T]], deadline_s: float) -> T | None:
        """Have the cluster take a valid DEL; None: it is put aside. `attempt` is told until when it may try.

        Raises what the attempt raises where that is definite, and Unavailable where the call could not be kept.
        """
        if not self.is_on:
            return await attempt(deadline_s)
        arrived = self._now()
        try:
            patience_s = ALONE_PATIENCE_S if self._is_alone() else PATIENCE_S
            async with asyncio.timeout(patience_s + _SLACK_S):
                return await attempt(min(deadline_s, self._clock.monotonic_s() + patience_s))
        except TimeoutError:
            why = "nothing was answered in time"
        except Unavailable as error:
            why = error.detail
        except ApiError as error:
            if error.row.code not in _NOT_NOW and error.row.status < 500:
                raise
            why = error.detail
        try:
            await self._spool.put(_started(call, arrived))
        except SpoolError as error:
            raise Unavailable(f"{why}; and {error}", "unknown") from error
        self._came.set()
        _log.info(
            "a DEL is put aside: %s",
            why,
            extra={"container_id": call.container_id, "request_id": call.request_id, "spooled": self.length},
        )
        return None

    async def clear(self, deadline_s: float) -> None:
        """Wait until all calls that were put aside before are delivered. Raises Unavailable."""
        newest = self._spool.newest
        if newest is None:
            return
        try:
            async with asyncio.timeout(deadline_s - self._clock.monotonic_s()):
                while (oldest := self._spool.oldest) is not None and oldest <= newest:
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            waiting = "a DEL waits" if self.length == 1 else f"{self.length} DELs wait"
            why = f": {self._said}" if self._said else ""
            raise Unavailable(f"{waiting} to be delivered before this{why}", "none") from None

    async def _run(self) -> None:
        while True:
            tries = 0
            while (number := self._spool.oldest) is not None:
                if await self._forward(number):
                    tries = self._faults = 0
                    await self._forward_many()
                else:
                    await asyncio.sleep(_PAUSE_S[min(tries, len(_PAUSE_S) - 1)])
                    tries += 1
            if self._said is not None:
                self._said = None
                _log.info("all DELs that were put aside are delivered")
            self._came.clear()
            if self._spool.oldest is None:
                await self._came.wait()

    async def _forward_many(self) -> None:
        """While many wait and all goes well, some at once: each says when it started, so that any order does."""
        while self.length > FEW:
            some = self._spool.first(AT_ONCE)
            if not all(await asyncio.gather(*(self._forward(number, alone=False) for number in some))):
                return

    async def _forward(self, number: int, *, alone: bool = True) -> bool:
        """One attempt with one call; whether it waits no more. What is at fault is found out about each alone."""
        call = None
        try:
            call = await self._spool.read(number)
            await self._deliver(call, self._clock.monotonic_s() + DELIVERY_S)
        except Damaged as error:
            await self._refuse(number, f"the file is damaged: {error}", None)
        except Undeliverable as error:
            await self._refuse(number, str(error), call)
        except (Faulty, SpoolError) as error:
            self._faults += alone
            if self._faults < _FAULTS:
                return self._waits(str(error))
            what = "the servers fail over it" if call is not None else "its file cannot be read"
            await self._refuse(number, f"{what}: {error}", call)
        except Unavailable as error:
            return self._waits(error.detail)
        else:
            await self._drop(number)
        self._moved.set()
        return True

    def _waits(self, why: str) -> bool:
        if why != self._said:
            self._said = why
            _log.warning("DELs that were put aside wait: %s", why, extra={"spooled": self.length})
        return False

    async def _drop(self, number: int) -> None:
        try:
            await self._spool.drop(number)
        except SpoolError as error:
            _log.error("a delivered DEL will be delivered again: %s", error)

    async def _refuse(self, number: int, why: str, call: SpooledCall | None) -> None:
        fields = {} if call is None else {"container_id": call.container_id, "request_id": call.request_id}
        _log.error("a DEL that was put aside is refused for good: %s", why, extra={"number": number, **fields})
        with suppress(SpoolError):  # said above: the line in the log is all that is left of it
            await self._spool.refuse(number, why)


def _started(call: SpooledCall, arrived: CallStart | None) -> SpooledCall:
    """A call that says when it started. Delivered without that it would count as later than all that came since."""
    if arrived is None or (call.headers.get("Ipamd-Boot-Id") and call.headers.get("Ipamd-Started")):
        return call
    start = {"Ipamd-Boot-Id": arrived.boot_id, "Ipamd-Started": str(arrived.ns)}
    return replace(call, headers={**call.headers, **start})
