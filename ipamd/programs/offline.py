"""Owns the commands that work on the data directory of a stopped server, and `ipamd version`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ipamd import __version__
from ipamd.consensus.lock import lock_data_dir
from ipamd.datadir import DataDirError
from ipamd.programs.ending import EXIT_REFUSED
from ipamd.programs.serve import REFUSALS
from ipamd.storage.database import FILE_NAME as DATABASE_FILE
from ipamd.storage.database import FORMAT
from ipamd.storage.errors import told_of_damage
from ipamd.storage.migrate import migrate as migrate_database

DATA_DIR = click.option(
    "--data-dir", required=True, type=click.Path(file_okay=False, path_type=Path), help="The data directory to look at."
)


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
