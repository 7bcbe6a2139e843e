"""Owns one member of the log without a thread: what waits becomes entries, and what was applied becomes answers.

A thread (node.py) or a simulation calls `step`; everything but `intake` and `status` belongs to the caller of it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ipamd.consensus.clock import Chance, Clock
from ipamd.consensus.engine import Engine
from ipamd.consensus.failures import JournalFailed, JournalFull, StartRefused
from ipamd.consensus.figures import Figures
from ipamd.consensus.files import Files
from ipamd.consensus.intake import Batch, Intake, Settled, Waiter, tell
from ipamd.consensus.journal import Journal
from ipamd.consensus.limits import Limits
from ipamd.consensus.logclock import LogClock
from ipamd.consensus.records import Entry
from ipamd.consensus.transport import LoneTransport
from ipamd.core.entries import encode_entry
from ipamd.core.ports import Answer, Applied, LogStatus, StateMachine, Unavailable

logger = logging.getLogger(__name__)


class _Carried(NamedTuple):
    """Who waits for an entry of this member's, and the term it was made in."""

    term: int
    batch: Batch


class Replica:
    """One member."""

    def __init__(
        self,
        *,
        name: str,
        directory: Path,
        machine: StateMachine,
        files: Files,
        clock: Clock,
        chance: Chance,
        limits: Limits,
        retryable: tuple[type[Exception], ...] = (),
    ) -> None:
        """Raises StartRefused, JournalFailed."""
        self.figures = Figures()
        self.intake = Intake(limits.batch_items, limits.in_flight)
        self.trouble: str | None = "this member has not begun to lead"
        """Why nothing can be proposed here at the moment, as a sentence; None: it can."""

        self._machine = machine
        self._directory = directory
        self._files = files
        self._clock = clock
        self._limits = limits
        self._retryable = retryable
        self._log_clock = LogClock(clock)
        self._carried: dict[int, _Carried] = {}
        self._settled: list[tuple[Waiter, Settled]] = []
        self._leading_term: int | None = None
        self._full: str | None = None
        self._look_at_s = 0.0
        self._journal = self._open_journal()
        self._engine = Engine(
            name=name,
            peers=(),
            journal=self._journal,
            machine=machine,
            transport=LoneTransport(),
            clock=clock,
            chance=chance,
            limits=limits,
            figures=self.figures,
            on_applied=self._answer,
            retryable=retryable,
        )
        self._begin()
        self._status = self._new_status()

    @property
    def status(self) -> LogStatus:
        """What this member knows, as of its last step; the log clock as of now. Any thread may ask."""
        status = self._status
        return status._replace(log_ms=self._log_clock.log_ms()) if self.trouble is None else status

    def step(self) -> bool:
        """One round: take in what waits, sync it, let Raft act. Whether another round is due at once."""
        try:
            self._look_for_room()
            self._take_in()
            more = self._engine.tick()
        except JournalFull as error:
            self._give_up(str(error))
            more = False
        self._observe()
        self._tell()
        return more

    def abandon(self, sentence: str) -> None:
        """Take in nothing any more, and tell everybody who waits: this member must stop."""
        self.trouble = sentence
        self.intake.close(sentence)
        self.fail_all(sentence)

    def fail_all(self, sentence: str) -> None:
        """Nothing that is under way will be answered any more."""
        waiting = self.intake.take_all()
        carried = [waiter for one in self._carried.values() for part in one.batch for waiter in part]
        self._carried.clear()
        self._settle([(waiter, Unavailable(sentence, "none")) for waiter in waiting])
        self._settle([(waiter, _lost(waiter, sentence)) for waiter in carried])
        self._tell()

    def close(self) -> None:
        """Hand over, sync and close; the state machine too. Raises JournalFull, JournalFailed."""
        self._engine.hand_over()
        self._journal.close()
        try:
            self._machine.checkpoint()
        except self._retryable as error:
            logger.warning("stopped without a checkpoint, the next start takes a little longer: %s", error)
        self._machine.close()

    def _open_journal(self) -> Journal:
        try:
            return Journal(self._directory, self._files, self._limits, self._clock, self.figures)
        except OSError as error:
            raise StartRefused(f"the journal in {self._directory} cannot be opened: {error}") from error

    def _begin(self) -> None:
        """Put the first entry of a new journal on the disk: from here on a journal is never empty."""
        try:
            self._journal.sync()
        except JournalFull as error:
            raise StartRefused(f"{error}: make room first") from error

    def _take_in(self) -> None:
        if self.trouble is not None:
            self._settle([(waiter, Unavailable(self.trouble, "none")) for waiter in self.intake.take_all()])
            return
        batch = self.intake.take()
        if batch is None:
            return
        items = [waiter.item for waiter in batch.proposals if waiter.item is not None]
        index, term = self._engine.append(encode_entry(self._log_clock.stamp(), items))
        self._carried[index] = _Carried(term, batch)
        self.figures.entries += 1
        self.figures.items += len(items)

    def _answer(self, entries: Sequence[Entry], outcomes: Sequence[Applied]) -> None:
        """Called when entries were applied: tell those who wait for them."""
        if not self._carried:
            return
        by_index: dict[int, list[Applied]] = {}
        for applied in outcomes:
            by_index.setdefault(applied.index, []).append(applied)
        settled: list[tuple[Waiter, Settled]] = []
        for _, index, term in entries:
            carried = self._carried.pop(index, None)
            if carried is not None:
                settled += _ends(carried, index, term, by_index.get(index, []))
        self._settle(settled)

    def _settle(self, settled: Sequence[tuple[Waiter, Settled]]) -> None:
        self._settled += settled

    def _tell(self) -> None:
        """Last in a round: whoever is told sees a status that is not older than what it was told."""
        if self._settled:
            settled, self._settled = self._settled, []
            self.intake.release(len(settled))
            tell(settled)

    def _give_up(self, sentence: str) -> None:
        """The journal found no room: who waits for what it dropped is told that nothing was changed."""
        logger.error("%s: nothing is proposed until there is", sentence)
        self.figures.full += 1
        self._full = sentence
        self._look_at_s = self._clock.monotonic_s() + self._limits.retry_s
        self._engine.step_down()
        dropped = [index for index in self._carried if index > self._journal.last]
        gone = [waiter for index in dropped for part in self._carried.pop(index).batch for waiter in part]
        self._settle([(waiter, Unavailable(sentence, "none")) for waiter in gone])

    def _look_for_room(self) -> None:
        if self._full is None or self._clock.monotonic_s() < self._look_at_s:
            return
        self._look_at_s = self._clock.monotonic_s() + self._limits.retry_s
        room = self._files.room(self._directory)
        if room.free_bytes >= min(self._limits.room_bytes, room.total_bytes // 16):
            logger.warning("there is room for the journal in %s again", self._directory)
            self._full = None
            self._engine.hasten()

    def _observe(self) -> None:
        """See what changed: whether this member leads, what it has applied."""
        engine = self._engine
        if not engine.leads:
            self._leading_term = None
        elif self._leading_term != engine.term:
            self._leading_term = engine.term
            self.figures.elections += 1
            self._log_clock.lead(self._machine.log_ms, self._machine.wall_ms)
        seen = (engine.leader, engine.leads, engine.term, engine.applied, engine.committed)
        if seen != self._status[: len(seen)]:
            self._status = self._new_status()
        self.trouble = self._new_trouble()

    def _new_trouble(self) -> str | None:
        if self._full is not None:
            return self._full
        if self._engine.stalled is not None:
            return self._engine.stalled
        return None if self._leading_term is not None else "there is no leader at the moment"

    def _new_status(self) -> LogStatus:
        engine = self._engine
        return LogStatus(
            leader=engine.leader,
            is_leader=engine.leads,
            term=engine.term,
            applied=engine.applied,
            committed=engine.committed,
            log_ms=self._machine.log_ms,
            next_due_log_ms=self._machine.next_due_log_ms,
        )


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
