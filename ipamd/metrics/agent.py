"""Owns what an agent exposes: its own work, and how it stands with the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Protocol

from ipamd.metrics import own
from ipamd.metrics.exposition import Process, Sample, text_of
from ipamd.service.answers import Answers
from ipamd.service.calls import Calls
from ipamd.service.ports import Clock
from ipamd.service.spooling import Spooling


class WatchedAgent(Protocol):
    """What is looked at of an agent: `ipamd.agent.Agent` has it."""

    @property
    def calls(self) -> Calls:
        """Its CNI calls."""

    @property
    def answers(self) -> Answers:
        """Its other answers."""

    @property
    def spooling(self) -> Spooling | None:
        """Its spool."""

    @property
    def clock(self) -> Clock:
        """What `heard_s` is on."""

    def applied(self) -> int:
        """The highest log index that a server has named."""


class AgentMetrics:
    """The metrics of an agent: service.ports.Exposition."""

    def __init__(
        self, agent: WatchedAgent, version: str, *, servers: Callable[[], int], heard_s: Callable[[], float | None]
    ) -> None:
        """`heard_s`: when a server answered last, on the agent's monotonic clock."""
        self._agent, self._version, self._servers, self._heard_s = agent, version, servers, heard_s
        self._process = Process()

    async def exposed(self) -> bytes:
        """All of them, as they are now."""
        samples = list(self._samples())
        mine, process = await asyncio.to_thread(lambda: (text_of(samples), self._process.text()))
        return mine + process

    def _samples(self) -> Iterator[Sample]:
        agent = self._agent
        yield from own.build("agent", self._version)
        yield from own.calls(agent.calls)
        yield from own.answers(agent.answers)
        yield from own.spool(agent.spooling)
        yield Sample("ipamd_upstream_servers", self._servers())
        heard_s = self._heard_s()
        if heard_s is not None:
            yield Sample("ipamd_upstream_silent_seconds", agent.clock.monotonic_s() - heard_s)
        yield Sample("ipamd_upstream_index", agent.applied())
