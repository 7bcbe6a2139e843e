"""Owns the data directory as a place: its mode, the files that every part puts there, and who it belongs to.

The identity is a small file that is written once, when the directory is made: the member's random id, its name and
the node's name. It is replaced as a whole: a new file, synced, renamed over the old one, the directory synced.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict, dataclass, replace
from pathlib import Path

IDENTITY_FILE = "identity.json"
JOURNAL_DIRECTORY = "journal"
RESTORING_DIRECTORY = "restoring"
"""Where a restore puts a new state together: as long as it is there nothing else is to be used."""

ADMIN_TOKEN_FILE = "admin.token"  # noqa: S105 - the name of a file


class DataDirError(Exception):
    """The directory cannot be used. One sentence, with the way out where there is one."""


@dataclass(frozen=True)
class Identity:
    """Who the directory belongs to."""

    member_id: str
    member_name: str
    node_name: str


def prepare(path: Path) -> None:
    """Make the directory, for this user alone. Raises DataDirError."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            path.chmod(0o700)
    except OSError as error:
        raise DataDirError(f"the data directory {path} cannot be made or used: {error.strerror}") from error


def refuse_unfinished(path: Path) -> None:
    """Refuse what a restore has left that was cut short. Raises DataDirError."""
    if (path / RESTORING_DIRECTORY).exists():
        raise DataDirError(f"a restore into {path} was cut short: empty {path} and restore again")


def read_identity(path: Path) -> Identity | None:
    """The identity of a directory; None if it has none yet. Raises DataDirError."""
    file = path / IDENTITY_FILE
    try:
        found = json.loads(file.read_text())
        return Identity(**{name: str(found[name]) for name in Identity.__dataclass_fields__})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataDirError(f"{file} cannot be read ({error!r}); put it back from a copy, or start empty") from error


def claim(path: Path, wanted: Identity) -> Identity:
    """The identity of the directory, made if there is none; its names must be those wanted. Raises DataDirError."""
    found = read_identity(path)
    if found is None:
        _write_identity(path, wanted)
        return wanted
    if found.member_name != wanted.member_name:
        raise DataDirError(
            f"{path} belongs to member {found.member_name}, not to {wanted.member_name}: start it with"
            f" --member-name {found.member_name}, or give {wanted.member_name} another --data-dir"
        )
    return found


def rename_node(path: Path, name: str) -> None:
    """Keep another node name. Raises DataDirError."""
    found = read_identity(path)
    if found is None:
        raise DataDirError(f"{path} has no identity whose node could be renamed")
    if found.node_name != name:
        _write_identity(path, replace(found, node_name=name))


def drop_admin_token(path: Path) -> None:
    """Remove the file of a token that counts nowhere. Raises DataDirError."""
    try:
        (path / ADMIN_TOKEN_FILE).unlink(missing_ok=True)
    except OSError as error:
        raise DataDirError(f"{path / ADMIN_TOKEN_FILE} cannot be removed: {error.strerror}") from error


def _write_identity(path: Path, identity: Identity) -> None:
    write_durably(path / IDENTITY_FILE, json.dumps(asdict(identity), indent=1).encode() + b"\n")


def write_durably(path: Path, data: bytes) -> None:
    """Write a file of mode 0600 so that after a crash it is whole or not there. Raises DataDirError."""
    draft = path.with_name(f"{path.name}.new")
    try:
        draft.unlink(missing_ok=True)
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        draft.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        raise DataDirError(f"{path} cannot be written: {error.strerror}") from error


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
