"""Owns one file of the journal: its head, its records in order, where each of them lies, and appending to it."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ipamd.consensus.failures import JournalFailed
from ipamd.consensus.files import File, Files
from ipamd.consensus.records import HEAD_BYTES, Entry, decode_record, encode_head, encode_record

SUFFIX = ".log"


def path_of(directory: Path, first: int) -> Path:
    """Where the segment that begins with index `first` lies; names sort as indexes do."""
    return directory / f"{first:020d}{SUFFIX}"


@dataclass(slots=True)
class Contents:
    """Where the records of a file lie. `end` is where the next one goes."""

    first: int
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    terms: array[int] = field(default_factory=lambda: array("Q"))
    end: int = HEAD_BYTES

    @property
    def last(self) -> int:
        """Index of the newest whole record; `first` - 1 when there is none."""
        return self.first + len(self.offsets) - 1

    def add(self, size_bytes: int, term: int) -> None:
        """A record follows."""
        self.offsets.append(self.end)
        self.terms.append(term)
        self.end += size_bytes

    def cut(self, index: int) -> None:
        """The records from `index` on are gone."""
        if index <= self.last:
            position = index - self.first
            self.end = self.offsets[position]
            del self.offsets[position:], self.terms[position:]


class Segment:
    """An open segment."""

    def __init__(self, path: Path, file: File, contents: Contents) -> None:
        self.path = path
        self._file = file
        self._contents = contents

    @classmethod
    def create(cls, directory: Path, files: Files, first: int, size_bytes: int) -> Segment:
        """A new segment, head and name on the disk. Raises OSError, with no file left behind; JournalFailed."""
        path = path_of(directory, first)
        file = files.create(path)
        try:
            file.preallocate(size_bytes)
            file.pwrite(encode_head(first), 0)
        except OSError:
            file.close()
            files.unlink(path)
            raise
        segment = cls(path, file, Contents(first))
        segment.datasync()
        sync_names(directory, files)
        return segment

    @property
    def first(self) -> int:
        """Index of the first record it has or will have."""
        return self._contents.first

    @property
    def last(self) -> int:
        """Index of the newest record; `first` - 1 when there is none."""
        return self._contents.last

    @property
    def end(self) -> int:
        """Where the next record goes."""
        return self._contents.end

    def term_at(self, index: int) -> int:
        """The term of an entry of this segment."""
        return self._contents.terms[index - self.first]

    def entry(self, index: int) -> Entry:
        """An entry, read and checked again. Raises JournalFailed."""
        offsets, position = self._contents.offsets, index - self.first
        at = offsets[position]
        until = offsets[position + 1] if position + 1 < len(offsets) else self.end
        try:
            record = decode_record(self._file.pread(until - at, at))
        except OSError as error:
            raise JournalFailed(f"{self.path} cannot be read at byte {at}: {error.strerror}") from error
        if record is None or (record.index, record.term) != (index, self.term_at(index)):
            raise JournalFailed(f"{self.path} was changed under this process: entry {index} at byte {at} is damaged")
        return record.data, index, record.term

    def append(self, entries: Sequence[Entry], synced: int) -> None:
        """Write entries, not synced yet. Raises OSError; what is written then lies beyond `end`."""
        records = [encode_record(entry, synced) for entry in entries]
        self._file.pwrite(b"".join(records), self.end)
        for record, (_, _, term) in zip(records, entries, strict=True):
            self._contents.add(len(record), term)

    def rewrite(self, index: int) -> None:
        """Write the records from `index` on once more, as they are. Raises OSError.

        After a failed sync the kernel takes pages for clean that never reached the disk: a sync by the next process
        says so too, and only a new write makes it true.
        """
        at = self._contents.offsets[index - self.first]
        self._file.pwrite(self._file.pread(self.end - at, at), at)

    def cut(self, index: int) -> None:
        """Drop the records from `index` on, durably. Raises JournalFailed."""
        self._contents.cut(index)
        self.cut_back()

    def cut_back(self) -> None:
        """Remove what lies beyond `end`, durably. Raises JournalFailed."""
        try:
            self._file.truncate(self.end)
        except OSError as error:
            raise JournalFailed(f"{self.path} cannot be cut back: {error.strerror}") from error
        self.datasync()

    def datasync(self) -> None:
        """Put it on the disk. Raises JournalFailed: a sync that failed is never tried again."""
        try:
            self._file.datasync()
        except OSError as error:
            raise JournalFailed(f"{self.path} cannot be synced: {error.strerror}") from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def sync_names(directory: Path, files: Files) -> None:
    """Put the names of a directory on the disk. Raises JournalFailed."""
    try:
        files.sync_directory(directory)
    except OSError as error:
        raise JournalFailed(f"{directory} cannot be synced: {error.strerror}") from error


def unlink(path: Path, files: Files) -> None:
    """Remove a file. Raises JournalFailed."""
    try:
        files.unlink(path)
    except OSError as error:
        raise JournalFailed(f"{path} cannot be removed: {error.strerror}") from error
