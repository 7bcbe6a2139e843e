"""Owns the set of use cases, made once at start and handed to the API whole."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Self

from ipamd.core.ports import Log, State
from ipamd.service.addresses import Addresses
from ipamd.service.allocation import Allocation
from ipamd.service.answers import Answers
from ipamd.service.backups import Backups
from ipamd.service.calls import Calls
from ipamd.service.cluster import Cluster
from ipamd.service.collection import Collection
from ipamd.service.events import Events
from ipamd.service.exhaustion import Exhaustion
from ipamd.service.feed import Feed
from ipamd.service.firstreport import FirstReport
from ipamd.service.heartbeats import Heartbeats
from ipamd.service.hostfiles import HostFiles
from ipamd.service.housekeeping import Housekeeping
from ipamd.service.imports import Imports
from ipamd.service.inside import Inside
from ipamd.service.nodes import Nodes
from ipamd.service.notices import Notices
from ipamd.service.past import Past
from ipamd.service.pools import Pools
from ipamd.service.ports import (
    Clock,
    Exposition,
    Facts,
    Namespaces,
    NoExposition,
    NoPeers,
    NoRecords,
    Peers,
    Random,
    Records,
    Texts,
)
from ipamd.service.proposer import Proposer
from ipamd.service.reader import Reader
from ipamd.service.recorded import read_recorded
from ipamd.service.refusals import Refusals
from ipamd.service.rehearsal import Rehearsal
from ipamd.service.reservations import Reservations
from ipamd.service.sandboxes import Sandboxes
from ipamd.service.settings import Settings
from ipamd.service.spooling import Spooling
from ipamd.service.tokens import Tokens
from ipamd.service.tokenuse import TokenUse
from ipamd.service.watch import Watch
from ipamd.service.why import Why

_NO_PEERS = NoPeers()
_NO_RECORDS = NoRecords()
_NO_EXPOSITION = NoExposition()


@dataclass(frozen=True)
class Services:
    """All use cases of this process, and what the API needs of the machine beside them."""

    log: Log
    clock: Clock
    random: Random
    sandboxes: Sandboxes
    files: HostFiles
    notices: Notices
    facts: Facts
    allocation: Allocation
    collection: Collection
    pools: Pools
    reservations: Reservations
    addresses: Addresses
    nodes: Nodes
    cluster: Cluster
    first_report: FirstReport
    events: Events
    feed: Feed
    past: Past
    settings: Settings
    tokens: Tokens
    token_use: TokenUse
    why: Why
    rehearsal: Rehearsal
    calls: Calls
    housekeeping: Housekeeping
    imports: Imports
    watch: Watch
    reader: Reader
    refusals: Refusals
    answers: Answers
    inside: Inside | None = None
    """What other members may ask of this one; None: it meets none."""

    spooling: Spooling | None = None
    """The DELs that wait for the cluster; None: a DEL waits itself."""

    backups: Backups | None = None
    """None: this process has no state of its own."""

    exposition: Exposition = _NO_EXPOSITION

    @classmethod
    def assemble(
        cls,
        log: Log,
        state: State,
        *,
        clock: Clock,
        random: Random,
        namespaces: Namespaces,
        texts: Texts,
        facts: Facts,
        peers: Peers = _NO_PEERS,
        inside: Inside | None = None,
        spooling: Spooling | None = None,
        heartbeats: Heartbeats | None = None,
        records: Records = _NO_RECORDS,
    ) -> Self:
        """Make the use cases over a log and a state; `inside` None: no other members. Nothing runs before `start`."""
        proposer, reader = Proposer(log, clock, random), Reader(log, state, clock)
        events = Events(proposer, reader)
        collection = Collection(proposer, reader, namespaces)
        first_report = FirstReport(reader, facts)
        heartbeats = heartbeats or Heartbeats(clock)
        token_use = TokenUse(log, proposer, reader, clock)
        return cls(
            log=log,
            clock=clock,
            random=random,
            sandboxes=Sandboxes(namespaces, records, lambda data: read_recorded(data, facts.node, facts.cluster)),
            files=HostFiles(texts),
            notices=Notices(),
            facts=facts,
            allocation=Allocation(proposer, reader, Exhaustion(reader, clock), first_report),
            collection=collection,
            pools=Pools(proposer, reader, collection, clock),
            reservations=Reservations(reader),
            addresses=Addresses(proposer, reader),
            nodes=Nodes(proposer, reader, collection, facts, log=log, peers=peers, heartbeats=heartbeats),
            cluster=Cluster(
                proposer, reader, first_report, log=log, clock=clock, facts=facts, peers=peers, inside=inside
            ),
            first_report=first_report,
            events=events,
            feed=Feed(reader, events, log),
            past=Past(reader, clock),
            settings=Settings(proposer, reader),
            tokens=Tokens(proposer, reader, log, clock, random=random, use=token_use),
            token_use=token_use,
            why=Why(reader, clock),
            rehearsal=Rehearsal(reader, clock),
            calls=Calls(),
            housekeeping=Housekeeping(log, proposer, clock),
            imports=Imports(proposer, reader, random),
            watch=Watch(log, proposer, reader, collection, heartbeats=heartbeats, clock=clock),
            reader=reader,
            refusals=Refusals(),
            answers=Answers(),
            inside=inside,
            spooling=spooling,
        )

    def applied(self) -> int:
        """The index up to which this member has applied the log."""
        return self.log.status().applied

    async def start(self) -> None:
        """Begin what runs beside the requests. Called in the HTTP loop's thread."""
        self.housekeeping.start()
        self.watch.start()
        self.token_use.start()

    async def stop(self) -> None:
        """End that, and wait for reads that are under way."""
        await self.token_use.stop()
        await self.watch.stop()
        await self.housekeeping.stop()
        await asyncio.to_thread(self.reader.close)
