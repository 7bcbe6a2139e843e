"""Owns the program `ipamd`: its commands, and how its process ends."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click
import uvloop

from ipamd import __version__, datadir, logs, system
from ipamd.consensus.facts import JournalFacts as FoundJournal
from ipamd.consensus.facts import read_facts
from ipamd.consensus.failures import JournalFailed, StartRefused
from ipamd.consensus.files import OsFiles
from ipamd.consensus.lock import lock_data_dir
from ipamd.consensus.survey import WAY_OUT
from ipamd.core.ports import Unavailable
from ipamd.datadir import DataDirError
from ipamd.logs import escaped
from ipamd.notify import notify
from ipamd.serving import Ends, running
from ipamd.settings import Config, SettingsError, load, settings_options
from ipamd.sockets import SocketError
from ipamd.storage.database import FILE_NAME as DATABASE_FILE
from ipamd.storage.database import FORMAT
from ipamd.storage.doctor import JournalFacts, examine, position
from ipamd.storage.errors import StorageError, told_of_damage
from ipamd.tls import TlsError

logger = logging.getLogger("ipamd")

REFUSALS = (DataDirError, SocketError, TlsError, StartRefused, JournalFailed, StorageError, Unavailable, OSError)
"""Why a start can fail for reasons that its operator can do something about: one sentence, no traceback."""

EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_FATAL = 70
"""EX_SOFTWARE of sysexits.h: the state cannot be trusted any more; a supervisor may start it again."""

SWITCH_INTERVAL_S = 0.0005
"""How long a thread may keep the others waiting: at the default of 5 ms the Raft thread waits for HTTP's."""

COLLECTED_AFTER = 20_000
"""How many new objects are looked through for cycles at once. At 700, the default, that took 5 % of a busy leader."""

STOP_S = 9.0


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ipamd")
def main() -> None:
    """A replicated IPAM server for CNI plugins."""


@main.command()
@settings_options
def serve(**flags: object) -> None:
    """Run the server. Without any option it is a complete service for one node."""
    try:
        config = load(flags, os.environ, system.host())
    except SettingsError as error:
        for mistake in error.mistakes:
            click.echo(f"ipamd: {mistake}", err=True)
        sys.exit(EXIT_USAGE)
    logs.configure(config.log_format, config.log_level)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    system.raise_file_limit()
    try:
        uvloop.run(_serve(config))
    except REFUSALS as error:
        logger.error("%s", error)  # noqa: TRY400 - a sentence for the operator, no traceback
        sys.exit(EXIT_REFUSED)
    except Exception:
        logger.exception("the server ended by a fault of its own")  # the process's boundary: this too is one line
        sys.exit(EXIT_FATAL)


async def _serve(config: Config) -> None:
    """Run until a signal says that it is enough. The second signal changes nothing: the end has its own limit."""
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("serve runs in a task")
    stopping = threading.Event()

    def stop() -> None:
        if not stopping.is_set():
            stopping.set()
            logger.info("stopping")
            notify("STOPPING=1")
            _limit_the_end()
            task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    with suppress(asyncio.CancelledError):
        async with running(config, Ends(_fatal, _removed)) as server:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, server.reload)
            _spare_the_collector()
            await asyncio.Event().wait()
    logger.info("stopped")


def _spare_the_collector() -> None:
    """What a start has made stays to the end, and requests leave hardly a cycle behind."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER)


def _limit_the_end() -> None:
    """What is acknowledged is on the disk: an end that takes too long may be cut short."""

    def cut() -> None:
        logger.warning("stopping took longer than %s s and was cut short", STOP_S)
        _exit(0)

    timer = threading.Timer(STOP_S, cut)
    timer.daemon = True
    timer.start()


def _fatal(sentence: str) -> None:
    """Called in any thread when nothing can be trusted any more: no clean-up, which would trust it again."""
    logger.critical("%s", sentence)
    _exit(EXIT_FATAL)


def _removed(sentence: str) -> None:
    """Called in any thread once this member was removed from its cluster: there is nothing left to do."""
    logger.warning("%s", sentence)
    _exit(0)


def _exit(status: int) -> NoReturn:
    logs.flush()
    os._exit(status)


DATA_DIR = click.option(
    "--data-dir", required=True, type=click.Path(file_okay=False, path_type=Path), help="The data directory to look at."
)


@main.command()
@DATA_DIR
def doctor(data_dir: Path) -> None:
    """Examine the data directory of a stopped server. It changes nothing.

    Exit status: 0 nothing was found, 1 something was found, 2 it could not be examined.
    """
    try:
        with lock_data_dir(_existing(data_dir)):
            journal = read_facts(_journal_of(data_dir), OsFiles())
            found = examine(data_dir, JournalFacts(journal.first, journal.last, journal.term_at))
            where = position(data_dir)
    except REFUSALS as error:
        click.echo(f"ipamd: {error}", err=True)
        sys.exit(EXIT_USAGE)
    damage = [finding.sentence for finding in journal.findings if finding.fatal]
    damage += [f"{finding.where}: {finding.sentence}" for finding in found]
    for sentence in damage:
        click.echo(escaped(sentence))
    for finding in journal.findings:
        if not finding.fatal:
            click.echo(escaped(f"{finding.sentence}: the next start cuts it off, nothing in it was acknowledged"))
    click.echo(f"{data_dir}: {_summary(len(damage), journal, where)}")
    sys.exit(1 if damage else 0)


def _summary(count: int, journal: FoundJournal, where: tuple[int, int] | None) -> str:
    found = "nothing found" if count == 0 else f"{count} finding" if count == 1 else f"{count} findings"
    applied = "not readable" if where is None else f"applied up to index {where[0]} of term {where[1]}"
    return f"{found}; state {applied}, journal from index {journal.first} to {journal.last}"


@main.command()
@DATA_DIR
def migrate(data_dir: Path) -> None:
    """Bring the data directory of a stopped server to this program's format. A copy of the old state is kept."""
    from ipamd.storage.migrate import migrate as migrate_database  # noqa: PLC0415 - slow to load, and serve needs it not

    try:
        with lock_data_dir(_existing(data_dir)), told_of_damage(data_dir / DATABASE_FILE):
            copy = migrate_database(data_dir / DATABASE_FILE)
    except REFUSALS as error:
        click.echo(f"ipamd: {error}", err=True)
        sys.exit(EXIT_REFUSED)
    click.echo(f"{data_dir} has format {FORMAT}" + (f"; the state as it was is kept in {copy}" if copy else " already"))


@main.command()
def version() -> None:
    """Print the version of this program, and the format of its state."""
    click.echo(f"ipamd {__version__} (state format {FORMAT})")


def _existing(data_dir: Path) -> Path:
    """A data directory that is one. Raises DataDirError."""
    if not (data_dir / DATABASE_FILE).is_file():
        raise DataDirError(f"{data_dir} is no data directory of ipamd: it has no {DATABASE_FILE}")
    return data_dir


def _journal_of(data_dir: Path) -> Path:
    """The directory of the journal. Raises DataDirError."""
    directory = data_dir / datadir.JOURNAL_DIRECTORY
    if not directory.is_dir():
        raise DataDirError(f"{directory} is missing, and the state alone is not whole; {WAY_OUT}")
    return directory


if __name__ == "__main__":
    main()
