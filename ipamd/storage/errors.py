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


@contextmanager
def told_of_damage(path: Path) -> Iterator[None]:
    """What SQLite raises while a database is opened becomes Broken, with the way out."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StorageError(f"{path} cannot be opened: {error}") from error
    except sqlite3.DatabaseError as error:
        raise Broken(
            f"{path} is damaged ({error}): put the whole data directory back from a copy, or move {path.name}* aside, "
            "which the next start makes anew from the journal if that reaches back to its beginning"
        ) from error
