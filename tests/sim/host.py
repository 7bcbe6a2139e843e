"""Owns a machine of the simulation: its disk, its clocks and what it promised outlive the processes on it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ipamd.consensus.peers import Beginning
from ipamd.core.model import Member
from tests.consensus.simdisk import Crash
from tests.sim.disk import Storage, template
from tests.sim.member import Box, Process
from tests.sim.promises import Promises
from tests.sim.timeline import MemberClock

if TYPE_CHECKING:
    from tests.sim.world import World


class Host:
    """A machine: its disk and clocks outlive the processes on it."""

    def __init__(self, world: World, name: str, number: int, beginning: Beginning) -> None:
        self.world = world
        self.name = name
        self.beginning = beginning
        self.chance = random.Random(f"{world.seed} host {number}")
        self.clock = MemberClock(world.timeline)
        self.storage = Storage(world.folder / f"{name}-{number}", self.clock, template())
        self.promises = Promises(name)
        self.process: Process | None = None
        self.member_id = f"{self.chance.getrandbits(64):016x}"
        self.gone = False
        """Its data is lost: it stays off."""

    @property
    def up(self) -> bool:
        """Whether its process runs."""
        return self.process is not None and self.process.alive

    def start(self) -> None:
        """Start the process."""
        if self.up or self.gone:
            return
        self.clock.end()
        me = Member(self.name, self.member_id, self.name, self.name)
        try:
            self.process = Process(
                self.world, Box(me, self.storage, self.clock, self.chance, self.promises), self.beginning
            )
        except Crash:
            self.world.laws.seen["falls"] += 1
            self.world.faults.restart_later(self)

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.end(quiet=False)

    def unplug(self) -> None:
        """The power is gone."""
        if self.process is not None:
            self.process.end(quiet=True)
        self.storage.unplugged(self.chance)

    def lose_data(self) -> None:
        """The disk is gone, and the process with it."""
        self.kill()
        self.gone = True
