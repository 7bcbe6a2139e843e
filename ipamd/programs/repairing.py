"""Owns what may be repaired in a stopped data directory, in which order, and the copy that is kept of it first.

A repair restores what follows from what is left; it never guesses a record. Where nothing is left to follow from, the
way back is another member or a backup, and that is said.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from ipamd import system
from ipamd.consensus import mending
from ipamd.consensus.facts import JournalFacts, read_facts
from ipamd.consensus.failures import JournalFailed
from ipamd.consensus.files import OsFiles
from ipamd.consensus.offline import read_entries
from ipamd.datadir import IDENTITY_FILE, JOURNAL_DIRECTORY, DataDirError, read_identity, sync_directory
from ipamd.storage import repair
from ipamd.storage.database import FILE_NAME as DATABASE_FILE
from ipamd.storage.doctor import FORMATS, FREE_SPACE, INDEXES, JOURNAL, Finding, examine, position
from ipamd.storage.doctor import JournalFacts as Span
from ipamd.storage.durable import sync
from ipamd.storage.errors import DiskFull, StorageError

KEPT: Final = "before-repair"
_MAKING: Final = "repairing"
_DERIVED: Final = frozenset({INDEXES, FREE_SPACE})
_IDENTITY: Final = "identity"


class Step(NamedTuple):
    """One repair: a sentence, and how it is done."""

    sentence: str
    act: Callable[[], object]


class Plan(NamedTuple):
    """The repairs, in order; and what cannot be repaired here, as sentences."""

    steps: Sequence[Step]
    beyond: Sequence[str]


@dataclass(frozen=True)
class Case:
    """A data directory as it was found."""

    data_dir: Path
    facts: JournalFacts
    found: Sequence[Finding]
    position: tuple[int, int] | None

    @property
    def journal(self) -> Path:
        """Where the journal lies."""
        return self.data_dir / JOURNAL_DIRECTORY

    @property
    def damage(self) -> list[str]:
        """All that is wrong and that no start mends by itself, as sentences."""
        told = [finding.sentence for finding in self.facts.findings if finding.fatal]
        return told + [f"{finding.where}: {finding.sentence}" for finding in self.found]

    @property
    def torn(self) -> list[str]:
        """What the next start cuts off."""
        return [finding.sentence for finding in self.facts.findings if not finding.fatal]


def look_at(data_dir: Path) -> Case:
    """Examine a data directory. Raises OSError."""
    facts = read_facts(data_dir / JOURNAL_DIRECTORY, OsFiles())
    found = examine(data_dir, Span(facts.first, facts.last, facts.term_at))
    return Case(data_dir, facts, [*found, *_look_at_identity(data_dir)], position(data_dir))


def _look_at_identity(data_dir: Path) -> Iterator[Finding]:
    """One that is not there is no finding: the first start after a restore makes it."""
    try:
        read_identity(data_dir)
    except DataDirError as error:
        yield Finding(_IDENTITY, str(error))


def plan(case: Case) -> Plan:
    """What can be done about it. Raises OSError."""
    if case.facts.is_other_format:
        return Plan([], ["the journal is of another version"])
    steps: list[Step] = []
    beyond: list[str] = []
    for part in (_of_tail, _of_vote, _of_journal, _of_database, _of_identity):
        for one in part(case):
            if isinstance(one, Step):
                steps.append(one)
            else:
                beyond.append(one)
    return Plan(steps, beyond)


def keep_copy(data_dir: Path) -> Path:
    """Keep a copy of all that a repair may change; an unfinished one never has the name. Raises OSError."""
    ends = (path.name.removeprefix(f"{KEPT}-") for path in data_dir.glob(f"{KEPT}-*"))
    number = 1 + max((int(end) for end in ends if end.isdecimal()), default=0)
    draft, copy = data_dir / f"{KEPT}.part", data_dir / f"{KEPT}-{number}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    shutil.copytree(data_dir / JOURNAL_DIRECTORY, draft / JOURNAL_DIRECTORY)
    for name in (DATABASE_FILE, f"{DATABASE_FILE}-wal", IDENTITY_FILE):
        if (data_dir / name).exists():
            shutil.copy2(data_dir / name, draft / name)
    for path in (*draft.rglob("*"), draft):
        sync(path)
    draft.rename(copy)
    sync_directory(data_dir)
    return copy


def _of_tail(case: Case) -> Iterator[Step | str]:
    if case.torn and case.facts.is_whole:
        yield Step("cut off the journal's torn end: nothing in it was acknowledged", lambda: _cut(case))


def _cut(case: Case) -> None:
    if not case.facts.vote_is_lost:  # a journal without it is opened once that is there
        mending.cut_tail(case.journal, OsFiles())


def _of_vote(case: Case) -> Iterator[Step | str]:
    if not case.facts.vote_is_lost:
        return
    if _is_alone(case):
        term = case.facts.terms[case.facts.last] + 1
        yield Step(
            f"give this member the term {term} and no vote: it has the only vote of its cluster",
            lambda: mending.settle_vote(case.journal, OsFiles(), term),
        )
    else:
        yield "this member's term and vote are lost, and with a guess it could vote twice"


def _of_journal(case: Case) -> Iterator[Step | str]:
    if case.facts.is_whole:
        return
    where = case.position
    count = None if where is None else mending.spare_files(case.journal, OsFiles(), where[0])
    if where is None or not count:
        yield "the journal is damaged where it may hold what the state does not"
        return
    yield Step(
        f"drop the journal's {count} oldest file{'s' if count > 1 else ''}: the state has all that is damaged there",
        lambda: mending.drop_files(case.journal, OsFiles(), system.SystemClock(), count, where),
    )


def _of_database(case: Case) -> Iterator[Step | str]:
    places = {finding.where for finding in case.found} - {_IDENTITY}
    if not places:
        return
    if JOURNAL in places and not case.facts.is_whole:
        places.discard(JOURNAL)  # what is damaged there was told, and what is dropped of it has an answer
    if places <= _DERIVED:
        if INDEXES in places:
            yield Step("make the indexes of the database anew from its tables", lambda: repair.reindex(case.data_dir))
        if FREE_SPACE in places:
            yield Step("work out the free space anew", lambda: repair.rebuild_free_space(case.data_dir))
        return
    yield _made_anew(case, places)


def _made_anew(case: Case, places: set[str]) -> Step | str:
    """The state from the journal, if that has all that the state had; tried in a directory of its own first."""
    if FORMATS in places:
        return "the database is of another version"
    if JOURNAL in places:
        return "the database and the journal are not of one log, or one of them is older than the other"
    if case.facts.first != 1 or not case.facts.is_whole:
        return "the state is damaged, and the journal does not reach back to the beginning, from which it could be made"
    try:
        with tempfile.TemporaryDirectory(prefix="ipamd-doctor-", dir=_beside(case.data_dir)) as place:
            last = _make(case, Path(place) / _MAKING)
    except DiskFull as error:
        return f"there is no room to try whether the journal makes the state anew: {error}"
    except (StorageError, JournalFailed) as error:
        return str(error)
    return Step(
        f"make the state anew from the journal, up to index {last}",
        lambda: _put_anew(case),
    )


def _beside(data_dir: Path) -> Path | None:
    """Where there is room for another state, outside of what is only looked at; None: the system's temporary place.

    That one is often in memory, and small.
    """
    beside = data_dir.resolve().parent
    is_same = beside.stat().st_dev == data_dir.stat().st_dev
    return beside if is_same and os.access(beside, os.W_OK | os.X_OK) else None


def _make(case: Case, place: Path) -> int:
    """Make the state; the index that it came to. What may not be committed is left to the members. Raises Broken."""
    entries = read_entries(case.journal, OsFiles(), 1)
    made = repair.make_anew(place, entries, None)
    if sum(member.voter for member in made.members) == 1:
        return made.applied
    if case.position is None or not 1 < case.position[0] <= case.facts.last:
        raise StorageError("nobody can tell here how much of the journal is committed")
    shutil.rmtree(place)
    return repair.make_anew(place, read_entries(case.journal, OsFiles(), 1), case.position[0]).applied


def _put_anew(case: Case) -> None:
    place = case.data_dir / _MAKING
    shutil.rmtree(place, ignore_errors=True)
    _make(case, place)
    repair.take_place(place, case.data_dir)
    shutil.rmtree(place)


def _of_identity(case: Case) -> Iterator[Step | str]:
    if any(finding.where == _IDENTITY for finding in case.found):
        yield f"whose directory this is stood in {IDENTITY_FILE} alone"


def _is_alone(case: Case) -> bool:
    members = repair.members_of(case.data_dir)
    return members is not None and sum(member.voter for member in members) == 1
