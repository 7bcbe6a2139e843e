"""Owns where certificates and keys lie: one directory, `NAME.crt` and `NAME.key` each, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ipamctl.exits import Refused

CA = "ca"
"""The name that the authority's two files have."""


def directory_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option that names the directory."""
    return click.option(
        "--dir", "directory", type=click.Path(file_okay=False, path_type=Path), default=Path("tls"),
        show_default=True, help="Where ca.crt, ca.key and the issued certificates lie.",
    )(command)  # fmt: skip


def certificate(directory: Path, name: str) -> Path:
    """The file of a certificate."""
    return directory / f"{name}.crt"


def key(directory: Path, name: str) -> Path:
    """The file of its private key."""
    return directory / f"{name}.key"


def refuse_to_overwrite(*paths: Path) -> None:
    """Raises Refused where one of the files is there."""
    for path in paths:
        if path.exists():
            raise Refused(f"{path} is there already; it is not overwritten")


def read(path: Path) -> bytes:
    """The bytes of a file. Raises Refused."""
    try:
        return path.read_bytes()
    except OSError as error:
        hint = "; make an authority first: ipamctl tls init" if path.stem == CA else ""
        raise Refused(f"{path} cannot be read: {error.strerror}{hint}") from error


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
