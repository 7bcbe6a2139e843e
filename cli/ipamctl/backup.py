"""The verb `backup`."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, BinaryIO

import click

from ipamctl.client import route
from ipamctl.exits import Refused
from ipamctl.render import fields
from ipamctl.session import Session, Verb

_AT_LEAST_S = 600.0
_CHUNK_BYTES = 1 << 20


@click.command(cls=Verb)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.pass_obj
def backup(session: Session, /, file: Path) -> None:
    """Write the cluster's whole state to FILE, and its SHA-256 to FILE.sha256, for `ipamd restore`.

    Servers and pods go on meanwhile. FILE is whole or not there; one that was there is replaced.
    """
    if file.exists() and not file.is_file():  # a device would be replaced, by an administrator's hand
        raise Refused(f"{file} is not a file that a backup may replace")
    draft, beside = file.with_name(f"{file.name}.part"), file.with_name(f"{file.name}.sha256")
    try:
        got = _fetch(session, draft)
        beside.unlink(missing_ok=True)  # at no moment is a hash beside a file that is not its own
        draft.replace(file)
        _write(beside, f"{got['sha256']}  {file.name}\n".encode())
        _sync(file.absolute().parent)
    except OSError as error:
        raise Refused(f"{file} cannot be written: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)
    session.show({"file": str(file), **got}, lambda value: fields(value.items()))


def _fetch(session: Session, draft: Path) -> dict[str, Any]:
    """Write what comes to a file, and see that it is what was sent."""
    with _open(draft) as out:
        headers = session.client.download(route("backup"), out, at_least_s=_AT_LEAST_S)
        out.flush()
        os.fsync(out.fileno())
        out.seek(0)
        sha256 = _hash(out)
        size_bytes = out.tell()
    if sha256 != headers["Ipamd-Sha256"]:
        raise Refused("what came is not what the server sent: its SHA-256 differs; try again")
    return {"index": int(headers["Ipamd-Index"]), "bytes": size_bytes, "sha256": sha256}


def _hash(file: BinaryIO) -> str:
    whole = hashlib.sha256()
    while part := file.read(_CHUNK_BYTES):
        whole.update(part)
    return whole.hexdigest()


def _open(path: Path) -> BinaryIO:
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")


def _write(path: Path, data: bytes) -> None:
    draft = path.with_name(f"{path.name}.part")
    try:
        with _open(draft) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
