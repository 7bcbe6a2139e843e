"""Owns backups while the server serves: one at a time, for whoever asks, and on a schedule with the oldest removed.

A backup is the whole state as of one log index. The one that is asked for has all that was acknowledged before;
a scheduled one has what this member had applied.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from ipamd.core.ports import Unavailable
from ipamd.errors import ApiError
from ipamd.service.background import Background
from ipamd.service.ports import Clock
from ipamd.service.reader import Reader
from ipamd.service.request import Request

logger = logging.getLogger("ipamd.backup")

AGAIN_S: Final = 60.0
"""How soon a scheduled backup is tried again that failed, at most."""


_LOOK_S: Final = 1.0


class Made(Protocol):
    """A backup that was made."""

    @property
    def path(self) -> Path:
        """Where it is."""

    @property
    def log_index(self) -> int:
        """As of which index it is."""

    @property
    def size_bytes(self) -> int:
        """How large it is."""

    @property
    def sha256(self) -> str:
        """Its SHA-256, in hex."""


class Kept(Protocol):
    """A backup that lies where scheduled ones do."""

    @property
    def path(self) -> Path:
        """Where it is."""

    @property
    def size_bytes(self) -> int:
        """How large it is."""

    @property
    def written_ms(self) -> int:
        """When it was written, by the wall clock."""


class Files(Protocol):
    """What is done to backups on the disk, in threads. Each may raise OSError, what makes one Unavailable too."""

    def make(self, path: Path) -> Made:
        """Write one to a path."""

    def keep(self, directory: Path, cluster_id: str) -> Made:
        """Write one into a directory, under its own name, with its hash beside it."""

    def kept(self, directory: Path, cluster_id: str) -> Sequence[Kept]:
        """The backups of a cluster in a directory, oldest first."""

    def remove(self, path: Path) -> None:
        """Remove one, with its hash."""


class Schedule(NamedTuple):
    """Where backups are put by themselves, how often, and how many are kept."""

    directory: Path
    every_s: float
    keep: int


class Figures(NamedTuple):
    """How scheduled backups go. `age_s`: of the newest that is whole; None: there is none."""

    age_s: float | None
    size_bytes: int
    failed: int


class Backups(Background):
    """Makes backups. `scratch` is where the one lies that is being sent."""

    def __init__(
        self,
        files: Files,
        reader: Reader,
        clock: Clock,
        *,
        scratch: Path,
        schedule: Schedule | None,
        cluster_id: Callable[[], str | None],
    ) -> None:
        super().__init__()
        self._files, self._reader, self._clock = files, reader, clock
        self._scratch, self._schedule, self._cluster_id = scratch, schedule, cluster_id
        self._one = asyncio.Lock()
        self._written_ms: int | None = None
        self._size_bytes = self._failed = 0

    @property
    def figures(self) -> Figures | None:
        """How scheduled backups go; None: there are none."""
        if self._schedule is None:
            return None
        age_s = None if self._written_ms is None else max(0.0, (self._clock.wall_ms() - self._written_ms) / 1000)
        return Figures(age_s, self._size_bytes, self._failed)

    @property
    def cluster_id(self) -> str | None:
        """The cluster that backups are of."""
        return self._cluster_id()

    @asynccontextmanager
    async def taken(self, request: Request) -> AsyncIterator[Made]:
        """A backup of now, to be sent; it is gone afterwards. Raises ApiError, Unavailable."""
        if self._one.locked():
            raise ApiError("too_many_requests", "another backup is under way: try again when it is through")
        async with self._one:
            await self._reader.read(lambda _snapshot: None, request)
            try:
                made = await asyncio.to_thread(self._files.make, self._scratch)
            except OSError as error:
                raise Unavailable(f"a backup cannot be written: {error.strerror}", "none") from error
            try:
                yield made
            finally:
                await asyncio.to_thread(self._files.remove, self._scratch)

    async def keep(self, schedule: Schedule) -> Made:
        """Put a backup where the scheduled ones lie, and remove the oldest. Raises Unavailable, OSError."""
        cluster_id = self._cluster_id()
        if cluster_id is None:
            raise Unavailable("the cluster is not founded yet", "none")
        async with self._one:
            made = await asyncio.to_thread(self._files.keep, schedule.directory, cluster_id)
            await asyncio.to_thread(self._remove_old, schedule, cluster_id)
        self._written_ms, self._size_bytes = self._clock.wall_ms(), made.size_bytes
        return made

    def _remove_old(self, schedule: Schedule, cluster_id: str) -> None:
        for old in self._files.kept(schedule.directory, cluster_id)[: -schedule.keep]:
            self._files.remove(old.path)

    async def _run(self) -> None:
        schedule = self._schedule
        if schedule is None:
            return
        while self._cluster_id() is None:  # noqa: ASYNC110 - the Raft thread founds it
            await asyncio.sleep(_LOOK_S)
        pause_s = await self._until_first_s(schedule)
        while True:
            await asyncio.sleep(pause_s)
            pause_s = await self._try(schedule)

    async def _until_first_s(self, schedule: Schedule) -> float:
        """A restart does not begin anew: the newest backup says when the next one is due."""
        try:
            kept = await asyncio.to_thread(self._files.kept, schedule.directory, self._cluster_id() or "")
        except OSError:
            return 0.0  # the first try says what is wrong
        if not kept:
            return 0.0
        self._written_ms, self._size_bytes = kept[-1].written_ms, kept[-1].size_bytes
        since_s = (self._clock.wall_ms() - kept[-1].written_ms) / 1000
        return min(max(0.0, schedule.every_s - since_s), schedule.every_s)

    async def _try(self, schedule: Schedule) -> float:
        """Make one; how long it is until the next."""
        try:
            made = await self.keep(schedule)
        except (OSError, Unavailable) as error:
            self._failed += 1
            reason = error.detail if isinstance(error, Unavailable) else str(error)
            logger.error("a scheduled backup failed: %s", reason)  # noqa: TRY400 - a sentence for the operator
            return min(AGAIN_S, schedule.every_s)
        logger.info("a backup was made", extra={"file": str(made.path), "index": made.log_index})
        return schedule.every_s
