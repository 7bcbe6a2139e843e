"""Owns the ways in which the state on disk can fail. Everything else that SQLite raises passes through as it is."""

from __future__ import annotations


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
