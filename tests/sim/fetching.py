"""Owns how a snapshot gets from one simulated member to another: out of band, sometimes broken on its way."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Protocol

from ipamd.storage.database import FILE_NAME
from ipamd.storage.snapshots import make_snapshot
from tests.sim.laws import Laws
from tests.sim.member import Process
from tests.sim.network import Network
from tests.sim.timeline import Timeline

MAKING_S, CARRYING_S = 0.2, 0.3
BROKEN = 0.2


class Site(Protocol):
    """Where members fetch from each other."""

    timeline: Timeline
    network: Network
    laws: Laws
    chance: random.Random

    def process(self, name: str) -> Process | None:
        """The process of a member, if there is one."""


def fetch(site: Site, process: Process, leader: str) -> None:
    """Fetch the newest snapshot of a leader's; nothing comes where the way is cut or somebody dies."""
    if process.fetching:
        return
    process.fetching = True
    source = site.process(leader)

    def make() -> None:
        if source is None or not source.alive or source.stopped or not _reach(site, process, source):
            process.fetching = False
            return
        path = process.storage.folder / "snapshot"
        make_snapshot(source.storage.folder / FILE_NAME, path)
        if site.chance.random() < BROKEN:
            _break(path, site.chance)
        site.timeline.after(site.chance.random() * CARRYING_S, lambda: process.hear(lambda: install(path)))

    def install(path: Path) -> None:
        process.fetching = False
        if source is None or not _reach(site, process, source):
            return
        before = process.replica.figures.snapshots
        process.replica.install(path)
        if process.replica.figures.snapshots > before:
            site.laws.seen["installs"] += 1
            site.laws.note("installed", process.name, process.machine.applied)

    site.timeline.after(site.chance.random() * MAKING_S, make)


def _reach(site: Site, process: Process, source: Process) -> bool:
    passes = site.network.passes
    return passes(process.name, source.name) and passes(source.name, process.name)


def _break(path: Path, chance: random.Random) -> None:
    """A part is missing, or a byte is another."""
    data = bytearray(path.read_bytes())
    if chance.random() < 0.5:
        del data[chance.randrange(len(data)) :]
    else:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)
