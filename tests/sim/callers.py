"""Owns who calls: a request that finds the leader and asks again under its op id, as every member's routing does."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Protocol

from ipamd.consensus.intake import Waiter
from ipamd.core.entries import Item
from ipamd.core.ports import Answer, Unavailable
from tests.sim.answers import End, Promise, waiter
from tests.sim.laws import Laws
from tests.sim.member import Process
from tests.sim.network import Network
from tests.sim.timeline import Timeline

TRY_S = 0.8
"""How long a try is waited for."""

AGAIN_S = 0.1


class Site(Protocol):
    """Where requests are made."""

    timeline: Timeline
    network: Network
    laws: Laws

    def running(self) -> Sequence[Process]:
        """The processes that answer callers now."""

    def process(self, name: str) -> Process | None:
        """The process of a member, if there is one."""


class Request:
    """One command, or (no item) one barrier, until its end is known or its time is over."""

    def __init__(
        self, site: Site, chance: random.Random, item: Item | None, limit_s: float, ended: Callable[[End], None]
    ) -> None:
        self._site = site
        self._chance = chance
        self._item = item
        self._ended: Callable[[End], None] | None = ended
        self._until_s = site.timeline.now_s + limit_s
        self._number = 0
        self._open: set[int] = set()
        """Tries that may still be carried out, by their number."""

        self._newest_before = site.laws.newest_acknowledged
        self._try()

    def _try(self) -> None:
        """Ask some member, which passes it on to the leader that it knows."""
        self._number += 1
        if self._ended is None:
            return
        if self._site.timeline.now_s >= self._until_s:
            self._finish(Unavailable("no answer in time", "unknown" if self._open else "none"))
            return
        running = self._site.running()
        entry = self._chance.choice(running) if running else None
        leader = self._site.process(entry.replica.status.leader or "") if entry else None
        if entry is None or leader is None or not leader.alive:
            self._site.timeline.after(AGAIN_S, self._try)
            return
        self._open.add(self._number)
        self._pass_on(entry, leader, self._number)

    def _pass_on(self, entry: Process, leader: Process, number: int) -> None:
        promise = Promise(lambda end: self._reply(entry, leader, number, end))
        one = waiter(self._item, leader.outbound, promise)
        self._site.timeline.after(TRY_S, lambda: self._give_up(leader, one, promise, number))
        if entry is not leader and not self._site.network.passes(entry.name, leader.name):
            return
        delay_s = self._site.network.delay_s(entry.name, leader.name)
        self._site.timeline.after(delay_s, lambda: leader.hear(lambda: self._arrive(leader, one, promise)))

    def _arrive(self, leader: Process, one: Waiter, promise: Promise) -> None:
        if leader.replica.trouble is not None:
            promise.set_exception(Unavailable(leader.replica.trouble, "none"))
            return
        try:
            leader.put(one)
        except Unavailable as error:
            promise.set_exception(error)

    def _reply(self, entry: Process, leader: Process, number: int, end: End) -> None:
        """The leader's answer goes back the way the request came."""
        if isinstance(end, Answer) and self._item is not None:
            self._site.laws.acknowledged(end.index, self._item.op)
        if entry is not leader and not self._site.network.passes(leader.name, entry.name):
            return
        delay_s = self._site.network.delay_s(leader.name, entry.name)
        self._site.timeline.after(delay_s, lambda: self._hear(entry, number, end))

    def _hear(self, entry: Process, number: int, end: End) -> None:
        if self._ended is None or not entry.alive:
            return
        if not isinstance(end, Unavailable):
            if isinstance(end, int):
                self._site.laws.read(end, self._newest_before)
            self._finish(end)
        else:
            if end.outcome == "none":
                self._open.discard(number)
            if number == self._number:
                self._site.timeline.after(AGAIN_S, self._try)
                self._number += 1

    def _give_up(self, leader: Process, one: Waiter, promise: Promise, number: int) -> None:
        """The try was waited for long enough: the server's own limit ends it there, if the server runs."""
        if leader.alive and not leader.stopped and not promise.done() and leader.replica.intake.withdraw(one):
            self._open.discard(number)
        promise.forget()
        if number == self._number:
            self._try()

    def _finish(self, end: End) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(end)
