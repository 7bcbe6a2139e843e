"""Owns driving a machine the way the log does: entries in order, with op ids of their own and a clock by hand."""

from __future__ import annotations

import functools
import os
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ipamd.core.commands import Command, encode_command
from ipamd.core.entries import KEEP_INTERNAL_MS, Item, Stamp, encode_entry
from ipamd.core.outcomes import Outcome
from ipamd.core.ports import LogEntry
from ipamd.storage.catalogue import Catalogue
from ipamd.storage.database import FILE_NAME
from ipamd.storage.digest import machine_digest
from ipamd.storage.doctor import Finding, examine
from ipamd.storage.machine import SqliteMachine
from ipamd.storage.opening import open_database
from ipamd.storage.ops import MAX_KEYED
from ipamd.storage.snapshot import SqliteState

WALL_MS = 1_700_000_000_000


@functools.cache
def empty_state() -> bytes:
    """The file of a new state, which the migrations take a while to make."""
    with tempfile.TemporaryDirectory(dir=memory_dir()) as place:
        open_database(Path(place)).close()
        return (Path(place) / FILE_NAME).read_bytes()


class Driver:
    """A machine in a data directory, and the log that it is fed."""

    def __init__(self, data_dir: Path, max_keyed: int = MAX_KEYED) -> None:
        self.data_dir = data_dir
        self.max_keyed = max_keyed
        self.log_ms = 1_000
        self.ops = 0
        self.entries: list[LogEntry] = []
        if not (data_dir / FILE_NAME).exists():
            data_dir.mkdir(parents=True, exist_ok=True)
            (data_dir / FILE_NAME).write_bytes(empty_state())
        self.open()

    def open(self) -> None:
        """Open the data directory, as at a start."""
        self.database = open_database(self.data_dir)
        catalogue = Catalogue()
        self.machine = SqliteMachine(self.database, catalogue, self.max_keyed)
        self.state = SqliteState(self.database, catalogue)

    def close(self) -> None:
        self.state.close()
        self.machine.close()

    def reopen(self) -> None:
        """Stop and start."""
        self.close()
        self.open()

    @property
    def connection(self) -> sqlite3.Connection:
        return self.database.writer

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.log_ms, WALL_MS + self.log_ms)

    def item(self, command: Command, op: bytes | None = None, **rest: object) -> Item:
        """A command under an op id, a new one unless it is given."""
        self.ops += 1
        fields = {"fingerprint": b"", "keep_ms": KEEP_INTERNAL_MS, **rest}
        return Item(op or self.ops.to_bytes(16, "big"), encode_command(command), **fields)  # type: ignore[arg-type]

    def entry(self, *items: Item, term: int = 1) -> LogEntry:
        """The next entry of the log, not yet applied."""
        index = self.machine.applied[0] + 1
        return LogEntry(index, term, encode_entry(self.stamp, items) if items else b"")

    def apply(self, *items: Item, term: int = 1) -> list[Outcome]:
        """Apply the next entry."""
        entry = self.entry(*items, term=term)
        self.entries.append(entry)
        return [one.outcome for one in self.machine.apply([entry])]

    def run(self, *commands: Command) -> list[Outcome]:
        """Apply an entry with some commands."""
        return self.apply(*(self.item(command) for command in commands))

    def rows(self, statement: str, *values: object) -> Sequence[tuple[object, ...]]:
        return self.connection.execute(statement, values).fetchall()

    def digest(self) -> str:
        return machine_digest(self.connection)

    def examine(self) -> list[Finding]:
        return examine(self.data_dir)


def memory_dir() -> str | None:
    """Where temporary files cost no disk, if there is such a place: hundreds of histories need no durability."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
