"""Owns getting a snapshot from another member: one at a time, in another loop than the member's own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from ipamd.consensus.clock import Clock
from ipamd.consensus.peers import SnapshotSource
from ipamd.core.model import Member
from ipamd.core.ports import Unavailable

logger = logging.getLogger(__name__)

NAME = "incoming.snapshot"


class Fetcher:
    """Asked by the member's thread; what was fetched is taken by it."""

    def __init__(self, source: SnapshotSource | None, path: Path, clock: Clock, pause_s: float) -> None:
        self._source = source
        self._path = path
        self._clock = clock
        self._pause_s = pause_s
        self._not_before_s = clock.monotonic_s()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running = False
        self._fetched = False
        self._done: Callable[[], None] = lambda: None

    def run_in(self, loop: asyncio.AbstractEventLoop, done: Callable[[], None]) -> None:
        """Where to fetch, and whom to tell (in that loop) that there is something to take."""
        self._loop, self._done = loop, done

    def ask(self, member: Member) -> None:
        """Have a member's snapshot fetched, unless one is on its way."""
        if self._source is None or self._loop is None or self._running or self._fetched:
            return
        if self._clock.monotonic_s() < self._not_before_s:
            return
        self._running = True
        work = self._fetch(self._source, member)
        try:
            asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # that loop has ended: the process stops
            work.close()

    def take(self) -> Path | None:
        """Where a snapshot lies that was fetched; None: there is none. It is the caller's to remove."""
        if not self._fetched:
            return None
        self._fetched = False
        return self._path

    async def _fetch(self, source: SnapshotSource, member: Member) -> None:
        logger.info("fetching a snapshot from %s: it has no entries any more that this member lacks", member.name)
        try:
            await source.fetch(member, self._path)
            self._fetched = True
        except (Unavailable, OSError) as error:
            logger.warning("no snapshot from %s: %s", member.name, error)
        finally:
            self._not_before_s = self._clock.monotonic_s() + self._pause_s
            self._running = False
        self._done()
