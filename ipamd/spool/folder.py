"""Owns the files of the spool: one a call, durable before anybody hears of it; used by one thread.

A file is written under another name, synced, renamed, and the directory synced once for all that were written together:
whoever is told that a call is kept can lose power the next moment.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from ipamd.core.spooled import (
    MOST_CALLS,
    Damaged,
    SpooledCall,
    SpoolError,
    decode,
    encode,
    name_of,
    numbers_of,
)

REFUSED_DIRECTORY: Final = "refused"
MOST_REFUSED: Final = 10_000
"""Refused calls are kept for people; past so many the oldest go."""

_LOCK = "lock"
_DRAFT = ".new"
_MOST_BYTES = 4 << 20
"""More than any call has: what is larger is none."""


class Folder:
    """The directory, held by this process alone."""

    def __init__(self, path: Path, most: int = MOST_CALLS) -> None:
        """Open it, made if it is not there. Raises SpoolError."""
        self.path, self.refused, self._most = path, path / REFUSED_DIRECTORY, most
        try:
            _make(path)
            _make(self.refused)
            self._lock = _locked(path)
            for number in numbers_of(_names(path), _DRAFT):  # of a process that ended before the call was kept
                (path / name_of(number)).with_suffix(_DRAFT).unlink(missing_ok=True)
            self.numbers = deque(numbers_of(_names(path)))
            """Of the calls that wait, in order."""

            self.refused_numbers = deque(numbers_of(_names(self.refused)))
            """Of those that nobody takes."""
        except OSError as error:
            raise SpoolError(f"the spool {path} cannot be used: {_why(error)}") from error

        self._last = max([0, *self.numbers, *self.refused_numbers])

    def close(self) -> None:
        """Let another process have it."""
        os.close(self._lock)

    def put(self, calls: Sequence[SpooledCall]) -> list[SpoolError | None]:
        """Keep calls, in order; for each None once it is durable, or why it is not kept."""
        written: list[int] = []
        results: list[SpoolError | None] = []
        for call in calls:
            try:
                written.append(self._write(call, len(written)))
                results.append(None)
            except SpoolError as error:
                results.append(error)
        if not written:
            return results
        try:
            _sync(self.path)
        except OSError as error:
            self._take_back(written)
            return [result or self._failed(error) for result in results]
        self.numbers.extend(written)
        return results

    def read(self, number: int) -> SpooledCall:
        """A call that waits. Raises Damaged, SpoolError for a disk that fails."""
        try:
            with (self.path / name_of(number)).open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
        except FileNotFoundError:
            raise Damaged("somebody has removed it") from None
        except OSError as error:
            raise SpoolError(f"the spool {self.path} cannot be read: {_why(error)}") from error
        return decode(data)

    def drop(self, number: int) -> None:
        """A call was delivered. Raises SpoolError if its file stays; then it is delivered again after a restart."""
        self._forget(number)
        try:
            (self.path / name_of(number)).unlink(missing_ok=True)
        except OSError as error:
            raise SpoolError(f"{self.path / name_of(number)} cannot be removed: {_why(error)}") from error

    def refuse(self, number: int, why: str) -> None:
        """Put a call away for people, with the reason beside it. Raises SpoolError; it waits no more in any case."""
        self._forget(number)
        target = self.refused / name_of(number)
        try:
            with contextlib.suppress(FileNotFoundError):
                (self.path / name_of(number)).replace(target)
            self.refused_numbers.append(number)
            while len(self.refused_numbers) > MOST_REFUSED:
                oldest = self.refused / name_of(self.refused_numbers.popleft())
                oldest.unlink(missing_ok=True)
                oldest.with_suffix(".why").unlink(missing_ok=True)
            target.with_suffix(".why").write_text(f"{why}\n")  # last: a full disk takes the call, and this no more
        except OSError as error:
            raise SpoolError(f"a refused call cannot be put into {self.refused}: {_why(error)}") from error

    def _write(self, call: SpooledCall, beside: int) -> int:
        """A file under its final name, itself durable; its number. Raises SpoolError."""
        if len(self.numbers) + beside >= self._most:
            raise SpoolError(f"{self._most} calls wait in the spool {self.path} already, and it takes no more")
        self._last += 1
        target = self.path / name_of(self._last)
        draft = target.with_suffix(_DRAFT)
        try:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(encode(call))
                file.flush()
                os.fsync(handle)
            draft.rename(target)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            raise self._failed(error) from error
        return self._last

    def _take_back(self, written: Sequence[int]) -> None:
        """What may not be durable is not kept: its caller is told so, and asks again."""
        for number in written:
            with contextlib.suppress(OSError):
                (self.path / name_of(number)).unlink(missing_ok=True)

    def _forget(self, number: int) -> None:
        with contextlib.suppress(ValueError):
            self.numbers.remove(number)

    def _failed(self, error: OSError) -> SpoolError:
        return SpoolError(f"the call cannot be kept in the spool {self.path}: {_why(error)}")


def _names(path: Path) -> Iterator[str]:
    """One by one: a hundred thousand at once would take more memory than all the rest of an agent may."""
    with os.scandir(path) as entries:
        for entry in entries:
            yield entry.name


def _make(path: Path) -> None:
    """A directory for this user alone, durable with those above it that were missing too."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    for place in reversed(missing):
        place.mkdir(mode=0o700 if place == path else 0o755, exist_ok=True)
        _sync(place.parent)
    if path.stat().st_mode & 0o077:
        path.chmod(0o700)


def _locked(path: Path) -> int:
    """A descriptor that holds the directory until it is closed, or the process ends. Raises SpoolError."""
    handle = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise SpoolError(f"the spool {path} is in use by another ipamd") from None
    return handle


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _why(error: OSError) -> str:
    return error.strerror or str(error)
