"""Owns the command `ipamd restore`: a new cluster out of a backup, or out of what one member has left.

It is put together in a directory of its own inside the data directory, and moved to its places at the end. As long as
that directory is there no server starts on the data directory, so that a restore that was cut short is never used.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click

from ipamd import datadir, system
from ipamd.consensus.failures import JournalFailed, StartRefused
from ipamd.consensus.files import OsFiles
from ipamd.consensus.lock import NAME as LOCK_FILE
from ipamd.consensus.lock import lock_data_dir
from ipamd.consensus.offline import begin_journal, read_entries
from ipamd.core.ports import SnapshotRefused
from ipamd.datadir import JOURNAL_DIRECTORY, RESTORING_DIRECTORY, DataDirError, sync_directory
from ipamd.founding import ID_BYTES
from ipamd.programs.ending import EXIT_REFUSED, EXIT_USAGE
from ipamd.storage.database import FILE_NAME as DATABASE_FILE
from ipamd.storage.durable import sync
from ipamd.storage.errors import StorageError
from ipamd.storage.restore import Found, applied_of, apply_entries, check_backup, copy_backup, copy_member, renew

REFUSALS = (DataDirError, StorageError, SnapshotRefused, JournalFailed, StartRefused, OSError)
"""Why a restore can fail for reasons that its operator can do something about."""

_IGNORED = frozenset({"lost+found", LOCK_FILE})
"""What a new file system has, and what a restore that was refused leaves."""


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--from-member",
    type=click.Path(file_okay=False, path_type=Path),
    help="Instead of a backup: the data directory of a stopped member. Of several take the one whose journal ends with"
    " the highest term and index (ipamd doctor prints them).",
)
@click.option(
    "--data-dir",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the new cluster's first member is to have its data: an empty directory, or none.",
)
def restore(file: Path | None, from_member: Path | None, data_dir: Path) -> None:
    """Make a new cluster of one member from a backup FILE. Nothing else is changed.

    All that was free in it is withheld until an operator confirms it: ipamctl pool confirm POOL.
    """
    if (file is None) is (from_member is None):
        click.echo("ipamd: name a backup, or a member's data directory with --from-member", err=True)
        sys.exit(EXIT_USAGE)
    try:
        found, cluster_id = _from_backup(file, data_dir) if file else _from_member(from_member or Path(), data_dir)
    except REFUSALS as error:
        click.echo(f"ipamd: {error}", err=True)
        sys.exit(EXIT_REFUSED)
    taken = datetime.fromtimestamp(found.wall_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    click.echo(f"{data_dir} holds the new cluster {cluster_id} (epoch {found.epoch}):")
    click.echo(f"the state of cluster {found.cluster_id} at log index {found.log_index}, last changed {taken}")
    click.echo(f"next: ipamd serve --data-dir {data_dir}, wait for the nodes to report, then for each pool:")
    click.echo("ipamctl pool confirm POOL")


def _from_backup(file: Path, data_dir: Path) -> tuple[Found, str]:
    check_backup(file)
    return _restore(data_dir, lambda draft: copy_backup(file, draft))


def _from_member(source: Path, data_dir: Path) -> tuple[Found, str]:
    """With all that its journal has, known to be committed or not: nothing that was acknowledged may be lost."""
    if not (source / DATABASE_FILE).is_file() or not (source / JOURNAL_DIRECTORY).is_dir():
        lacking = f"it has no {DATABASE_FILE} or no {JOURNAL_DIRECTORY}"
        raise DataDirError(f"{source} is no data directory of ipamd: {lacking}")

    def copy(draft: Path) -> None:
        copy_member(source, draft)
        apply_entries(draft, read_entries(source / JOURNAL_DIRECTORY, OsFiles(), applied_of(draft)))

    with lock_data_dir(source):
        return _restore(data_dir, copy)


def _restore(data_dir: Path, copy: Callable[[Path], None]) -> tuple[Found, str]:
    _refuse_used(data_dir)
    datadir.prepare(data_dir)
    cluster_id = system.random_bytes(ID_BYTES).hex()
    with lock_data_dir(data_dir), _draft(data_dir) as draft:
        copy(draft)
        found = renew(draft, cluster_id, system.SystemClock().wall_ms())
        begin_journal(draft / JOURNAL_DIRECTORY, OsFiles(), system.SystemClock(), found.log_index, found.term)
        sync(draft / DATABASE_FILE)
        for name in (JOURNAL_DIRECTORY, DATABASE_FILE):
            (draft / name).rename(data_dir / name)
        _hand_to_owner(data_dir)
        sync_directory(data_dir)
    return found, cluster_id


def _hand_to_owner(data_dir: Path) -> None:
    """Whose directory it is is to use it: an administrator restores for the user that the server runs as."""
    owner = data_dir.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        for path in data_dir.rglob("*"):
            os.chown(path, owner.st_uid, owner.st_gid)


def _refuse_used(data_dir: Path) -> None:
    names = sorted({path.name for path in data_dir.iterdir()} - _IGNORED) if data_dir.exists() else []
    if names:
        raise DataDirError(f"{data_dir} is not empty (it has {names[0]}): a restore needs a directory of its own")


@contextmanager
def _draft(data_dir: Path) -> Iterator[Path]:
    """Where the new state is put together. What fails leaves the data directory as it was; what is killed, unusable."""
    draft = data_dir / RESTORING_DIRECTORY
    draft.mkdir(mode=0o700)
    sync_directory(data_dir)
    try:
        yield draft
    except BaseException:
        for name in (JOURNAL_DIRECTORY, DATABASE_FILE):
            _remove(data_dir / name)
        _remove(draft)
        raise
    _remove(draft)
    sync_directory(data_dir)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
