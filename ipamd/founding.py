"""Owns the first moment of a cluster: the command that founds it, and the secret of its first administrator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ipamd.core.commands import Found, Origin
from ipamd.core.model import Member, Role, Token
from ipamd.core.tokens import TTL_S
from ipamd.datadir import ADMIN_TOKEN_FILE, DataDirError, write_durably
from ipamd.settings import Config

ID_BYTES = 16
ADMIN_NAME = "admin"
_LEAST_SECRET_CHARACTERS = 16


def found_command(
    config: Config, members: tuple[Member, ...], digest: bytes, wall_ms: int, random_bytes: Callable[[int], bytes]
) -> Found:
    """What founds a cluster of these members, `digest` being that of the administrator's secret.

    The first one in the log counts: a repetition, with another id, changes nothing.
    """
    admin = Token(random_bytes(8).hex(), ADMIN_NAME, Role.ADMIN, digest, wall_ms)
    origin = Origin("system", "found")
    return Found(origin, random_bytes(ID_BYTES).hex(), config.first, members, admin, TTL_S[Role.ADMIN])


def admin_secret(data_dir: Path, new_secret: Callable[[], str]) -> str:
    """The first administrator's secret, on disk before anybody hears of it. Raises DataDirError.

    A start that crashed after writing it, and before the cluster was founded, has left one: it is used.
    """
    file = data_dir / ADMIN_TOKEN_FILE
    try:
        secret = file.read_text().strip()
    except FileNotFoundError:
        secret = new_secret()
        write_durably(file, secret.encode() + b"\n")
    except (OSError, ValueError) as error:
        raise DataDirError(f"{file} cannot be read: {error}") from error
    if len(secret) < _LEAST_SECRET_CHARACTERS or not secret.isascii():
        raise DataDirError(f"{file} holds no token of {_LEAST_SECRET_CHARACTERS} ASCII characters or more; remove it")
    return secret
