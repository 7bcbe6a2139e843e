"""Owns the samples of the replicated state: pools, nodes, events, as this member has them.

They are read in the threads for reads, a hundred pools at a time, and kept: however often somebody scrapes, reading for
him takes a twentieth of one thread at most, and holds no snapshot open for long.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ipamd.core.counts import Doubt, FamilyCounts
from ipamd.core.lost import is_silenced
from ipamd.core.model import Pool
from ipamd.core.ports import Snapshot, Unavailable
from ipamd.metrics.exposition import Sample, text_of
from ipamd.service.ports import Clock
from ipamd.service.reader import Reader

logger = logging.getLogger(__name__)

MOST_POOLS: Final = 2_000
"""So many pools are counted, the first by name: each has up to 24 series, and takes some tenths of a millisecond."""

FRESH_S: Final = 5.0
SPARED: Final = 20
"""A reading is kept this many times as long as it took, and `FRESH_S` at least."""

_CHUNK: Final = 100
_PATIENCE_S: Final = 30.0
_WAIT_S: Final = 3.0
"""So long a scrape waits for a new reading; then it gets the last one."""

FIRST_S: Final = 8.0
"""So long it waits where there is no last one: Prometheus gives a scrape 10 s unless told otherwise."""

_STATES: Final = ("bound", "held", "cooling", "quarantined", "withheld", "elsewhere", "free")
_NODE_STATES: Final = ("alive", "lost", "clash", "unknown")


class _Overview(NamedTuple):
    """What is read in one look: samples, and whose state it is."""

    samples: list[Sample]
    cluster_id: str | None


class _Counted(NamedTuple):
    """Some pools, with their counts and doubts where they are among the first; `last`: the last of them."""

    pools: int
    samples: list[Sample]
    suspects: frozenset[str]
    last: str | None


class StateMetrics:
    """The last reading, and the next. Used in one loop."""

    def __init__(self, reader: Reader, clock: Clock, most_pools: int = MOST_POOLS) -> None:
        self._reader, self._clock, self._most = reader, clock, most_pools
        self._text = b""
        self._fresh_until_s = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        self.cluster_id: str | None = None
        """Of the last reading."""

    async def text(self) -> bytes:
        """The last reading; a new one if the last is old and the new one is there soon. Empty: there is none yet."""
        if self._reading is None and self._clock.monotonic_s() >= self._fresh_until_s:
            self._reading = asyncio.create_task(self._read(), name="metrics")
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=_WAIT_S if self._text else FIRST_S)
        return self._text

    async def stop(self) -> None:
        """End a reading that is under way."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})

    async def _read(self) -> None:
        began_s = self._clock.monotonic_s()
        try:
            samples = await self._samples()
            took_s = self._clock.monotonic_s() - began_s
            samples.append(Sample("ipamd_state_read_timestamp_seconds", self._clock.wall_ms() / 1000))
            samples.append(Sample("ipamd_state_read_seconds", took_s))
            self._text = await asyncio.to_thread(text_of, samples)
        except Unavailable as error:
            logger.warning("the state could not be read for its metrics: %s", error.detail)
        finally:
            now_s = self._clock.monotonic_s()
            self._fresh_until_s = now_s + max(FRESH_S, SPARED * (now_s - began_s))
            self._reading = None

    async def _samples(self) -> list[Sample]:
        overview = (await self._reader.peek(_overview, _PATIENCE_S)).value
        self.cluster_id = overview.cluster_id
        samples, suspects, pools, after = overview.samples, set[str](), 0, ""
        while True:
            page = await self._counted(after, max(0, self._most - pools))
            samples += page.samples
            suspects |= page.suspects
            pools += page.pools
            if page.last is None:
                break
            after = page.last
        return [
            *samples,
            Sample("ipamd_pools", pools),
            Sample("ipamd_nodes_suspect", len(suspects)),
        ]

    async def _counted(self, after: str, most: int) -> _Counted:
        found = await self._reader.peek(lambda snapshot: _count(snapshot, after, most), _PATIENCE_S)
        return found.value


def _overview(snapshot: Snapshot) -> _Overview:
    return _Overview([*_nodes(snapshot), *_events(snapshot)], snapshot.cluster_id())


def _nodes(snapshot: Snapshot) -> Iterator[Sample]:
    states, conflicts, spooled = Counter[str](), 0, 0
    for node in snapshot.known_nodes():
        states[node.state] += 1
        conflicts += node.conflicts
        spooled += node.spooled
    for state in _NODE_STATES:
        yield Sample("ipamd_nodes", states[state], (state,))
    yield Sample("ipamd_mass_silence", is_silenced(snapshot))
    yield Sample("ipamd_nodes_conflicts", conflicts)
    yield Sample("ipamd_nodes_spooled_calls", spooled)
    yield Sample("ipamd_unclaimed_interfaces", snapshot.unclaimed_count())


def _events(snapshot: Snapshot) -> Iterator[Sample]:
    yield Sample("ipamd_events_last_index", snapshot.last_event)
    for oldest in snapshot.events(0, 1):
        yield Sample("ipamd_events_oldest_index", oldest.index)
        yield Sample("ipamd_events_oldest_timestamp_seconds", oldest.at_ms / 1000)


def _count(snapshot: Snapshot, after: str, most: int) -> _Counted:
    pools = snapshot.pools(after, _CHUNK)
    samples, suspects = list[Sample](), set[str]()
    for pool in pools[:most]:
        doubts = snapshot.doubts(pool)
        suspects |= {doubt.node for doubt in doubts if doubt.suspect}
        for family, counts in snapshot.counts(pool).items():
            samples += _pool(pool, family, counts, doubts)
    last = pools[-1].name if len(pools) == _CHUNK else None
    return _Counted(len(pools), samples, frozenset(suspects), last)


def _pool(pool: Pool, family: int, counts: FamilyCounts, doubts: Sequence[Doubt]) -> Iterator[Sample]:
    labels = (pool.name, pool.space, f"ipv{family}")
    yield Sample("ipamd_pool_usable_addresses", counts.total, labels)
    for state in _STATES:
        yield Sample("ipamd_pool_addresses", getattr(counts, state), (*labels, state))
    mine = [doubt for doubt in doubts if doubt.family == family]
    yield Sample("ipamd_pool_doubtful_addresses", sum(doubt.suspect for doubt in mine), (*labels, "suspect"))
    yield Sample("ipamd_pool_doubtful_addresses", sum(doubt.lost for doubt in mine), (*labels, "lost"))
