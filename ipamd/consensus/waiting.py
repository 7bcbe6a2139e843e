"""Owns who waits for which entry of this member's, and how each wait ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ipamd.consensus.clock import Clock
from ipamd.consensus.failures import JournalFailed
from ipamd.consensus.figures import Figures
from ipamd.consensus.intake import Batch, Intake, Settled, Waiter, tell
from ipamd.consensus.records import Entry
from ipamd.core.ports import Answer, Applied, Unavailable


class _Carried(NamedTuple):
    """Who waits for an entry, the term it was made in, and when."""

    term: int
    batch: Batch
    at_s: float


class Waiting:
    """Those whose proposals and reads are in the log, but not applied; told once a round (`tell`)."""

    def __init__(self, intake: Intake, figures: Figures, clock: Clock) -> None:
        self._intake, self._figures, self._clock = intake, figures, clock
        self._carried: dict[int, _Carried] = {}
        self._settled: list[tuple[Waiter, Settled]] = []

    def carry(self, index: int, term: int, batch: Batch) -> None:
        """An entry carries these."""
        now_s = self._clock.monotonic_s()
        self._carried[index] = _Carried(term, batch, now_s)
        for waiter in batch.proposals:
            self._figures.queue_times.note(now_s - waiter.since_s)

    def applied(self, entries: Sequence[Entry], outcomes: Sequence[Applied]) -> None:
        """Entries were applied. Raises JournalFailed for outcomes of something else than was asked."""
        if not self._carried:
            return
        by_index: dict[int, list[Applied]] = {}
        for one in outcomes:
            by_index.setdefault(one.index, []).append(one)
        for _, index, term in entries:
            carried = self._carried.pop(index, None)
            if carried is not None:
                self._figures.log_times.note(self._figures.apply_began_s - carried.at_s)
                self._settled += _ends(carried, index, term, by_index.get(index, []))

    def refuse(self, waiters: Iterable[Waiter], sentence: str, retry_after_s: float = 1.0) -> None:
        """These get into no entry."""
        self._settled += [(waiter, Unavailable(sentence, "none", retry_after_s)) for waiter in waiters]

    def drop(self, last: int, sentence: str) -> None:
        """The entries behind `last` are gone from the journal and were sent to nobody."""
        for index in [index for index in self._carried if index > last]:
            self.refuse((waiter for part in self._carried.pop(index).batch for waiter in part), sentence)

    def fail(self, sentence: str) -> None:
        """What the entries came to will never be known here."""
        carried = [waiter for one in self._carried.values() for part in one.batch for waiter in part]
        self._carried.clear()
        self._settled += [(waiter, _lost(waiter, sentence)) for waiter in carried]

    def tell(self) -> None:
        """Last in a round: whoever is told sees a status that is not older than what it was told."""
        if self._settled:
            settled, self._settled = self._settled, []
            self._intake.release(len(settled))
            tell(settled, self._clock.monotonic_s())


def _lost(waiter: Waiter, sentence: str) -> Unavailable:
    return Unavailable(sentence, "none" if waiter.item is None else "unknown")


def _ends(carried: _Carried, index: int, term: int, outcomes: list[Applied]) -> list[tuple[Waiter, Settled]]:
    """How the wait for an entry ended, for each who waited. Raises JournalFailed for answers to something else."""
    batch = carried.batch
    if carried.term != term:
        sentence = "another leader's entry took the place of this one"
        return [(waiter, Unavailable(sentence, "none")) for part in batch for waiter in part]
    asked = [waiter.item.op for waiter in batch.proposals if waiter.item is not None]
    if asked != [applied.op for applied in outcomes]:
        raise JournalFailed(f"the state machine answered entry {index} with outcomes of other commands")
    answers: list[tuple[Waiter, Settled]] = [
        (waiter, Answer(index, applied.outcome)) for waiter, applied in zip(batch.proposals, outcomes, strict=True)
    ]
    return answers + [(reader, index) for reader in batch.readers]
