"""Owns the command `ipamctl`: the options before the group, and the list of groups."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import click

from ipamctl.address import address
from ipamctl.backup import backup
from ipamctl.client import Client
from ipamctl.cluster import cluster
from ipamctl.cni import cni
from ipamctl.completion import completion
from ipamctl.config import ServerType, load_file, read_token, read_trust
from ipamctl.events import events
from ipamctl.imports import import_
from ipamctl.node import node
from ipamctl.note import note
from ipamctl.pool import pool
from ipamctl.reservation import reservation
from ipamctl.server import NODE_SOCKET, Server, parse_server
from ipamctl.session import FORMATS, Session
from ipamctl.settings import settings
from ipamctl.tls import tls
from ipamctl.token import token
from ipamctl.who import who
from ipamctl.why import why

_FILE = click.Path(path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--config", envvar="IPAMCTL_CONFIG", type=_FILE, is_eager=True, expose_value=False, callback=load_file,
    help="File with defaults for these options; default ~/.config/ipamctl/config.toml.",
)  # fmt: skip
@click.option(
    "--server", "servers", envvar="IPAMCTL_SERVER", type=ServerType(), multiple=True, metavar="URL|unix:PATH",
    help="A server to ask; several are tried in turn. Default: the node socket of this host.",
)  # fmt: skip
@click.option("--token-file", envvar="IPAMCTL_TOKEN_FILE", type=_FILE, help="File with the token for a server on TCP.")
@click.option("--cacert", envvar="IPAMCTL_CACERT", type=_FILE, help="Certificates to trust, in place of the system's.")
@click.option(
    "-o", "--output", envvar="IPAMCTL_OUTPUT", type=click.Choice(FORMATS), default="table", show_default=True,
    help="How to print the result.",
)  # fmt: skip
@click.option(
    "--timeout", "timeout_s", envvar="IPAMCTL_TIMEOUT", type=click.FloatRange(min=0, min_open=True), default=10.0,
    show_default=True, metavar="SECONDS", help="For one request, over all servers.",
)  # fmt: skip
@click.option("--stale", envvar="IPAMCTL_STALE", is_flag=True, help="Read a server's own state; it may be old.")
@click.version_option(version("ipamd-server"), prog_name="ipamctl")
@click.pass_context
def cli(
    context: click.Context,
    /,
    *,
    servers: tuple[Server, ...],
    token_file: Path | None,
    cacert: Path | None,
    output: str,
    timeout_s: float,
    stale: bool,
) -> None:
    """Manage the addresses that ipamd gives to pods.

    Exit status: 0 done, 1 refused, 2 usage, 3 unavailable, 4 not found, 5 degraded.
    """
    client = Client(
        servers or (parse_server(NODE_SOCKET),),
        token=read_token(token_file),
        trust=read_trust(cacert),
        timeout_s=timeout_s,
        stale=stale,
    )
    context.obj = Session(client, output)


_COMMANDS: tuple[click.Command, ...] = (
    *(pool, reservation, address, who, why, node, cluster, token, events, note, settings),
    *(backup, import_, cni, tls, completion),
)
for _command in _COMMANDS:
    cli.add_command(_command)


def main() -> None:
    """Entry point."""
    cli(prog_name="ipamctl")
