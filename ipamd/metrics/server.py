"""Owns what a server exposes: its own work, its log, and the replicated state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ipamd.metrics import own
from ipamd.metrics.exposition import Process, Sample, text_of
from ipamd.metrics.log import WatchedLog, log
from ipamd.metrics.state import StateMetrics
from ipamd.service import Services


def _nothing() -> None:
    """It is not known."""


@dataclass(frozen=True)
class Watched:
    """What is looked at beside the use cases. `certificate_ends_s`: unix time; None: there is none."""

    log: WatchedLog
    version: str
    is_halted: Callable[[], bool]
    differs: Callable[[], bool]
    certificate_ends_s: Callable[[], float | None] = _nothing


class ServerMetrics:
    """The metrics of a server: service.ports.Exposition. Used in one loop."""

    def __init__(self, services: Services, watched: Watched) -> None:
        self._services, self._watched = services, watched
        self._state = StateMetrics(services.reader, services.clock)
        self._process = Process()

    async def exposed(self) -> bytes:
        """All of them, as they are now; those of the state as they were some seconds ago."""
        state = await self._state.text()
        samples = list(self._samples())
        mine, process = await asyncio.to_thread(lambda: (text_of(samples), self._process.text()))
        return b"".join((state, mine, process))

    async def stop(self) -> None:
        """End what is under way."""
        await self._state.stop()

    def _samples(self) -> Iterator[Sample]:
        services = self._services
        yield from own.build("server", self._watched.version)
        yield from own.calls(services.calls)
        yield from own.answers(services.answers)
        yield from own.refusals(services.refusals)
        yield Sample("ipamd_event_streams", services.feed.following)
        yield from own.spool(services.spooling)
        yield from log(self._watched.log)
        yield from self._member()

    def _member(self) -> Iterator[Sample]:
        watched, facts = self._watched, self._services.facts
        about = (self._state.cluster_id or "", facts.member, facts.whole_node)
        yield Sample("ipamd_member_info", 1, about)
        yield Sample("ipamd_state_differs", watched.differs())
        yield Sample("ipamd_writes_halted", watched.is_halted())
        ends_s = watched.certificate_ends_s()
        if ends_s is not None:
            yield Sample("ipamd_certificate_expiry_timestamp_seconds", ends_s)
        yield from self._backups()

    def _backups(self) -> Iterator[Sample]:
        backups = self._services.backups
        figures = None if backups is None else backups.figures
        if figures is None:
            return
        now_s = self._services.clock.wall_ms() / 1000
        yield Sample("ipamd_backup_last_timestamp_seconds", 0 if figures.age_s is None else now_s - figures.age_s)
        yield Sample("ipamd_backup_size_bytes", figures.size_bytes)
        yield Sample("ipamd_backups_failed_total", figures.failed)
