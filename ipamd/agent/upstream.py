"""Owns the way of a request to the cluster: one server after the other, until one has a definite answer or time ends.

A request that changes something carries one key to all of them, so that it is carried out once however many were asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ipamd.agent.servers import Servers
from ipamd.cni.answer import is_unknown
from ipamd.core.ports import Unavailable
from ipamd.service.ports import Clock, Random
from ipamd.service.wire import Asked, Said, Transport

_PAUSE_S: Final = (0.05, 0.1, 0.2)
"""How long to wait when all servers were asked in vain, the first time, the second, ..."""

_LEAST_S: Final = 0.02
"""With less time left nobody is asked any more."""

_SHORT_S: Final = 1.0
_OF_PROXIES: Final = (502, 504)
"""What stands between may have passed the request on."""

_KEY_BYTES: Final = 16

_LIVES: Final = Asked("GET", "/livez", {})

Wanted = Callable[[Said], bool]


class NoAnswer(Unavailable):
    """No server had the answer that was wanted. `said`: the last that one had instead."""

    said: Said | None = None


class Upstream:
    """The cluster, as one. Used in one loop."""

    def __init__(self, transport: Transport, servers: Servers, *, clock: Clock, random: Random) -> None:
        self._transport, self.servers, self._clock, self._random = transport, servers, clock, random
        self.index = 0
        """The highest log index that a server has named."""

        self.heard_s: float | None = None
        """When a server answered last, on the clock's monotonic scale."""

    async def ask(
        self, asked: Asked, deadline_s: float, *, wanted: Wanted = lambda said: not said.is_passing, once: bool = False
    ) -> Said:
        """An answer that is wanted. `once`: a round of all servers is enough if somebody answers. Raises NoAnswer."""
        asked = self._keyed(asked)
        failures: dict[str, str] = {}
        last, unknown, rounds = None, False, 0
        while True:
            for url, others in self._round():
                left_s = deadline_s - self._clock.monotonic_s()
                if left_s < _LEAST_S:
                    break
                try:
                    said = await self._try(url, asked, left_s, others)
                except Unavailable as error:
                    failures[url] = error.detail
                    unknown |= error.outcome == "unknown"
                    self.servers.failed(url)
                    continue
                if wanted(said):
                    return said
                last, failures[url] = said, f"status {said.status}"
                unknown |= said.status in _OF_PROXIES or is_unknown(said.body)
                self.servers.failed(url)
            pause_s = _PAUSE_S[min(rounds, len(_PAUSE_S) - 1)]
            rounds += 1
            if (once and last is not None) or self._clock.monotonic_s() + pause_s + _LEAST_S > deadline_s:
                raise _no_answer(failures, last, unknown=unknown)
            await asyncio.sleep(pause_s)

    async def ask_at(self, url: str, asked: Asked, timeout_s: float) -> Said:
        """The answer of one server, whatever it is. Raises Unavailable."""
        return await self._transport.exchange(url, asked, timeout_s)

    async def greet(self, timeout_s: float) -> None:
        """Ask the other servers whether they live: connections to them stay warm, and the dead go to the end."""
        order = self.servers.order()[1:]
        alive = await asyncio.gather(*(self._lives(url, timeout_s) for url in order))
        for url in (url for url, lives in zip(order, alive, strict=True) if not lives):
            self.servers.failed(url)

    async def _lives(self, url: str, timeout_s: float) -> bool:
        try:
            return (await self._transport.exchange(url, _LIVES, timeout_s)).status == 200
        except Unavailable:
            return False

    def _round(self) -> list[tuple[str, int]]:
        """All servers, with how many come after each."""
        order = self.servers.order()
        return [(url, len(order) - place - 1) for place, url in enumerate(order)]

    async def _try(self, url: str, asked: Asked, left_s: float, others: int) -> Said:
        """One server. While there are others it has half of the time, so that a dead one does not take all of it."""
        share_s = left_s / 2 if others else left_s
        told_s = share_s if share_s >= _SHORT_S else left_s
        headed = asked.saying(Ipamd_Deadline_Ms=str(max(1, int(told_s * 1000))))
        said = await self._transport.exchange(url, headed, share_s)
        self.heard_s = self._clock.monotonic_s()
        self.index = max(self.index, said.index)
        if asked.mark is not None and said.headers.get("Content-Type") != asked.mark and not said.is_passing:
            raise Unavailable(f"what answers there is no server of ipamd (status {said.status})", "none")
        return said

    def _keyed(self, asked: Asked) -> Asked:
        if asked.method == "GET" or "Idempotency-Key" in asked.headers:
            return asked
        return asked.saying(Idempotency_Key=self._random(_KEY_BYTES).hex())


def _no_answer(failures: dict[str, str], last: Said | None, *, unknown: bool) -> NoAnswer:
    if failures:
        detail = "no answer from " + ", ".join(f"{url} ({why})" for url, why in failures.items())
    else:
        detail = "no time was left to ask a server"
    error = NoAnswer(detail, "unknown" if unknown else "none")
    error.said = last
    return error
