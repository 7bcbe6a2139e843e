"""Owns backups as files: a snapshot of the state, complete and readable by SQLite, with its SHA-256 beside it.

Each is written under another name, made durable, and only then given its own: what has the name is whole, and says so
itself, with the hash at its end; the one beside it is for people and comes last.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from ipamd.core.ports import Unavailable
from ipamd.storage.durable import sync
from ipamd.storage.errors import DiskFull
from ipamd.storage.snapshots import make_snapshot

HASH_SUFFIX: Final = ".sha256"
_CHUNK_BYTES: Final = 1 << 20
_INDEX_DIGITS: Final = 12


class BackupFile(NamedTuple):
    """A backup: where it is, its log index, how large it is, and its SHA-256 in hex."""

    path: Path
    log_index: int
    size_bytes: int
    sha256: str


class KeptBackup(NamedTuple):
    """A backup that lies in its directory; `written_ms` by the wall clock."""

    path: Path
    log_index: int
    size_bytes: int
    written_ms: int


class BackupFiles:
    """Makes backups of one database. Each call takes long: it is made in a thread. Each may raise OSError."""

    def __init__(self, database: Path) -> None:
        self._database = database
        # Members may share a directory: each has its own name for what is not whole yet, the same at the next start.
        self._own = f"{crc32(f'{os.uname().nodename}:{database.absolute()}'.encode()):08x}"

    def make(self, path: Path) -> BackupFile:
        """Write one; what lay there is replaced. Raises Unavailable: no space is left, or SQLite cannot copy it."""
        try:
            made = make_snapshot(self._database, path)
        except DiskFull as error:
            raise Unavailable(str(error), "none") from error
        except sqlite3.DatabaseError as error:  # a quota, a file system that is gone
            raise Unavailable(f"a backup cannot be written to {path}: {error}", "none") from error
        return BackupFile(path, made.applied, made.size_bytes, hash_of(path))

    def keep(self, directory: Path, cluster_id: str) -> BackupFile:
        """Write one into a directory, which is made if it is not there, under its own name, with its hash.

        Raises Unavailable.
        """
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = directory / f"ipamd-{cluster_id}-{self._own}.new"
        try:
            made = self.make(draft)
            path = directory / name_of(cluster_id, made.log_index)
            hash_file(path).unlink(missing_ok=True)  # at no moment is a hash beside a file that is not its own
            draft.replace(path)
            _write_hash(path, made.sha256, draft.with_suffix(".new-hash"))
            sync(directory)
        finally:
            draft.unlink(missing_ok=True)
        return made._replace(path=path)

    def kept(self, directory: Path, cluster_id: str) -> list[KeptBackup]:
        """The backups of a cluster that lie in a directory, oldest first."""
        pattern = re.compile(rf"ipamd-{re.escape(cluster_id)}-([0-9]{{{_INDEX_DIGITS},}})\.db")
        found: list[KeptBackup] = []
        for path in directory.iterdir() if directory.is_dir() else ():
            if (match := pattern.fullmatch(path.name)) is not None:
                facts = path.stat()
                found.append(KeptBackup(path, int(match[1]), facts.st_size, facts.st_mtime_ns // 1_000_000))
        return sorted(found, key=lambda one: one.log_index)

    def remove(self, path: Path) -> None:
        """Remove one, with its hash."""
        path.unlink(missing_ok=True)
        hash_file(path).unlink(missing_ok=True)


def name_of(cluster_id: str, log_index: int) -> str:
    """The name of a backup: it says of which cluster it is, and as of which log index."""
    return f"ipamd-{cluster_id}-{log_index:0{_INDEX_DIGITS}d}.db"


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


def _write_hash(path: Path, sha256: str, draft: Path) -> None:
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(f"{sha256}  {path.name}\n")
        file.flush()
        os.fsync(handle)
    draft.replace(hash_file(path))
