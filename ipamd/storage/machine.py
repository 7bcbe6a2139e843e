"""Owns the state machine over SQLite: entries of the log become one transaction that also says how far it came.

A crash before COMMIT leaves nothing, one after it leaves all, so that an entry is carried out exactly once. What an
entry does depends on the log and the state alone. Nothing is half-handled: whatever fails rolls back and goes up.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ipamd.core.codec import CodecError
from ipamd.core.commands import AddMember, BindMember, Found, PromoteMember, RemoveMember, decode_command
from ipamd.core.decide import Decision, decide, expire
from ipamd.core.digests import ends_transaction
from ipamd.core.entries import Item, Stamp, decode_entry
from ipamd.core.levels import NewerEntry, level_of
from ipamd.core.model import Member
from ipamd.core.outcomes import Outcome
from ipamd.core.ports import Applied, LogEntry
from ipamd.storage import statements as st
from ipamd.storage.catalogue import Catalogue
from ipamd.storage.compiled import sql, value
from ipamd.storage.database import Database
from ipamd.storage.deadlines import Deadlines
from ipamd.storage.errors import SENSELESS, Broken, DiskFull, damage, is_damage, nonsense
from ipamd.storage.ops import MAX_KEYED, Ops
from ipamd.storage.retention import Retention
from ipamd.storage.snapshots import copy_snapshot, inspect_snapshot
from ipamd.storage.tables import meta
from ipamd.storage.working import WorkingView
from ipamd.storage.writer import Writer

PRUNE_LIMIT: Final = 256
"""How much of each kind an entry prunes, beside twice what it adds: pruning keeps up and stays bounded."""

_POSITION = ("applied_index", "applied_term", "log_ms", "wall_ms", "last_id", "last_event")
_STORE_POSITION: Final = sql(meta.update().values({name: value(name) for name in _POSITION}))
_OF_MEMBERS: Final = (Found, AddMember, PromoteMember, RemoveMember, BindMember)
_FULL: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)


@contextmanager
def _told_of_disk(path: Path) -> Iterator[None]:
    """What SQLite raises where no space is left becomes DiskFull, and damage Broken."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) in _FULL:
            raise DiskFull("no space is left for the state database") from error
        if is_damage(error):
            raise damage(path, error) from error
        raise
    except CodecError as error:  # an entry of the log, not what is in the file
        raise NewerEntry(
            f"an entry of the log cannot be read ({error}): start the newer version of ipamd that wrote it; if there is"
            " none, it is damaged"
        ) from error
    except SENSELESS as error:
        raise nonsense(path, error) from error


