"""Owns the command `ipamd doctor`: what is wrong with a stopped server's data directory, and what is done about it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from ipamd import datadir
from ipamd.consensus.lock import lock_data_dir
from ipamd.consensus.survey import WAY_OUT
from ipamd.datadir import DataDirError
from ipamd.logs import escaped
from ipamd.programs.ending import EXIT_USAGE
from ipamd.programs.offline import DATA_DIR
from ipamd.programs.repairing import Case, Plan, keep_copy, look_at, plan
from ipamd.programs.serve import REFUSALS
from ipamd.storage.database import FILE_NAME as DATABASE_FILE
from ipamd.storage.doctor import digest_of

_ELSEWHERE: Final = f"{WAY_OUT}, or make a new cluster of a backup: ipamd restore"


@click.command()
@DATA_DIR
@click.option("--apply", "applies", is_flag=True, help="Carry out the repairs that are listed; a copy is kept first.")
def doctor(data_dir: Path, *, applies: bool) -> None:
    """Examine the data directory of a stopped server. Without --apply it changes nothing.

    It lists what it found, and what it would repair: only what follows from the rest. Exit status: 0 nothing was found
    or all was repaired, 1 something was found, 2 it could not be examined.
    """
    try:
        with lock_data_dir(_used(data_dir)):
            case = _repaired(data_dir) if applies else _told(data_dir)
    except REFUSALS as error:
        click.echo(f"ipamd: {error}", err=True)
        sys.exit(EXIT_USAGE)
    click.echo(f"{data_dir}: {_summary(case)}")
    sys.exit(1 if case.damage else 0)


def _used(data_dir: Path) -> Path:
    """A data directory that is one, and has a journal. Raises DataDirError."""
    journal = data_dir / datadir.JOURNAL_DIRECTORY
    if not journal.is_dir() and not (data_dir / DATABASE_FILE).is_file():
        raise DataDirError(f"{data_dir} is no data directory of ipamd: it has no {DATABASE_FILE}")
    if not journal.is_dir():
        raise DataDirError(f"{journal} is missing, and the state alone is not whole; {WAY_OUT}")
    return data_dir


def _told(data_dir: Path) -> Case:
    """Look, and say what is wrong and what could be done."""
    case = look_at(data_dir)
    _tell(case, plan(case))
    return case


def _repaired(data_dir: Path) -> Case:
    """Look, repair, and look again until nothing more can be done; one repair may uncover the next."""
    done: set[str] = set()
    case = look_at(data_dir)
    while True:
        found = plan(case)
        steps = [step for step in found.steps if step.sentence not in done]
        if not steps:
            break
        _say(case.damage)
        if not done:
            click.echo(f"a copy of what was there is kept in {keep_copy(data_dir)}")
        for step in steps:
            step.act()
            done.add(step.sentence)
            click.echo(escaped(f"repaired: {step.sentence}"))
        case = look_at(data_dir)
    _tell(case, found)
    return case


def _tell(case: Case, found: Plan) -> None:
    _say(case.damage)
    _say(f"{sentence}: the next start cuts it off, nothing in it was acknowledged" for sentence in case.torn)
    _say(f"can be repaired (--apply): {step.sentence}" for step in found.steps)
    _say(f"cannot be repaired here: {sentence}; {_ELSEWHERE}" for sentence in found.beyond)


def _say(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        click.echo(escaped(sentence))


def _summary(case: Case) -> str:
    count, journal = len(case.damage), case.facts
    found = "nothing found" if count == 0 else f"{count} finding" if count == 1 else f"{count} findings"
    where = case.position
    applied = "not readable" if where is None else f"applied up to index {where[0]} of term {where[1]}"
    digest = digest_of(case.data_dir)
    told = "" if digest is None else f", digest {digest}"
    end = journal.term_at(journal.last)
    reach = f"journal from index {journal.first} to {journal.last}" + ("" if end is None else f" of term {end}")
    return f"{found}; state {applied}{told}; {reach}"
