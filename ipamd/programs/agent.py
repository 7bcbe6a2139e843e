"""Owns the command `ipamd agent`."""

from __future__ import annotations

import os

import click

from ipamd import logs, system
from ipamd.agenting import attending
from ipamd.core.spooled import SpoolError
from ipamd.credentials import CredentialsError
from ipamd.datadir import DataDirError
from ipamd.programs.ending import run, until_signalled, usage
from ipamd.settings import SettingsError, agent_options, load_agent
from ipamd.sockets import SocketError

REFUSALS = (CredentialsError, DataDirError, SocketError, SpoolError, OSError)
"""Why a start can fail for reasons that its operator can do something about."""


@click.command()
@agent_options
def agent(**flags: object) -> None:
    """Run the node agent on a host without a server: the same node socket, answered by the cluster behind it."""
    try:
        config = load_agent(flags, os.environ, system.host())
    except SettingsError as error:
        usage(error)
    logs.configure(config.log_format, config.log_level)
    run(until_signalled(lambda: attending(config)), REFUSALS)
