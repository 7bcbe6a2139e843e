"""Owns one run: hosts, network, pods and readers on one timeline, from one seed, and what it all comes to."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from ipamd.consensus import compaction
from ipamd.consensus.peers import Alone, Beginning, Gather
from ipamd.core.commands import CreatePool, Expire, Found, Origin, encode_command
from ipamd.core.entries import OP_BYTES, Item
from ipamd.core.model import Member, PoolDefinition, Settings
from ipamd.core.ports import Answer, ReservationFilter
from ipamd.storage.digest import digest
from ipamd.storage.records import SqliteRecords
from tests.cluster.checker import Rules, check
from tests.core.world import range_of
from tests.sim.answers import End, Outbound, Promise, waiter
from tests.sim.callers import Request
from tests.sim.disk import playground
from tests.sim.faults import Faults
from tests.sim.fetching import fetch
from tests.sim.host import Host
from tests.sim.laws import Laws, Violation
from tests.sim.member import Process
from tests.sim.moves import Moves
from tests.sim.network import Network
from tests.sim.pods import LIMIT_S, POOL, Pod
from tests.sim.timeline import Timeline
from tests.support.history import History, Read, Shown

SUBNET, GATEWAY = "10.0.0.0/28", "10.0.0.14"
COOLDOWN_S, TOMBSTONE_S = 2, 20
PODS, NODES = 12, 3
WORK_S, CALM_S, SETTLE_S = 13.0, 3.0, 3.0
KEEP_HOUSE_S = 0.25
COMPACTION_S = 0.2
"""A run is short: the journal is trimmed as soon as there is anything to trim."""


class Result(NamedTuple):
    """What a run came to."""

    seed: int
    members: int
    violation: str | None
    seen: dict[str, int]
    trace: str
    took_s: float = 0.0
    """Time of one core."""


class World:
    """A run. `members` hosts make the cluster at its start."""

    def __init__(self, seed: int, folder: Path, members: int | None = None, only: tuple[str, ...] = ()) -> None:
        self.seed = seed
        self.folder = folder
        self.chance = random.Random(f"{seed} world")
        self.size = members or self.chance.choice((1, 3, 3, 3, 3, 5))
        self.timeline = Timeline()
        self.network = Network(self.timeline, seed)
        self.laws = Laws()
        self.history = History()
        self._host_number = 0
        names = [f"n{number}" for number in range(1, self.size + 1)]
        peers = tuple(Member(name, "", name, name) for name in names)
        self.hosts = {name: self.new_host(name, Gather(peers) if self.size > 1 else Alone()) for name in names}
        self.retired: list[Host] = []
        self.pods = [self._pod(number) for number in range(PODS)]
        self.moves = Moves(self)
        self.faults = Faults(self, only)
        self.calm = False
        self.quiet = False

    def run(self) -> None:
        """The whole run. Raises Violation."""
        for host in self.hosts.values():
            host.start()
        self._found()
        for pod in self.pods:
            pod.live()
        self._keep_house()
        self._read()
        self.faults.begin()
        self.timeline.run(self.timeline.now_s + WORK_S)
        self._calm_down()
        self._judge()

    # What processes, requests and pods need

    def fell(self, process: Process) -> None:
        """A process died by itself: at a step of its disk, or around a transaction."""
        self.laws.seen["falls"] += 1
        process.end(quiet=False)
        host = self.hosts.get(process.name)
        if host is not None and host.process is process:
            self.faults.restart_later(host)

    def stops(self, process: Process) -> None:
        """A member that was removed stops; who was not removed must not."""
        host = self.hosts.get(process.name)
        if host is not None and host.process is process:
            if process.name not in self.moves.asked_to_go:
                raise Violation(f"{process.name} stops, and nobody removed it: {process.replica.removed}")
            self.retire(process.name)
        process.end(quiet=False)

    def counts(self, process: Process) -> None:
        """What a leader takes for granted of a peer's journal, the peer has, on its disk."""
        engine, journal = process.replica._engine, process.journal
        for name in engine._raft.voters:
            peer, match = self.process(name), engine.match_index(name)
            if peer is None or not peer.alive or peer.replica._engine.term > engine.term or match <= 1:
                continue
            has = peer.journal
            if match > has.durable or (
                match >= max(has.first, journal.first) and has.term_at(match) != journal.term_at(match)
            ):
                raise Violation(f"{process.name} counts index {match} of {name}, whose journal does not have it")

    def wants_snapshot(self, process: Process, leader: str) -> None:
        """A member fetches a snapshot of the leader's, out of band."""
        fetch(self, process, leader)

    def new_host(self, name: str, beginning: Beginning = Alone()) -> Host:  # noqa: B008 - a value without parts
        """A new machine."""
        self._host_number += 1
        return Host(self, name, self._host_number, beginning)

    def retire(self, name: str) -> None:
        """A member is none any more: its process stops by itself, or is ended after a while."""
        host = self.hosts.pop(name, None)
        if host is not None:
            self.retired.append(host)
            self.timeline.after(3.0, host.lose_data)

    def members_at(self, index: int) -> tuple[Member, ...]:
        """The members, as somebody knows them who has applied an index."""
        return next((one.replica.members for one in self.running() if one.machine.applied[0] >= index), ())

    def running(self) -> Sequence[Process]:
        """The processes that answer now."""
        return [host.process for host in self.hosts.values() if host.process and host.up and not host.process.stopped]

    def process(self, name: str) -> Process | None:
        """The process of a member."""
        host = self.hosts.get(name)
        return host.process if host else None

    def ask(self, item: Item | None, limit_s: float, ended: Callable[[End], None]) -> None:
        """Make a request."""
        Request(self, self.chance, item, limit_s, ended)

    # How a run goes

    def _pod(self, number: int) -> Pod:
        chance = random.Random(f"{self.seed} pod {number}")
        return Pod(self, f"ns/p{number}", f"node{number % NODES}", chance, chance.uniform(0.3, 1.5))

    def _found(self) -> None:
        """Found the cluster, with a small pool."""
        origin = Origin("sim", "found")
        settings = Settings(cooldown_s=COOLDOWN_S, tombstone_s=TOMBSTONE_S)
        pool = PoolDefinition(POOL, ((range_of(SUBNET, gateway=GATEWAY),),))
        self._wait_for_leader()
        (leader,) = [process for process in self.running() if process.leads]
        for command in (Found(origin, "cluster", settings, leader.replica.members), CreatePool(origin, pool)):
            ends: list[End] = []
            self.ask(Item(self.chance.randbytes(OP_BYTES), encode_command(command)), 20.0, ends.append)
            until_s = self.timeline.now_s + 20.0
            while not ends and self.timeline.now_s < until_s:
                self.timeline.run(self.timeline.now_s + 0.1)
            if not ends or not isinstance(ends[0], Answer):
                raise Violation(f"no cluster of {self.size} came about: {ends}")

    def _wait_for_leader(self) -> None:
        until_s = self.timeline.now_s + 20.0
        while not any(process.leads for process in self.running()):
            if self.timeline.now_s > until_s:
                raise Violation(f"{self.size} members found no leader")
            self.timeline.run(self.timeline.now_s + 0.1)

    def _keep_house(self) -> None:
        """The leader ends what is due, as its service does."""
        if self.quiet:
            return
        self.timeline.after(KEEP_HOUSE_S, self._keep_house)
        for process in self.running():
            status = process.replica.status
            due = status.next_due_log_ms
            if status.is_leader and due is not None and due <= status.log_ms and process.leads:
                item = Item(self.chance.randbytes(OP_BYTES), encode_command(Expire(Origin("system", ""))))
                process.put(waiter(item, Outbound(), Promise(lambda _end: None)))

    def _read(self) -> None:
        """A reader asks the leader how far it must be, waits for some member to be there, and lists."""
        if self.quiet:
            return
        self.timeline.after(self.chance.expovariate(2), self._read)
        called_s = self.timeline.now_s
        self.ask(None, LIMIT_S, lambda end: self._read_on(end, called_s, self.timeline.now_s + LIMIT_S))

    def _read_on(self, end: End, called_s: float, until_s: float) -> None:
        if not isinstance(end, int) or self.timeline.now_s > until_s:
            return
        ready = [one for one in self.running() if one.replica.status.applied >= end]
        if not ready:
            self.timeline.after(0.05, lambda: self._read_on(end, called_s, until_s))
            return
        process = self.chance.choice(ready)
        held = holders(process)
        self.laws.seen["reads"] += 1
        self.history.reads.append(Read(called_s, self.timeline.now_s, held, f"a list of {process.name}"))

    def _calm_down(self) -> None:
        """No fault any more: within a while all must agree. First pods go on, then nothing is asked for."""
        self.calm = True
        self.faults.end()
        self.timeline.run(self.timeline.now_s + CALM_S)
        self.moves.settle()
        for pod in self.pods:
            pod.active = False
        self.timeline.run(self.timeline.now_s + SETTLE_S)
        self.quiet = True
        until_s = self.timeline.now_s + SETTLE_S
        while self.timeline.now_s < until_s and len({one.machine.applied for one in self.running()}) != 1:
            self.timeline.run(self.timeline.now_s + 0.2)

    def _judge(self) -> None:
        """The end: one leader, everybody at one index with one state, which the specification has too."""
        running = self.running()
        leaders = [process for process in running if process.leads]
        if len(leaders) != 1:
            names = [process.name for process in leaders]
            raise Violation(f"the leaders are {names} after {CALM_S + SETTLE_S} s without a fault")
        members = {member.name for member in leaders[0].replica.members}
        where = {process.name: process.machine.applied[0] for process in running}
        if set(where) != members or len(set(where.values())) != 1:
            raise Violation(f"members {sorted(members)} do not come to one index without a fault: {where}")
        reference = self.laws.reference(leaders[0].machine.applied[0])
        for process in running:
            self.laws.has_digest(process.name, process.machine.applied[0], process.machine.digest())
            with process.state.snapshot() as snapshot:
                records = digest(SqliteRecords(snapshot.connection))
            if records != reference:
                raise Violation(f"{process.name} is in another state than the specification comes to")
        for pod in self.pods:
            if pod.open is not None:
                self.history.note(pod.open)
        final = {process.name: holders(process) for process in running}
        broken = check(self.history, Rules(SUBNET, frozenset({GATEWAY})), final)
        if broken:
            raise Violation("; ".join(broken[:3]))


def holders(process: Process) -> dict[str, Shown]:
    """Who holds what in a member's own state."""
    with process.state.snapshot() as snapshot:
        rows = snapshot.reservations(ReservationFilter(pool=POOL), None, 1000)
    held = {}
    for row in rows:
        (one,) = row.held
        owner = one.attachment.owner
        held[row.reservation.pod_ref] = Shown(owner.container_id if owner else None, str(one.addresses[0].address))
    return held


def simulate(seed: int, members: int | None = None, only: tuple[str, ...] = ()) -> Result:
    """One run from one seed; `only`: the kinds of faults, where the seed is not to choose."""
    with playground() as folder, patch.object(compaction, "PAUSE_S", COMPACTION_S):
        world = World(seed, folder, members, only)
        violation = None
        try:
            world.run()
        except Violation as error:
            violation = str(error)
        finally:
            for host in (*world.hosts.values(), *world.retired):
                host.kill()
        world.laws.seen["acknowledged"] = world.history.acknowledged
        return Result(seed, world.size, violation, dict(world.laws.seen), world.laws.trace)
