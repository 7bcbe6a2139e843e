"""Owns filling a stopped server's data directory with reservations: entries in its journal, applied to its database.

The same entries that a server would write, without HTTP. What an ADD costs in apply is measured on the way.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from ipamd import datadir
from ipamd.consensus.engine import COMMAND
from ipamd.consensus.figures import Figures
from ipamd.consensus.files import OsFiles
from ipamd.consensus.journal import Journal
from ipamd.consensus.limits import Limits
from ipamd.core.commands import Add, Origin, PoolRequest, encode_command
from ipamd.core.entries import Item, Stamp, encode_entry
from ipamd.core.model import Owner
from ipamd.core.outcomes import Granted
from ipamd.core.ports import LogEntry
from ipamd.storage.machine import SqliteMachine
from ipamd.storage.opening import open_database

BATCH = 200
ENTRY_MS = 100
ORIGIN = Origin("token:bench", "bench")


class Clock:
    """The system's clock."""

    def monotonic_s(self) -> float:
        """Seconds."""
        return time.monotonic()

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000


class Prefill:
    """An open data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._machine = SqliteMachine(open_database(data_dir))
        self._journal = Journal(data_dir / datadir.JOURNAL_DIRECTORY, OsFiles(), Limits(), Clock(), Figures())
        self._clock = Clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._machine.close()
        self._journal.close()

    def add(self, pool: str, count: int, prefix: str, batch: int = BATCH) -> Iterator[float]:
        """Reserve for `count` new pods; after each batch what one ADD took to apply, in seconds."""
        for start in range(0, count, batch):
            items = [item(pool, f"{prefix}-{number}") for number in range(start, min(start + batch, count))]
            yield self._append(items) / len(items)

    def _append(self, items: list[Item]) -> float:
        """One entry: into the journal, onto the disk, into the database; how long the last took."""
        index, term = self._machine.applied[0] + 1, self._machine.applied[1]
        stamp = Stamp(self._machine.log_ms + ENTRY_MS, self._clock.wall_ms())
        data = encode_entry(stamp, items)
        self._journal.add(COMMAND + data, index, term)
        self._journal.sync()
        began = time.perf_counter()
        applied = self._machine.apply([LogEntry(index, term, data)])
        took = time.perf_counter() - began
        refused = next((one.outcome for one in applied if not isinstance(one.outcome, Granted)), None)
        if refused is not None:
            raise RuntimeError(f"an ADD was refused: {refused}")
        return took


def item(pool: str, name: str) -> Item:
    """One ADD."""
    owner = Owner(f"c-{name}", "bench", "net", f"/var/run/netns/{name}", 4026531840)
    command = Add(ORIGIN, (PoolRequest(pool),), f"bench/{name}", "eth0", owner)
    return Item(name.encode().rjust(16, b"-")[-16:], encode_command(command))