class SqliteMachine:
    """Applies the log to a database: core.ports.StateMachine. All calls come from one thread."""

    _index: int
    _term: int
    _stamp: Stamp
    _members: tuple[Member, ...] = ()
    _cluster_id: str | None = None
    _level: int = 1

    def __init__(
        self,
        database: Database,
        catalogue: Catalogue | None = None,
        max_keyed: int = MAX_KEYED,
        take_digest: Callable[[int], None] | None = None,
    ) -> None:
        """`take_digest` is called with the index behind which a digest of the state is wanted, before anything more."""
        self._take_digest = take_digest
        self._database = database
        self._connection = database.writer
        self._catalogue = catalogue or Catalogue()
        self._max_keyed = max_keyed
        self._load()

    @property
    def applied(self) -> tuple[int, int]:
        """Index and term of the last entry applied; (1, 0) at the very start."""
        return self._index, self._term

    @property
    def log_ms(self) -> int:
        """The log clock of the last entry applied."""
        return self._stamp.log_ms

    @property
    def wall_ms(self) -> int:
        """The wall clock of the last entry applied: it never falls."""
        return self._stamp.wall_ms

    @property
    def next_due_log_ms(self) -> int | None:
        """When the earliest hold, cooldown, quarantine, tombstone or stored outcome ends; None: nothing waits."""
        return self._deadlines.ask()

    @property
    def members(self) -> tuple[Member, ...]:
        """The Raft members, by name: the same object until one changes."""
        return self._members

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id; None before it was founded."""
        return self._cluster_id

    @property
    def level(self) -> int:
        """The highest level of a command in the log so far."""
        return self._level

    @property
    def view(self) -> WorkingView:
        """What the machine decides from."""
        return self._view

    def apply(self, entries: Sequence[LogEntry]) -> list[Applied]:
        """Apply entries in one transaction. Raises DiskFull where it may be tried again; all else is fatal."""
        try:
            with _told_of_disk(self._database.path):
                self._connection.execute("BEGIN IMMEDIATE")
                applied = [one for entry in entries for one in self._apply_entry(entry)]
                view = self._view
                position = (self._index, self._term, *self._stamp[:2], view.last_id, view.last_event)
                self._connection.execute(_STORE_POSITION, position)
                self._connection.execute("COMMIT")
        except BaseException:
            self._undo()
            raise
        if self._take_digest is not None and entries and ends_transaction(entries[-1].data):
            self._take_digest(self._index)
        return applied

    def inspect(self, path: str) -> tuple[int, int]:
        """Index and term of another member's snapshot. Raises SnapshotRefused."""
        return inspect_snapshot(Path(path), self._cluster_id)

    def install(self, path: str) -> None:
        """Take the state from a snapshot that was inspected, in one transaction. Raises SnapshotRefused, DiskFull."""
        copy_snapshot(Path(path), self._connection)
        self._catalogue.clear()
        self._load()
        self.checkpoint()

    def checkpoint(self) -> int:
        """Make what is applied durable; the index up to which it surely is. Raises DiskFull."""
        with _told_of_disk(self._database.path):
            busy, pages, written = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if busy or written < pages:  # a reader still needs the database file as it was
            self._database.sync_wal()
        return self._index

    def close(self) -> None:
        """Close the database's writer."""
        self._database.close()

    def _apply_entry(self, entry: LogEntry) -> Iterator[Applied]:
        if entry.index != self._index + 1:
            raise Broken(f"entry {entry.index} of the log does not follow entry {self._index}, which was applied last")
        self._index, self._term = entry.index, entry.term
        if not entry.data:
            return
        content = decode_entry(entry.data)
        newest = (max(content.stamp.log_ms, self.log_ms), max(content.stamp.wall_ms, self.wall_ms))
        stamp = self._stamp = Stamp(*newest, entry.index)
        events_before, limit = self._view.last_event, PRUNE_LIMIT + 2 * len(content.items)
        if self._deadlines.reached(stamp.log_ms):
            self._carry_out(expire(self._view, stamp))
            self._ops.drop_expired(stamp.log_ms, limit)
            self._deadlines.ask()
        for item in content.items:
            yield Applied(item.op, entry.index, self._carry_out_item(item, stamp))
        self._ops.drop_excess(limit)
        last_event = self._view.last_event
        limit = PRUNE_LIMIT + 2 * (last_event - events_before)
        self._retention.prune(self._view.settings(), stamp.wall_ms, last_event, limit)

    def _carry_out_item(self, item: Item, stamp: Stamp) -> Outcome:
        known = self._ops.known(item)
        if known is not None:
            return known
        command = decode_command(item.command)
        decision = decide(self._view, command, stamp)
        self._carry_out(decision)
        if isinstance(command, _OF_MEMBERS) or level_of(command) > self._level:
            self._meet_members()
        if item.keep_ms:
            until_log_ms = stamp.log_ms + item.keep_ms
            self._ops.keep(item, decision.outcome, self._index, until_log_ms)
            self._deadlines.note(until_log_ms)
        return decision.outcome

    def _carry_out(self, decision: Decision) -> None:
        if decision.changes:
            self._writer.carry_out(decision.changes)
            self._view.last_id, self._view.last_event = decision.last_id, decision.last_event

    def _meet_members(self) -> None:
        found = tuple(self._view.members())
        if found != self._members:
            self._members = found
        cluster = self._view.cluster()
        self._cluster_id, self._level = (None, 1) if cluster is None else (cluster.id, cluster.level)

    def _undo(self) -> None:
        if self._connection.in_transaction:  # SQLite itself rolls back when the disk is full
            self._connection.execute("ROLLBACK")
        self._catalogue.clear()
        self._load()

    def _load(self) -> None:
        row = self._connection.execute(st.META).fetchone()
        _, self._index, self._term, log_ms, wall_ms, last_id, last_event = row
        self._stamp = Stamp(log_ms, wall_ms)
        self._view = WorkingView(self._connection, self._catalogue, last_id, last_event)
        self._deadlines = Deadlines(self._connection)
        self._writer = Writer(self._view, self._deadlines)
        self._ops = Ops(self._connection, self._max_keyed)
        self._retention = Retention(self._connection)
        self._meet_members()
