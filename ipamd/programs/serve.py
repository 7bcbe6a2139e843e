"""Owns the command `ipamd serve`."""

from __future__ import annotations

import logging
import os
import sys

import click

from ipamd import logs, system
from ipamd.consensus.failures import JournalFailed, StartRefused
from ipamd.core.ports import Unavailable
from ipamd.core.spooled import SpoolError
from ipamd.datadir import DataDirError
from ipamd.programs.ending import EXIT_FATAL, end_now, run, until_signalled, usage
from ipamd.serving import Ends, running
from ipamd.settings import SettingsError, load, settings_options
from ipamd.sockets import SocketError
from ipamd.storage.errors import StorageError
from ipamd.tls import TlsError

logger = logging.getLogger("ipamd")

REFUSALS = (
    DataDirError,
    SocketError,
    SpoolError,
    TlsError,
    StartRefused,
    JournalFailed,
    StorageError,
    Unavailable,
    OSError,
)
"""Why a start can fail for reasons that its operator can do something about."""

SWITCH_INTERVAL_S = 0.0005
"""How long a thread may keep the others waiting: at the default of 5 ms the Raft thread waits for HTTP's."""


@click.command()
@settings_options
def serve(**flags: object) -> None:
    """Run the server. Without any option it is a complete service for one node."""
    try:
        config = load(flags, os.environ, system.host())
    except SettingsError as error:
        usage(error)
    logs.configure(config.log_format, config.log_level)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    run(until_signalled(lambda: running(config, Ends(_fatal, _removed))), REFUSALS)


def _fatal(sentence: str) -> None:
    """Called in any thread when nothing can be trusted any more: no clean-up, which would trust it again."""
    logger.critical("%s", sentence)
    end_now(EXIT_FATAL)


def _removed(sentence: str) -> None:
    """Called in any thread once this member was removed from its cluster: there is nothing left to do."""
    logger.warning("%s", sentence)
    end_now(0)
