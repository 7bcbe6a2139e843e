"""Owns when something ends by itself: the earliest hold, cooldown, quarantine, tombstone or stored outcome.

Most entries have nothing to end, so the earliest time is known without asking: it is lowered as deadlines are written
and asked for again only once it was reached. What is known may be too early - its record is gone - but never too late.
"""

from __future__ import annotations

import sqlite3

from ipamd.core.changes import Record
from ipamd.core.imports import StagedPart
from ipamd.core.model import Attachment, Cooling, Quarantine, Tombstone
from ipamd.storage import statements as st
from ipamd.storage.compiled import LARGEST


class Deadlines:
    """The earliest deadline on the log's clock, over the writing connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._run = connection.execute
        self._earliest = LARGEST
        self.ask()

    def ask(self) -> int | None:
        """Exactly when the earliest is; None: nothing waits."""
        times = [time for (time,) in self._run(st.NEXT_DUE) if time is not None]
        self._earliest = min(times, default=LARGEST)
        return min(times, default=None)

    def reached(self, now_log_ms: int) -> bool:
        """Whether something may be due."""
        return self._earliest <= now_log_ms

    def note(self, until_log_ms: int | None) -> None:
        """A deadline was written; None and negative: for ever."""
        if until_log_ms is not None and 0 <= until_log_ms < self._earliest:
            self._earliest = until_log_ms

    def note_record(self, record: Record) -> None:
        """The same, of a record that may have one."""
        if isinstance(record, Attachment):
            self.note(record.hold_until_log_ms)
        elif isinstance(record, Cooling | Quarantine | Tombstone | StagedPart):
            self.note(record.until_log_ms)
