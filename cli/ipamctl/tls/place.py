"""Owns where certificates and keys lie: one directory, `NAME.crt` and `NAME.key` each."""

from __future__ import annotations

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


def read(path: Path) -> bytes:
    """The bytes of a file. Raises Refused."""
    try:
        return path.read_bytes()
    except OSError as error:
        hint = "; make an authority first: ipamctl tls init" if path.stem == CA else ""
        raise Refused(f"{path} cannot be read: {error.strerror}{hint}") from error
