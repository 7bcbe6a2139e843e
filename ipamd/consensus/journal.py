"""Owns the durable log of this member: entries in segments, synced before anybody counts them.

The first of four seams: pysyncobj keeps its log in an object with this interface. Its own journal is never synced and
has no checksums. `add` only gathers; `sync` writes what was gathered with one write and one fdatasync.
"""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path
from typing import overload

from pysyncobj.journal import Journal as SyncObjJournal

from ipamd.consensus.clock import Clock
from ipamd.consensus.failures import JournalFailed, JournalFull, StartRefused
from ipamd.consensus.figures import Figures
from ipamd.consensus.files import NO_ROOM, Files
from ipamd.consensus.hardstate import Ballot, HardState
from ipamd.consensus.limits import Limits
from ipamd.consensus.opening import open_segments
from ipamd.consensus.records import HEAD_BYTES, RECORD_BYTES, Entry
from ipamd.consensus.segments import Segment, sync_names, unlink
from ipamd.consensus.survey import WAY_OUT

BASE = b"\x01"
"""What stands for the entry that a snapshot ends with: an entry that does nothing, and is never sent or applied."""


class Journal(SyncObjJournal):
    """The log from index `first` to `last`; up to `durable` it is on the disk. Used by one thread."""

    def __init__(self, directory: Path, files: Files, limits: Limits, clock: Clock, figures: Figures) -> None:
        """Raises StartRefused for damage that a crash cannot explain, JournalFailed, OSError."""
        self._directory = directory
        self._files = files
        self._limits = limits
        self._clock = clock
        self._figures = figures
        files.make_directory(directory)
        self._hard = HardState(directory, files)
        self._segments = open_segments(directory, files)
        self._pending: list[Entry] = []
        self._recent: dict[int, Entry] = {}
        self._recent_bytes = 0
        self.durable = self._segments[-1].last if self._segments else 0
        self.fixed = 0
        """What is applied: a leader that wants another entry there has lost what was committed."""

        self._first: Entry | None = None
        self._last: Entry | None = None
        if self._segments and self._segments[0].first <= self.durable:
            self._first, self._last = self.entry(self.first), self.entry(self.durable)
        if self.last_term > self._hard.ballot.term:
            raise StartRefused(
                f"the journal in {directory} reaches term {self.last_term}, but this member's own term is "
                f"{self._hard.ballot.term}: its vote was lost; {WAY_OUT}"
            )

    @property
    def first(self) -> int:
        """Index of the oldest entry; 1 when there is none."""
        if self._segments:
            return self._segments[0].first
        return self._pending[0][1] if self._pending else 1

    @property
    def last(self) -> int:
        """Index of the newest entry; 0 when there is none."""
        return self._last[1] if self._last else 0

    @property
    def last_term(self) -> int:
        """Term of the newest entry; 0 when there is none."""
        return self._last[2] if self._last else 0

    @property
    def size_bytes(self) -> int:
        """What the entries on the disk take."""
        return sum(segment.end for segment in self._segments)

    def term_at(self, index: int) -> int:
        """The term of an entry."""
        if index > self.durable:
            return self._pending[index - self.durable - 1][2]
        return self._segment_of(index).term_at(index)

    def entry(self, index: int) -> Entry:
        """An entry. Raises JournalFailed."""
        return self._recent.get(index) or self._segment_of(index).entry(index)

    def entries(self, first: int, last: int, size_bytes: int) -> list[Entry]:
        """Entries from `first` to `last`, as many as `size_bytes` hold, at least one. Raises JournalFailed."""
        found: list[Entry] = []
        for index in range(first, last + 1):
            entry = self.entry(index)
            size_bytes -= len(entry[0])
            if found and size_bytes < 0:
                break
            found.append(entry)
        return found

    def start_of_newest(self, count: int, size_bytes: int) -> int:
        """Where to trim to keep the newest `count` entries, or `size_bytes` of them if that is less.

        Only whole segments can go, so what is kept is more than asked for by up to a segment.
        """
        index = self.last - count + 1
        for segment in reversed(self._segments):
            size_bytes -= segment.end
            if size_bytes < 0:
                return max(index, segment.last + 1)
        return index

    def can_trim(self, index: int) -> bool:
        """Whether `trim` would drop anything."""
        return len(self._segments) > 1 and self._segments[1].first <= index

    def sync(self) -> None:
        """Put all that was added on the disk.

        Raises JournalFull, with nothing of it left in the journal or on the disk, or JournalFailed.
        """
        if not self._pending:
            return
        started_s, before = self._clock.monotonic_s(), self.size_bytes
        segment = self._write_pending()
        segment.datasync()
        self.durable = segment.last
        self._pending.clear()
        self._figures.synced(self._clock.monotonic_s() - started_s, self.size_bytes - before)
        self._forget_old()

    def trim(self, index: int) -> None:
        """Drop whole segments that hold nothing from `index` on, oldest first. Raises JournalFailed."""
        while self.can_trim(index):
            oldest = self._segments.pop(0)
            oldest.close()
            unlink(oldest.path, self._files)
            sync_names(self._directory, self._files)
            self._first = self.entry(self.first)

    def reset(self, index: int, term: int) -> None:
        """The state machine came from a snapshot of `index`: keep what follows it, if that is of the same log.

        An interrupted one is done again at the next start (installing.py). Raises JournalFailed.
        """
        if self.first <= index <= self.last and self.term_at(index) == term:
            self.sync()
            return
        self._pending.clear()
        self._recent.clear()
        self._recent_bytes = 0
        self._first = self._last = None
        while self._segments:
            oldest = self._segments.pop(0)
            oldest.close()
            unlink(oldest.path, self._files)
            sync_names(self._directory, self._files)
        self.durable, self.fixed = index - 1, index
        self.add(BASE, index, term)
        try:
            self.sync()
        except JournalFull as error:
            raise JournalFailed(f"{error}: make room, the next start begins the journal at the snapshot") from error

    def close(self) -> None:
        """Sync and close the files. Raises JournalFull, JournalFailed."""
        try:
            self.sync()
        finally:
            for segment in self._segments:
                segment.close()

    # What pysyncobj calls. It counts positions from the oldest entry.

    def add(self, command: bytes, idx: int, term: int) -> None:
        """Add an entry, or see that it is there: what is there is cut only where its term is another.

        pysyncobj re-sends entries that are in flight and deletes what matches; done literally, a follower would for a
        moment lack what it has acknowledged.
        """
        if self._last is not None and not self.first <= idx <= self.last + 1:
            raise JournalFailed(f"entry {idx} does not follow the journal, which holds {self.first} to {self.last}")
        if idx <= self.last:
            if self.term_at(idx) == term:
                return
            if idx <= self.fixed:
                raise JournalFailed(
                    f"entry {idx} of term {self.term_at(idx)} is applied here, and the leader has one of term {term}"
                )
            self._cut(idx)
        entry = (bytes(command), idx, term)
        if not self._segments and not self._pending:
            self.durable = idx - 1
        if self._first is None:
            self._first = entry
        self._pending.append(entry)
        self._remember(entry)
        self._last = entry

    def clear(self) -> None:
        """Never called: a snapshot is installed with `reset`, which leaves no moment without a journal."""
        raise JournalFailed("the journal was to be emptied while in use")

    def deleteEntriesFrom(self, entryFrom: int) -> None:  # noqa: N802, N803 - pysyncobj's names
        """Nothing: `add` cuts, on a conflict only."""

    def deleteEntriesTo(self, entryTo: int) -> None:  # noqa: N802, N803
        """Trim to the entry at this position."""
        self.trim(self.first + entryTo)

    @overload
    def __getitem__(self, item: int) -> Entry: ...
    @overload
    def __getitem__(self, item: slice) -> list[Entry]: ...
    def __getitem__(self, item: int | slice) -> Entry | list[Entry]:
        """An entry, or a slice; without an end it gives `slice_bytes` at most: pysyncobj sends no more at once."""
        if isinstance(item, slice):
            chosen = range(self.first, self.last + 1)[item]
            limit = self._limits.slice_bytes if item.stop is None else self._limits.keep_bytes
            return self.entries(chosen.start, chosen.stop - 1, limit)
        if item == -1 and self._last is not None:
            return self._last
        if item == 0 and self._first is not None:
            return self._first
        return self.entry(range(self.first, self.last + 1)[item])

    def __len__(self) -> int:
        """How many entries there are."""
        return self.last - self.first + 1 if self._last else 0

    def setRaftCommitIndex(self, raftCommitIndex: int) -> None:  # noqa: N802, N803
        """Nothing: the state machine's applied index is what a restart begins with."""

    def getRaftCommitIndex(self) -> int:  # noqa: N802
        """Only the first, empty entry is known to be committed before the state machine was asked."""
        return 1

    def setCurrentTerm(self, term: int, votedForNodeId: str | None) -> None:  # noqa: N802, N803
        """Returns once it is on the disk. Raises JournalFull, JournalFailed."""
        self._hard.store(Ballot(term, votedForNodeId))

    def getCurrentTerm(self) -> int:  # noqa: N802
        """The term this member is in."""
        return self._hard.ballot.term

    def getVotedForNodeId(self) -> str | None:  # noqa: N802
        """Whom this member voted for in its term."""
        return self._hard.ballot.vote

    def _destroy(self) -> None:
        self.close()

    # How it is done.

    def _segment_of(self, index: int) -> Segment:
        position = bisect_right(self._segments, index, key=lambda segment: segment.first) - 1
        return self._segments[position]

    def _remember(self, entry: Entry) -> None:
        self._recent[entry[1]] = entry
        self._recent_bytes += len(entry[0])

    def _forget(self, index: int) -> None:
        self._recent_bytes -= len(self._recent.pop(index)[0])

    def _forget_old(self) -> None:
        """Keep the newest entries in memory only as far as they fit; the last stays."""
        while self._recent_bytes > self._limits.cache_bytes and len(self._recent) > 1:
            self._forget(next(iter(self._recent)))

    def _write_pending(self) -> Segment:
        try:
            segment = self._segment_with_room(sum(RECORD_BYTES + len(data) for data, _, _ in self._pending))
            segment.append(self._pending, self.durable)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise JournalFailed(f"the journal in {self._directory} cannot be written: {error.strerror}") from error
            self._take_back()
            raise JournalFull(f"no room for the journal in {self._directory}") from error
        return segment

    def _segment_with_room(self, size_bytes: int) -> Segment:
        if self._segments:
            newest = self._segments[-1]
            if newest.end == HEAD_BYTES or newest.end + size_bytes <= self._limits.segment_bytes:
                return newest
        size_bytes = max(self._limits.segment_bytes, HEAD_BYTES + size_bytes)
        self._segments.append(Segment.create(self._directory, self._files, self.durable + 1, size_bytes))
        return self._segments[-1]

    def _take_back(self) -> None:
        """Forget what could not be written, here and on the disk."""
        if self._segments:
            self._segments[-1].cut_back()
        self._drop_pending(self.durable + 1)

    def _drop_pending(self, index: int) -> None:
        del self._pending[index - self.durable - 1 :]
        for dropped in [known for known in self._recent if known >= index]:
            self._forget(dropped)
        self._last = self.entry(index - 1) if self._first is not None and index > self._first[1] else None
        if self._last is None:
            self._first = None

    def _cut(self, index: int) -> None:
        """Drop entries from `index` on, newest file first. Raises JournalFailed."""
        if index > self.durable:
            self._drop_pending(index)
            return
        self._pending.clear()
        while self._segments[-1].first > index:
            newest = self._segments.pop()
            newest.close()
            unlink(newest.path, self._files)
            sync_names(self._directory, self._files)
        self._segments[-1].cut(index)
        self.durable = index - 1
        self._drop_pending(index)
