"""Owns looking at a stopped member's journal without changing a byte of it: what it holds, and what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ipamd.consensus.failures import FormatRefused, StartRefused
from ipamd.consensus.files import Files
from ipamd.consensus.hardstate import Ballot, read_ballot
from ipamd.consensus.survey import Finding, Scanned, survey


class JournalFacts(NamedTuple):
    """The log from `first` to `last` (`last` 0: there is none), and this member's term and vote."""

    first: int
    last: int
    ballot: Ballot | None
    findings: tuple[Finding, ...]
    terms: dict[int, int]
    """Term by index."""

    is_whole: bool
    """Whether the entries can be read from the first to the last: a torn end is none of them."""

    @property
    def is_other_format(self) -> bool:
        """Whether any of it is of a version that this program does not read."""
        return any(finding.is_other_format for finding in self.findings)

    @property
    def vote_is_lost(self) -> bool:
        """Whether this member's term and vote are not there, or older than its journal."""
        return self.last > 0 and self.terms[self.last] > (0 if self.ballot is None else self.ballot.term)

    def term_at(self, index: int) -> int | None:
        """The term of an entry; None: the journal has no such entry."""
        return self.terms.get(index)


def read_facts(directory: Path, files: Files) -> JournalFacts:
    """The facts of the journal in a directory. Raises OSError."""
    found = survey(directory, files)
    findings = [finding for scanned in found for finding in scanned.findings]
    is_whole = not any(finding.fatal for finding in findings)
    ballot = None
    try:
        ballot = read_ballot(directory, files)
    except StartRefused as error:
        findings.append(Finding(str(error), fatal=True, is_other_format=isinstance(error, FormatRefused)))
    terms = _terms(found)
    last = max(terms, default=0)
    if ballot is None or (terms and ballot.term < terms[last]):
        term = "none" if ballot is None else ballot.term
        sentence = f"the journal in {directory} reaches term {terms.get(last, 0)}, but this member's own term is {term}"
        findings += [Finding(sentence, fatal=True)] if terms.get(last, 0) else []
    return JournalFacts(min(terms, default=1), last, ballot, tuple(findings), terms, is_whole)


def _terms(found: list[Scanned]) -> dict[int, int]:
    return {
        scanned.contents.first + position: term
        for scanned in found
        for position, term in enumerate(scanned.contents.terms)
    }
