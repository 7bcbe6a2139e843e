"""Owns the commands that work on the data directory of a stopped server, and `ipamd version`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ipamd import __version__, datadir
from ipamd.consensus.facts import JournalFacts as FoundJournal
from ipamd.consensus.facts import read_facts
from ipamd.consensus.files import OsFiles
from ipamd.consensus.lock import lock_data_dir
from ipamd.consensus.survey import WAY_OUT
from ipamd.datadir import DataDirError
from ipamd.logs import escaped
from ipamd.programs.ending import EXIT_REFUSED, EXIT_USAGE
from ipamd.programs.serve import REFUSALS
from ipamd.storage.database import FILE_NAME as DATABASE_FILE
from ipamd.storage.database import FORMAT
from ipamd.storage.doctor import JournalFacts, examine, position
from ipamd.storage.errors import told_of_damage
from ipamd.storage.migrate import migrate as migrate_database

DATA_DIR = click.option(
    "--data-dir", required=True, type=click.Path(file_okay=False, path_type=Path), help="The data directory to look at."
)


@click.command()
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


@click.command()
@DATA_DIR
def migrate(data_dir: Path) -> None:
    """Bring the data directory of a stopped server to this program's format. A copy of the old state is kept."""
    try:
        with lock_data_dir(_existing(data_dir)), told_of_damage(data_dir / DATABASE_FILE):
            copy = migrate_database(data_dir / DATABASE_FILE)
    except REFUSALS as error:
        click.echo(f"ipamd: {error}", err=True)
        sys.exit(EXIT_REFUSED)
    click.echo(f"{data_dir} has format {FORMAT}" + (f"; the state as it was is kept in {copy}" if copy else " already"))


@click.command()
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
