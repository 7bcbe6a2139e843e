"""Owns backups as files: a snapshot of the state, complete and readable by SQLite, with its SHA-256 beside it.

Each is written under another name, made durable, and only then given its own: what has the name is whole.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final, NamedTuple

from ipamd.storage.snapshots import make_snapshot

HASH_SUFFIX: Final = ".sha256"
_CHUNK_BYTES: Final = 1 << 20


class BackupFile(NamedTuple):
    """A backup that was made: where it stands in the log, how large it is, and its SHA-256 in hex."""

    path: Path
    log_index: int
    size_bytes: int
    sha256: str


def make_backup(database: Path, path: Path, *, with_hash: bool = False) -> BackupFile:
    """Write a backup of a database that may be in use, and its hash beside it if wanted; any thread may.

    Raises DiskFull, OSError, with no file left behind.
    """
    made = make_snapshot(database, path)
    try:
        sha256 = hash_of(path)
        if with_hash:
            _write_hash(path, sha256)
        _sync_directory(path.parent)
    except OSError:
        remove_backup(path)
        raise
    return BackupFile(path, made.applied, made.size_bytes, sha256)


def hash_of(path: Path) -> str:
    """The SHA-256 of a file, in hex. Raises OSError."""
    whole = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(_CHUNK_BYTES):
            whole.update(part)
    return whole.hexdigest()


def hash_file(path: Path) -> Path:
    """Where the hash of a backup lies: as `sha256sum -c` reads it."""
    return path.with_name(path.name + HASH_SUFFIX)


def remove_backup(path: Path) -> None:
    """Remove a backup and its hash. Raises OSError."""
    path.unlink(missing_ok=True)
    hash_file(path).unlink(missing_ok=True)


def _write_hash(path: Path, sha256: str) -> None:
    target = hash_file(path)
    draft = target.with_name(f"{target.name}.part")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(f"{sha256}  {path.name}\n")
        file.flush()
        os.fsync(handle)
    draft.replace(target)


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
