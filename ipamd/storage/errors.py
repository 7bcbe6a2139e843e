"""Owns the ways in which the state on disk can fail. Everything else that SQLite raises passes through as it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class StorageError(Exception):
    """The state cannot be used; the message is one sentence for the operator."""


class ForeignFile(StorageError):  # noqa: N818 - what it is, as the sentence says it
    """The file is not a state database of ipamd."""


class NewerFormat(StorageError):  # noqa: N818 - likewise
    """The file was written by a newer program."""


class Broken(StorageError):  # noqa: N818 - likewise
    """The state contradicts itself or the log: it cannot be trusted any more."""


class DiskFull(StorageError):  # noqa: N818 - likewise
    """No space is left. Nothing of the call was kept; it may be tried again once there is."""


SENSELESS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What reading or using a damaged row raises."""

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite finds something in the file that it never wrote there."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF in _DAMAGE


def damage(path: Path, error: sqlite3.Error) -> Broken:
    """What such a find is, with the way out."""
    return Broken(f"{path} is damaged ({error}): {_way_out(path)}")


def nonsense(path: Path, error: Exception) -> Broken:
    """What was read makes no sense: SQLite has no checksums, a row may be damaged without its seeing it."""
    said = f"{type(error).__name__}: {error}"
    return Broken(
        f"{path} is damaged, or this is a mistake in the program ({said}); ipamd doctor tells which; if it is damaged:"
        f" {_way_out(path)}"
    )


def _way_out(path: Path) -> str:
    return (
        f"move {path.name}* aside, which the next start makes anew from the journal if that reaches back to its"
        " beginning; if not, and other members have the state: ipamctl cluster remove it, empty its data directory, and"
        " start it with --join; if none has, put the whole data directory back from a copy"
    )


@contextmanager
def told_of_damage(path: Path) -> Iterator[None]:
    """What SQLite raises while a database is opened becomes Broken with the way out, or DiskFull."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF == sqlite3.SQLITE_FULL:
            raise DiskFull(f"no space is left for {path}") from error
        raise StorageError(f"{path} cannot be opened: {error}") from error
    except sqlite3.DatabaseError as error:
        raise damage(path, error) from error
    except SENSELESS as error:
        raise nonsense(path, error) from error
