"""The leader's watch: silence counts from the later of the last heartbeat and the beginning of its service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from ipamd.core.commands import Command, FindNodes, LoseNodes, Reclaim, ReclaimCause, decode_command
from ipamd.core.entries import Item
from ipamd.core.memory import MemoryState
from ipamd.core.ports import Answer, Unavailable
from ipamd.service.collection import Collection
from ipamd.service.heartbeats import Heartbeats
from ipamd.service.proposer import Proposer
from ipamd.service.reader import Reader
from ipamd.service.watch import Watch
from tests.core.world import World
from tests.support.scripted import ScriptedLog, TurnedClock, counting_bytes
from tests.support.stack import FakeNamespaces

LOST_S = 300


class OfWorld:
    """Snapshots of a world: core.ports.State."""

    def __init__(self, world: World) -> None:
        self._world = world

    @contextmanager
    def snapshot(self) -> Iterator[MemoryState]:
        setattr(self._world.state, "applied_index", 7)  # noqa: B010 - a state in memory has none
        yield self._world.state


class WorldLog(ScriptedLog):
    """A log whose commands are carried out."""

    world: World

    async def propose(self, item: Item, timeout_s: float) -> Answer:
        answer = await super().propose(item, timeout_s)
        return Answer(answer.index, self.world.run(decode_command(item.command)))


@dataclass
class Watched:
    world: World = field(default_factory=World)
    clock: TurnedClock = field(default_factory=TurnedClock)
    log: WorldLog = field(default_factory=WorldLog)

    def __post_init__(self) -> None:
        self.log.world = self.world
        self.heartbeats = Heartbeats(self.clock)
        proposer = Proposer(self.log, self.clock, counting_bytes())
        self.reader = Reader(self.log, OfWorld(self.world), self.clock)  # type: ignore[arg-type]
        collection = Collection(proposer, self.reader, FakeNamespaces())
        self.watch = Watch(self.log, proposer, self.reader, collection, heartbeats=self.heartbeats, clock=self.clock)

    async def pass_s(self, seconds: int, *beating: str, step_s: int = 4) -> None:
        """Let time pass, with a look every few seconds; some nodes are heard all along."""
        for _ in range(0, seconds, step_s):
            self.clock.now_s += step_s
            self.world.log_ms += step_s * 1000
            self.log.now = self.log.now._replace(log_ms=self.world.log_ms)
            for node in beating:
                self.heartbeats.note(node)
            await self.watch.look()

    def lost(self) -> list[str]:
        return [node.name for node in self.world.state.known_nodes() if node.lost_log_ms is not None]

    def proposed(self, kind: type[Command]) -> list[Command]:
        return [one for item in self.log.items if isinstance(one := decode_command(item.command), kind)]


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    """Three nodes with a pod each; one more never reports."""
    made = Watched()
    made.world.pool("p", "192.0.2.0/29", reclaim="after:60")
    for node in ("n1", "n2", "n3"):
        made.world.add(f"t/{node}", node, node=node, inode=7)
        made.world.report(node)
    made.world.add("t/far", "far", node="far", inode=7)
    await made.watch.look()
    yield made
    made.reader.close()


async def test_a_node_that_is_heard_is_not_lost(watched: Watched) -> None:
    await watched.pass_s(3 * LOST_S, "n1", "n2", "n3")
    assert watched.lost() == []
    assert watched.log.items == []


async def test_a_silent_node_is_lost_and_then_reclaimed_and_no_other(watched: Watched) -> None:
    await watched.pass_s(LOST_S - 4, "n2", "n3")
    assert watched.lost() == []
    await watched.pass_s(8, "n2", "n3")
    assert watched.lost() == ["n1"]
    await watched.pass_s(52, "n2", "n3")
    assert len(watched.world.holders()) == 4
    await watched.pass_s(12, "n2", "n3")
    assert sorted(watched.world.holders().values()) == ["t/far eth0", "t/n2 eth0", "t/n3 eth0"]
    assert len(watched.proposed(LoseNodes)) == 1
    (reclaim,) = watched.proposed(Reclaim)
    assert isinstance(reclaim, Reclaim)
    assert (reclaim.cause, reclaim.node) == (ReclaimCause.LOST, "n1")


async def test_a_node_that_never_reported_is_let_alone(watched: Watched) -> None:
    await watched.pass_s(5 * LOST_S, "n1", "n2", "n3")
    assert "far" not in watched.lost()


async def test_all_servers_stopped_frees_nothing(watched: Watched) -> None:
    """The process stood still for long: what it missed is not silence."""
    await watched.pass_s(8, "n1", "n2", "n3")
    watched.clock.now_s += LOST_S + 60
    watched.world.log_ms += (LOST_S + 60) * 1000
    await watched.watch.look()
    await watched.pass_s(LOST_S - 8)
    assert watched.lost() == []


async def test_a_new_leader_counts_from_its_beginning(watched: Watched) -> None:
    await watched.pass_s(LOST_S - 8, "n2", "n3")
    watched.log.now = watched.log.now._replace(term=2)
    await watched.pass_s(LOST_S - 8, "n2", "n3")
    assert watched.lost() == []
    await watched.pass_s(12, "n2", "n3")
    assert watched.lost() == ["n1"]


async def test_who_does_not_lead_says_nothing(watched: Watched) -> None:
    watched.log.now = watched.log.now._replace(is_leader=False)
    await watched.pass_s(3 * LOST_S)
    assert watched.log.items == []


async def test_a_node_that_is_heard_again_is_back(watched: Watched) -> None:
    await watched.pass_s(LOST_S + 20, "n2", "n3")
    assert watched.lost() == ["n1"]
    await watched.pass_s(8, "n1", "n2", "n3")
    assert watched.lost() == []
    assert len(watched.proposed(FindNodes)) == 1
    await watched.pass_s(120, "n1", "n2", "n3")
    assert len(watched.world.holders()) == 4


async def test_a_node_that_is_lost_within_seconds_is_not_back_before_it_is_heard(watched: Watched) -> None:
    watched.world.settings(node_lost_s=3)
    watched.heartbeats.every_s = 1
    await watched.pass_s(4, "n1", "n2", "n3", step_s=1)
    await watched.pass_s(20, "n1", "n2", step_s=1)
    assert watched.lost() == ["n3"]
    assert watched.proposed(FindNodes) == []
    await watched.pass_s(1, "n1", "n2", "n3", step_s=1)
    assert watched.lost() == []


async def test_who_missed_fewer_than_three_heartbeats_is_not_lost(watched: Watched) -> None:
    watched.world.settings(node_lost_s=1)
    await watched.pass_s(30 - 2, step_s=2)
    assert watched.lost() == []
    await watched.pass_s(4, "n2", step_s=2)
    assert watched.lost() == ["n1", "n3"]


async def test_a_process_that_stands_still_in_the_middle_of_a_look_misses_nothing_of_the_nodes(
    watched: Watched,
) -> None:
    await watched.pass_s(8, "n1", "n2", "n3")
    peek = watched.reader.peek

    async def stops(*args: Any) -> Any:
        found = await peek(*args)
        watched.clock.now_s += LOST_S + 60
        watched.world.log_ms += (LOST_S + 60) * 1000
        return found

    watched.reader.peek = stops  # type: ignore[method-assign, assignment]
    await watched.watch.look()
    watched.reader.peek = peek  # type: ignore[method-assign]
    await watched.watch.look()
    assert watched.lost() == []


@pytest.mark.parametrize("begins_anew", ["leader", "process"])
async def test_who_begins_to_serve_gives_lost_nodes_time_to_say_that_they_are_back(
    watched: Watched, begins_anew: str
) -> None:
    """The time of n1 is over in the very second in which a leader begins: it may have been asking for that long."""
    await watched.pass_s(LOST_S + 56, "n2", "n3")
    assert watched.lost() == ["n1"]
    if begins_anew == "leader":
        watched.log.now = watched.log.now._replace(term=2)
    else:
        watched.clock.now_s += 60
        watched.world.log_ms += 60_000
    await watched.pass_s(12, "n2", "n3")
    assert len(watched.world.holders()) == 4
    await watched.pass_s(8, "n1", "n2", "n3")
    assert watched.lost() == []
    await watched.pass_s(LOST_S, "n1", "n2", "n3")
    assert len(watched.world.holders()) == 4


async def test_others_that_fall_silent_before_the_first_is_reclaimed_save_it(watched: Watched) -> None:
    await watched.pass_s(LOST_S + 8, "n2", "n3")
    assert watched.lost() == ["n1"]
    await watched.pass_s(80)
    assert watched.lost() == ["n1"]
    assert watched.world.state.mass_silence() is not None
    assert len(watched.world.holders()) == 4


async def test_all_silent_at_once_are_lost_and_nothing_is_reclaimed(watched: Watched) -> None:
    await watched.pass_s(LOST_S + 400)
    assert watched.lost() == ["n1", "n2", "n3"]
    silence = watched.world.state.mass_silence()
    assert silence is not None
    assert silence.stands
    assert watched.proposed(Reclaim) == []
    watched.world.confirm()
    await watched.pass_s(8)
    assert list(watched.world.holders().values()) == ["t/far eth0"]


async def test_a_log_without_quorum_is_asked_again(watched: Watched) -> None:
    await watched.pass_s(LOST_S - 4, "n2", "n3")
    watched.log.answers = [Unavailable("no quorum", "none")]
    with pytest.raises(Unavailable):
        await watched.pass_s(8, "n2", "n3")
    await watched.pass_s(8, "n2", "n3")
    assert watched.lost() == ["n1"]
