"""Owns what the journal's tests share: opening one on some disk, with small limits."""

from __future__ import annotations

from pathlib import Path

from ipamd.consensus.figures import Figures
from ipamd.consensus.files import Files
from ipamd.consensus.journal import Journal
from ipamd.consensus.limits import Limits
from ipamd.consensus.records import Entry

DIRECTORY = Path("/journal")
SMALL = Limits(segment_bytes=600, cache_bytes=200)


class ManualClock:
    """Clocks that a test moves."""

    def __init__(self, now_s: float = 100.0, wall_ms: int = 1_700_000_000_000) -> None:
        self.now_s = now_s
        self.now_wall_ms = wall_ms

    def monotonic_s(self) -> float:
        return self.now_s

    def wall_ms(self) -> int:
        return self.now_wall_ms


def open_journal(files: Files, directory: Path = DIRECTORY, limits: Limits = SMALL) -> Journal:
    return Journal(directory, files, limits, ManualClock(), Figures())


def entry(index: int, term: int = 1, size: int = 20) -> Entry:
    return (f"{index}-{term}-".encode() + b"x" * size, index, term)


def content(journal: Journal) -> list[Entry]:
    return [journal[position] for position in range(len(journal))]


def fill(journal: Journal, count: int, term: int = 1) -> list[Entry]:
    """Add and sync so many entries, each for itself."""
    if journal.getCurrentTerm() < term:
        journal.setCurrentTerm(term, "a")
    added = [entry(journal.last + 1 + number, term) for number in range(count)]
    for one in added:
        journal.add(*one)
        journal.sync()
    return added
