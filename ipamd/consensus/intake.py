"""Owns what waits to get into the log: proposals and readers, put in by any thread, taken out by the Raft thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ipamd.core.commands import is_configuration
from ipamd.core.entries import MAX_ENTRY_BYTES, OP_BYTES, Item, Stamp, encode_entry
from ipamd.core.ports import Answer, Unavailable

ENTRY_BYTES = len(encode_entry(Stamp(0, 0), ()))
"""What an entry takes besides its items."""

Settled = Answer | int | Unavailable
"""How a wait ends: a proposal's answer, a reader's index, or why there is none."""


@dataclass(slots=True, eq=False)
class Waiter:
    """Somebody who waits. `item` None: a reader. `taken`: an entry carries it, so it may take effect.

    `since_s`, `told_s`: since when, and when the Raft thread told how it ended, on the monotonic clock.
    """

    item: Item | None
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Answer | int]
    taken: bool = False
    withdrawn: bool = False
    since_s: float = 0.0
    told_s: float = 0.0
    changes_members: bool = field(init=False)
    """Whether it proposes a change of the members."""

    def __post_init__(self) -> None:
        self.changes_members = self.item is not None and is_configuration(self.item.command)

    def settle(self, settled: Settled) -> None:
        """Tell it; only in its own loop. Whoever stopped waiting is not told."""
        if self.future.done():
            return
        if isinstance(settled, Unavailable):
            self.future.set_exception(settled)
        else:
            self.future.set_result(settled)


class Batch(NamedTuple):
    """What one entry carries: proposals in order, and readers that wait for whatever was acknowledged before."""

    proposals: list[Waiter]
    readers: list[Waiter]


@dataclass(slots=True)
class _Waiting:
    proposals: deque[Waiter] = field(default_factory=deque)
    readers: list[Waiter] = field(default_factory=list)


class Intake:
    """A bounded queue. What was put in is in flight until it is released."""

    def __init__(self, batch_items: int, in_flight: int) -> None:
        self._batch_items = batch_items
        self._limit = in_flight
        self._lock = threading.Lock()
        self._waiting = _Waiting()
        self._in_flight = 0
        self._closed: str | None = None

    @property
    def in_flight(self) -> int:
        """How many wait or are under way."""
        return self._in_flight

    @property
    def waiting(self) -> bool:
        """Whether anybody waits to get into an entry."""
        return bool(self._waiting.proposals or self._waiting.readers)

    def put(self, waiter: Waiter) -> None:
        """Queue somebody. Raises Unavailable (nothing was changed) when too many wait or it is closed."""
        with self._lock:
            if self._closed is not None:
                raise Unavailable(self._closed, "none")
            if self._in_flight >= self._limit:
                raise Unavailable(f"{self._limit} requests are under way already", "none")
            self._in_flight += 1
            if waiter.item is None:
                self._waiting.readers.append(waiter)
            else:
                self._waiting.proposals.append(waiter)

    def withdraw(self, waiter: Waiter) -> bool:
        """Whether it was still waiting, and now surely gets into no entry."""
        with self._lock:
            if waiter.taken or waiter.withdrawn:
                return waiter.withdrawn
            waiter.withdrawn = True
            self._in_flight -= 1
            return True

    def take(self) -> Batch | None:
        """What the next entry carries: as much as waits, up to an entry's size; None: nothing waits."""
        with self._lock:
            proposals, readers = self._take_proposals(), self._take_readers()
        return Batch(proposals, readers) if proposals or readers else None

    def take_all(self) -> list[Waiter]:
        """Everybody who waits: they get into no entry."""
        with self._lock:
            waiting, self._waiting = self._waiting, _Waiting()
            found = [waiter for waiter in (*waiting.proposals, *waiting.readers) if not waiter.withdrawn]
            for waiter in found:
                waiter.taken = True
            return found

    def release(self, count: int) -> None:
        """So many are in flight no longer."""
        with self._lock:
            self._in_flight -= count

    def close(self, sentence: str) -> None:
        """Take in nobody any more; the sentence says why."""
        with self._lock:
            self._closed = sentence

    def _take_proposals(self) -> list[Waiter]:
        waiting, size_bytes = self._waiting.proposals, ENTRY_BYTES
        found: list[Waiter] = []
        while waiting and len(found) < self._batch_items:
            waiter = waiting[0]
            if not waiter.withdrawn and waiter.item is not None:
                size_bytes += waiter.item.size_bytes
                if found and size_bytes > MAX_ENTRY_BYTES:
                    break
                waiter.taken = True
                found.append(waiter)
            waiting.popleft()
        return found

    def _take_readers(self) -> list[Waiter]:
        readers, self._waiting.readers = self._waiting.readers, []
        found = [reader for reader in readers if not reader.withdrawn]
        for reader in found:
            reader.taken = True
        return found


def check_size(item: Item) -> None:
    """Raises ValueError for an item that no entry can carry."""
    if len(item.op) != OP_BYTES or len(item.fingerprint) > 0xFF:
        raise ValueError(f"an op id has {OP_BYTES} bytes and a fingerprint up to 255")
    if ENTRY_BYTES + item.size_bytes > MAX_ENTRY_BYTES:
        raise ValueError(f"a command of {len(item.command)} bytes does not fit into an entry of {MAX_ENTRY_BYTES}")


def tell(settled: Iterable[tuple[Waiter, Settled]], now_s: float) -> None:
    """Tell waiters how it ended, with one wake-up of each loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Waiter, Settled]]] = {}
    for waiter, end in settled:
        waiter.told_s = now_s
        by_loop.setdefault(waiter.loop, []).append((waiter, end))
    for loop, pairs in by_loop.items():
        with contextlib.suppress(RuntimeError):  # a loop that was closed: nobody waits there any more
            loop.call_soon_threadsafe(_settle, pairs)


def _settle(pairs: list[tuple[Waiter, Settled]]) -> None:
    for waiter, end in pairs:
        waiter.settle(end)
