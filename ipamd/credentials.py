"""Owns what an agent shows and what it trusts: a token and an authority in files, read again when they change."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

_log = logging.getLogger("ipamd.agent")


class CredentialsError(Exception):
    """A file cannot be used. One sentence."""


class Followed(Generic[T]):
    """What a file holds. One that cannot be read later leaves what was read before."""

    def __init__(self, what: str, path: Path, read: Callable[[Path], T]) -> None:
        """Raises CredentialsError."""
        self._what, self._path, self._read = what, path, read
        self._mark: tuple[int, int, int] | None = _mark(what, path)
        self._value = read(path)
        self._said: str | None = None

    def __call__(self) -> T:
        """The newest that could be read."""
        try:
            if self._has_changed():
                self._value = self._read(self._path)
                self._said = None
                _log.info("%s was read again", self._path)
        except CredentialsError as error:
            if str(error) != self._said:
                self._said = str(error)
                _log.error("%s; what was read before serves on", error)
        return self._value

    def _has_changed(self) -> bool:
        """Whether the file is another than at the last look. Raises CredentialsError where it cannot be seen."""
        before, self._mark = self._mark, None
        self._mark = _mark(self._what, self._path)
        return self._mark != before


def token_in(path: Path | None) -> Callable[[], str | None]:
    """The token in a file; without one none is shown. Raises CredentialsError."""
    return Followed("token-file", path, _read_token) if path is not None else lambda: None


def trust_in(path: Path | None) -> Callable[[], ssl.SSLContext | None]:
    """What servers must hold before; without a file what the system trusts. Raises CredentialsError."""
    return Followed("tls-ca", path, _read_authority) if path is not None else lambda: None


def _read_token(path: Path) -> str:
    try:
        text = path.read_text().strip()
    except (OSError, ValueError) as error:
        raise CredentialsError(f"token-file {path} cannot be read: {error}") from error
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise CredentialsError(f"token-file {path} holds no token")
    return text


def _read_authority(path: Path) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=path)
    except (OSError, ValueError) as error:
        raise CredentialsError(f"tls-ca {path} cannot be used: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def _mark(what: str, path: Path) -> tuple[int, int, int]:
    """What tells a file from its successor. Raises CredentialsError."""
    try:
        found = os.stat(path)  # noqa: PTH116 - the three numbers at once
    except OSError as error:
        raise CredentialsError(f"{what} {path} cannot be read: {error.strerror}") from error
    return found.st_ino, found.st_mtime_ns, found.st_size
