"""Owns files that only their owner may read: secrets, keys and what holds them. Written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from ipamctl.exits import Refused


def refuse_to_overwrite(*paths: Path) -> None:
    """Raises Refused where one of the files is there."""
    for path in paths:
        if path.exists():
            raise Refused(f"{path} is there already; it is not overwritten")


def write(path: Path, data: bytes) -> None:
    """Write a file of mode 0600; a reader sees the old one or the new one, never half of it. Raises Refused."""
    draft = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        draft.replace(path)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}") from error
