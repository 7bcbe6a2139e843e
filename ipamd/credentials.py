"""Owns what an agent shows and what it trusts: a token and an authority in files, read again when they change.

A node that fetches its token has a purse for it: two files, the secret that it asks for and the token that it has.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from ipamd.datadir import DataDirError, sync_directory, write_durably
from ipamd.tls import authority_end_s, days_until

T = TypeVar("T")

Trust = Callable[[], ssl.SSLContext | None]
"""What servers must hold before; None: what the system trusts."""

_ASKED = ".asked"
_OTHERS = 0o077

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


class TokenPurse:
    """The file of a node's own token, which may not be there yet. Reading it is what `token_in` is to another's."""

    def __init__(self, path: Path, new_secret: Callable[[], str]) -> None:
        """Raises CredentialsError where a token is there and cannot be used."""
        self._path, self._new_secret = path, new_secret
        self._draft = path.with_name(f"{path.name}{_ASKED}")
        self._followed = None if self.is_empty else Followed("token-file", path, _read_token)

    def __call__(self) -> str | None:
        """The token; None while there is none."""
        if self._followed is None and not self.is_empty:
            try:
                self._followed = Followed("token-file", self._path, _read_token)
            except CredentialsError as error:
                _log.error("%s", error)
        return None if self._followed is None else self._followed()

    @property
    def is_empty(self) -> bool:
        """Whether there is no token yet."""
        return not self._path.exists()

    def asked(self) -> str:
        """The secret that is asked for: that of the last time, or a new one. Raises OSError."""
        try:
            return _read_token(self._draft)
        except CredentialsError:  # none, or one that a crash cut short: nobody was asked with it
            secret = self._new_secret()
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_durably(self._draft, secret.encode() + b"\n")
        except DataDirError as error:
            raise OSError(str(error)) from error
        return secret

    def settle(self) -> None:
        """The cluster knows it: it is the token from now on. Raises OSError."""
        self._draft.replace(self._path)
        sync_directory(self._path.parent)


def days_of(trust: Trust, wall_ms: Callable[[], int]) -> Callable[[], int | None]:
    """Asks how many days the authority lasts that servers must hold before; None: the system's are trusted."""

    def days() -> int | None:
        context = trust()
        return None if context is None else days_until(authority_end_s(context), wall_ms() / 1000)

    return days


def token_in(path: Path | None) -> Callable[[], str | None]:
    """The token in a file; without one none is shown. Raises CredentialsError."""
    return Followed("token-file", path, _read_token) if path is not None else lambda: None


def trust_in(path: Path | None) -> Trust:
    """What servers must hold before; without a file what the system trusts. Raises CredentialsError."""
    return Followed("tls-ca", path, _read_authority) if path is not None else lambda: None


def _read_token(path: Path) -> str:
    try:
        if path.stat().st_mode & _OTHERS:
            _log.warning("the token in %s can be read by others: chmod 600", path)
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
