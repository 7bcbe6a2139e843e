"""Owns one simulated process: the real member on a simulated host, stepped in rounds as its thread would."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ipamd.consensus.failures import JournalFailed, StartRefused
from ipamd.consensus.intake import Waiter
from ipamd.consensus.journal import Journal
from ipamd.consensus.limits import Limits
from ipamd.consensus.peers import Beginning, Message
from ipamd.consensus.replica import Replica
from ipamd.core.model import Member
from ipamd.core.ports import Applied, LogEntry
from ipamd.storage.database import Database
from ipamd.storage.digest import machine_digest
from ipamd.storage.machine import SqliteMachine
from ipamd.storage.opening import open_database
from ipamd.storage.snapshot import SqliteState
from tests.consensus.simdisk import Crash
from tests.sim.answers import Outbound
from tests.sim.disk import JOURNAL, Storage
from tests.sim.laws import Laws, Violation
from tests.sim.network import Network, SimWire
from tests.sim.promises import Promises
from tests.sim.timeline import MemberClock, Timeline

TICK_S = 0.04
ROUND_S = 1e-4
APPLY_S = 2e-4
DIGEST_EVERY = 64
"""States are compared at indexes that this divides: members that stop there by chance are enough."""

LIMITS = Limits(
    tick_s=TICK_S,
    segment_bytes=2_000,
    cache_bytes=3_000,
    keep_entries=20,
    keep_bytes=1 << 20,
    apply_entries=16,
    batch_items=16,
    gather_s=0,  # the more entries are under way, the more can go wrong
    in_flight=256,
)


class Yard(Protocol):
    """What the processes of a run share."""

    timeline: Timeline
    network: Network
    laws: Laws

    def fell(self, process: Process) -> None:
        """A process died by itself."""

    def stops(self, process: Process) -> None:
        """A member that was removed stops."""

    def counts(self, process: Process) -> None:
        """A leader has taken in what its peers said of their journals."""

    def wants_snapshot(self, process: Process, leader: str) -> None:
        """A member needs the snapshot of a leader."""


class SimMachine(SqliteMachine):
    """The real state machine, watched: what it applies is compared, and it can be made to die around a transaction."""

    def __init__(self, database: Database, process: Process) -> None:
        super().__init__(database)
        self._process = process
        self.dies: str | None = None
        """`before` or `after`: the next transaction is where the process ends."""

    def apply(self, entries: Sequence[LogEntry]) -> list[Applied]:
        """Apply, and say what was applied."""
        self._process.clock.spend(APPLY_S * len(entries))
        if self.dies == "before":
            raise Crash
        outcomes = super().apply(entries)
        name, laws = self._process.name, self._process.yard.laws
        laws.applied(name, entries, outcomes)
        if self.applied[0] % DIGEST_EVERY == 0:
            laws.has_digest(name, self.applied[0], self.digest())
        if self.dies == "after":
            raise Crash
        return outcomes

    def checkpoint(self) -> int:
        """What is applied is on the platter."""
        durable = super().checkpoint()
        self._process.storage.keep_durable()
        return durable

    def digest(self) -> str:
        """Over all that decides what comes next."""
        return machine_digest(self._connection)


class Box(NamedTuple):
    """What a process is started on, and outlives it."""

    me: Member
    storage: Storage
    clock: MemberClock
    chance: random.Random
    promises: Promises


class Process:
    """A member from its start to its end."""

    def __init__(self, yard: Yard, box: Box, beginning: Beginning) -> None:
        """Raises Crash, Violation."""
        self.yard = yard
        self.name = box.me.name
        self.storage = box.storage
        self.clock = box.clock
        self.outbound = Outbound()
        self.stopped = False
        self.alive = True
        self.fetching = False
        self._promises = box.promises
        self._inbox: list[Callable[[], None]] = []
        self._busy_until_s = 0.0
        self._queued = False
        self._leads_in = 0
        self._database = open_database(self.storage.folder)
        self.machine = SimMachine(self._database, self)
        self.state = SqliteState(self._database)
        self.wire = SimWire(yard.network, self)
        self.replica = self._open(box, beginning)
        self.journal = self.replica._journal
        self._watch(self.journal)
        yard.timeline.after(ROUND_S, self._tick)

    def _open(self, box: Box, beginning: Beginning) -> Replica:
        try:
            return Replica(
                name=self.name,
                directory=JOURNAL,
                machine=self.machine,
                files=self.storage.files,
                clock=self.clock,
                chance=box.chance,
                limits=LIMITS,
                me=box.me,
                beginning=beginning,
                wire=self.wire,
            )
        except Crash:
            self.end(quiet=False)
            raise
        except (StartRefused, JournalFailed) as error:
            self.end(quiet=False)
            raise Violation(f"{self.name} does not start again: {error}") from error

    def _watch(self, journal: Journal) -> None:
        """What the process promised before it must be there; what it drops now is seen."""
        self._promises.check(journal)
        add, reset = journal.add, journal.reset

        def watched_add(command: bytes, idx: int, term: int) -> None:
            if journal.first <= idx <= journal.last and journal.term_at(idx) != term:
                self.yard.laws.seen["truncations"] += 1
                self._promises.truncates(idx)
            add(command, idx, term)

        def watched_reset(index: int, term: int) -> None:
            reset(index, term)
            self._promises.begins_anew(index, term)

        journal.add = watched_add  # type: ignore[method-assign]
        journal.reset = watched_reset  # type: ignore[method-assign]

    def sends(self, name: str, message: Message) -> None:
        """A message goes out."""
        self._promises.sends(name, message, self.journal)

    @property
    def leads(self) -> bool:
        """Whether it takes proposals."""
        return self.alive and self.replica.trouble is None

    def hear(self, act: Callable[[], None]) -> None:
        """Have something done in the next round, which comes at once."""
        if self.alive:
            self._inbox.append(act)
            self._wake()

    def put(self, waiter: Waiter) -> None:
        """Put somebody into the intake. Raises Unavailable."""
        self.replica.intake.put(waiter)
        self._wake()

    def pause(self) -> None:
        """Nothing in it runs; its host goes on."""
        self.stopped = True

    def go_on(self) -> None:
        """The end of a pause."""
        self.stopped = False
        if self.alive:
            self.wire.resume()
            self._wake()

    def end(self, *, quiet: bool) -> None:
        """It is gone."""
        if self.alive:
            self.alive = False
            self.wire.end(quiet=quiet)
            self.state.close()
            self._database.close()
            self.storage.killed()

    def _tick(self) -> None:
        if self.alive:
            self.yard.timeline.after(TICK_S, self._tick)
            self._wake()

    def _wake(self) -> None:
        if not self._queued and self.alive and not self.stopped:
            self._queued = True
            self.yard.timeline.at(self._busy_until_s, self._go_round)

    def _go_round(self) -> None:
        self._queued = False
        if not self.alive or self.stopped:
            return
        self.clock.begin(ROUND_S)
        try:
            more = self._work()
        except Crash:
            self.yard.fell(self)
            return
        except Violation:
            raise
        except Exception as error:  # the thread's boundary, where a member would ask to be ended
            raise Violation(f"{self.name} cannot go on: {type(error).__name__}: {error}") from error
        self._busy_until_s = self.clock.end()
        self.wire.flush(self._busy_until_s)
        for act in self.outbound.take():
            self.yard.timeline.at(self._busy_until_s, act)
        self._look()
        if more or self._inbox:
            self._wake()

    def _work(self) -> bool:
        inbox, self._inbox = self._inbox, []
        for act in inbox:
            act()
        return self.replica.step()

    def _look(self) -> None:
        """What the laws want to know after each round."""
        engine = self.replica._engine
        if engine.is_leader and self._leads_in != engine.term:
            self._leads_in = engine.term
            self.yard.laws.begins(self.name, engine.term)
        if engine.is_leader:
            self.yard.counts(self)
        wanted = self.replica.wanted_snapshot
        if wanted is not None:
            self.yard.wants_snapshot(self, wanted)
        if self.replica.removed is not None:
            self.yard.stops(self)
