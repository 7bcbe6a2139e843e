"""Owns changes of members while a run goes on: one comes, one goes, one lost its disk and comes back under its name."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ipamd.consensus.peers import Join
from ipamd.core.commands import AddMember, Command, Origin, RemoveMember, encode_command
from ipamd.core.entries import OP_BYTES, Item
from ipamd.core.levels import LEVEL
from ipamd.core.model import Member
from ipamd.core.outcomes import Done
from ipamd.core.ports import Answer
from tests.sim.answers import End

if TYPE_CHECKING:
    from tests.sim.world import World

LIMIT_S = 5.0
ORIGIN = Origin("sim", "move")


class Moves:
    """One change after the other."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = random.Random(f"{world.seed} moves")
        self._number = world.size
        self._busy = False
        self.asked_to_go: set[str] = set()
        """Names that somebody asked to remove, whatever came of it."""

    def grow(self) -> None:
        """A new member joins."""
        if not self._busy and len(self._world.hosts) <= self._world.size:
            self._number += 1
            self._take_in(f"n{self._number}")

    def shrink(self) -> None:
        """A member is removed for good."""
        if not self._busy and len(self._world.hosts) > max(2, self._world.size - 1):
            name = self._chance.choice(list(self._world.hosts))
            self._remove(name, partial(self._gone, name))

    def replace(self) -> None:
        """A member's disk is gone: it comes back under its name, with another id."""
        if self._busy or self._sure_voters() < 3:
            return
        name = self._chance.choice(list(self._world.hosts))
        self._world.hosts[name].lose_data()
        self._remove(name, lambda _index: self._come_back(name))

    def _sure_voters(self) -> int:
        """How many voters there are that have their disks, as the newest state says; 0 while that is not sure."""
        hosts, running = self._world.hosts, self._world.running()
        members = max(running, key=lambda one: one.machine.applied).machine.members if running else ()
        there = all(member.voter and member.name in hosts and not hosts[member.name].gone for member in members)
        return len(members) if there else 0

    def hand_over(self, name: str | None) -> None:
        """The leader hands over, to a member or (None) to whoever is best."""
        for process in self._world.running():
            if process.leads:
                process.hear(partial(process.replica.hand_over, name))

    def settle(self) -> None:
        """Who was taken in and never came is removed again; who is none any more is ended."""
        leader = next((process for process in self._world.running() if process.leads), None)
        if leader is None:
            return
        members = {member.name for member in leader.replica.members}
        for name in sorted(set(self._world.hosts) - members):
            self._world.retire(name)
        for name in sorted(members):
            host = self._world.hosts.get(name)
            if host is None or host.gone:
                self._remove(name, partial(self._gone, name))

    def _remove(self, name: str, done: Callable[[int], None]) -> None:
        self.asked_to_go.add(name)
        self._ask(RemoveMember(ORIGIN, name), done)

    def _gone(self, name: str, _index: int) -> None:
        self._world.retire(name)

    def _come_back(self, name: str) -> None:
        self._world.retire(name)
        self._world.timeline.after(0.2 + self._chance.random(), lambda: self._take_in(name))

    def _take_in(self, name: str) -> None:
        host = self._world.new_host(name)
        member = Member(name, host.member_id, name, name, voter=False, level=LEVEL)

        def joins(index: int) -> None:
            members = self._world.members_at(index)
            if members:
                host.beginning = Join(members, index)
                self._world.hosts[name] = host
                host.start()

        if name not in self._world.hosts and not self._world.calm:
            self._ask(AddMember(ORIGIN, member), joins)

    def _ask(self, command: Command, done: Callable[[int], None]) -> None:
        """Ask for a change; what follows comes only if it surely was made."""
        self._busy = True

        def ended(end: End) -> None:
            self._busy = not isinstance(end, Answer)  # what is not known could cost the quorum, with one change more
            if isinstance(end, Answer) and isinstance(end.outcome, Done):
                self._world.laws.seen["membership changes"] += 1
                self._world.laws.note("members", command)
                done(end.index)

        item = Item(self._chance.randbytes(OP_BYTES), encode_command(command))
        self._world.ask(item, LIMIT_S, ended)
