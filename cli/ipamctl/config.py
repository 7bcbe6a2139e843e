"""Owns where the options before the group come from: flag, else IPAMCTL_* in the environment, else the TOML file."""

from __future__ import annotations

import os
import ssl
import tomllib
from pathlib import Path
from typing import Any

import click

from ipamctl.server import BadServer, Server, parse_server
from ipamctl.text import reason

KEYS = {
    "server": "servers",
    "token_file": "token_file",
    "cacert": "cacert",
    "output": "output",
    "timeout": "timeout_s",
    "stale": "stale",
}
"""What the file may say, named like the options, and the parameter of the root command that it is the default of."""


def default_path() -> Path:
    """`~/.config/ipamctl/config.toml`, or below XDG_CONFIG_HOME."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "ipamctl" / "config.toml"


def load_file(context: click.Context, _parameter: click.Parameter, value: Path | None) -> None:
    """Make the file's values the defaults of the options. A file that was named must exist."""
    path = value or default_path()
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if value is None:
            return
        raise click.UsageError(f"there is no configuration file {path}") from None
    except (OSError, ValueError) as bad:
        raise click.UsageError(f"the configuration file {path} cannot be read: {reason(bad)}") from bad
    context.default_map = _checked(table, path)


def _checked(table: dict[str, Any], path: Path) -> dict[str, Any]:
    for key in table:
        if key not in KEYS:
            raise click.UsageError(f"{path}: unknown key {key!r} (known: {', '.join(KEYS)})")
    if isinstance(table.get("server"), str):
        table["server"] = [table["server"]]
    return {KEYS[key]: value for key, value in table.items()}


class ServerType(click.ParamType[Server]):
    """The type of `--server`."""

    name = "server"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Server:
        """Read an address, or end with status 2."""
        try:
            return value if isinstance(value, Server) else parse_server(str(value))
        except BadServer as bad:
            self.fail(str(bad), param, ctx)


def read_token(path: Path | None) -> str | None:
    """The secret in the token file. Raises UsageError."""
    if path is None:
        return None
    try:
        secret = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as bad:
        raise click.UsageError(f"the token file {path} cannot be read: {reason(bad)}") from bad
    if not secret or not secret.isprintable() or " " in secret:
        raise click.UsageError(f"the token file {path} does not hold one token")
    return secret


def read_trust(path: Path | None) -> ssl.SSLContext | None:
    """The certificates to trust in place of the system's. Raises UsageError."""
    if path is None:
        return None
    try:
        return ssl.create_default_context(cafile=str(path))
    except OSError as bad:
        raise click.UsageError(f"the certificates in {path} cannot be read: {reason(bad)}") from bad
