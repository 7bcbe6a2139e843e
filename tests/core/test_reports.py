"""What a node reports of its attachments: two reports that find a namespace gone free an address, and nothing else does."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ipamd.core.commands import Report, Seen
from ipamd.core.inventory import Inventory, Listed, seen_of, strangers
from ipamd.core.model import AttachmentState, EventKind, Sighting
from ipamd.core.outcomes import Code, Granted, Outcome
from tests.core.world import ORIGIN, World, addresses, freed, granted, refused, stale

GRACE_S = 120


@pytest.fixture
def world() -> World:
    made = World()
    made.pool("p", "192.0.2.0/29")
    made.add("t/a", "c1", inode=7)
    return made


def sighting(world: World) -> Sighting | None:
    return world.state.sighting(world.bound("t/a").id)


def test_two_reports_a_grace_apart_free_it_and_say_why(world: World) -> None:
    assert freed(world.report(c1=False)) == []
    world.wait(GRACE_S)
    assert freed(world.report(c1=False)) == ["192.0.2.1"]
    event = world.events()[-1]
    assert (event.kind, event.node, event.pod_ref) == (EventKind.RELEASED, "n1", "t/a")
    assert event.detail == "two reports of node n1, 120 s apart or more, found its namespace gone"


def test_within_the_grace_nothing_is_freed_however_often_it_is_said(world: World) -> None:
    for _ in range(4):
        assert freed(world.report(c1=False)) == []
        world.wait(GRACE_S / 4 - 0.001)
    assert world.attachment("t/a")


def test_the_log_counts_the_grace_itself(world: World) -> None:
    """Whatever a server has sent it."""
    mine = world.bound("t/a")
    seen = (Seen(mine.id, mine.generation, alive=False),)
    for _ in range(2):
        assert freed(world.run(Report(ORIGIN, "n1", "b1", world.log_index, seen))) == []
        world.log_ms += GRACE_S * 1000 - 1
    world.log_ms += 1
    assert freed(world.run(Report(ORIGIN, "n1", "b1", world.log_index, seen))) == ["192.0.2.1"]


@pytest.mark.parametrize("said", ["of-an-older-binding", "from-before-it-was-bound", "by-somebody-else"])
def test_the_log_itself_judges_what_a_report_may_say(world: World, said: str) -> None:
    """Between a server's look at its state and the entry anything may have come."""
    before = world.log_index - 1
    mine = world.bound("t/a")
    if said == "of-an-older-binding":
        world.add("t/a", "c1", inode=7)
    boot = None if said == "by-somebody-else" else "b1"
    for _ in range(2):
        index = before if said == "from-before-it-was-bound" else world.log_index
        seen = (Seen(mine.id, mine.generation, alive=False),)
        assert freed(world.run(Report(ORIGIN, "n1", boot, index, seen))) == []
        assert sighting(world) is None
        world.wait(GRACE_S)
    assert world.attachment("t/a")


@pytest.mark.parametrize("between", [True, None])
def test_a_report_in_between_that_says_otherwise_begins_anew(world: World, between: bool | None) -> None:
    world.report(c1=False)
    world.wait(GRACE_S / 2)
    world.report(c1=between)
    world.wait(GRACE_S / 2)
    assert freed(world.report(c1=False)) == []
    world.wait(GRACE_S)
    assert freed(world.report(c1=False)) == ["192.0.2.1"]


def test_what_is_not_listed_counts_as_unknown(world: World) -> None:
    world.report(c1=True)
    world.report()
    seen = sighting(world)
    assert seen is not None
    assert seen.alive is None
    world.report(c1=False)
    world.report()
    world.wait(GRACE_S)
    assert freed(world.report(c1=False)) == []


def test_what_was_bound_after_the_look_is_not_judged(world: World) -> None:
    """The list is older than the pod: W29."""
    before = world.log_index
    assert granted(world.add("t/new", "c5", inode=8)) == "192.0.2.2"
    world.report(index=before, c1=True, c5=False)
    world.wait(GRACE_S)
    world.report(index=before, c1=True, c5=False)
    assert world.bound("t/new").state is AttachmentState.BOUND
    assert world.state.sighting(world.bound("t/new").id) is None
    assert granted(world.add("t/other", "c6")) == "192.0.2.3"


def test_a_second_look_that_began_before_the_first_report_does_not_count(world: World) -> None:
    before = world.log_index
    world.report(c1=False)
    world.wait(GRACE_S)
    assert freed(world.report(index=before, c1=False)) == []
    assert freed(world.report(c1=False)) == ["192.0.2.1"]


def test_a_binding_that_was_renewed_is_another_one(world: World) -> None:
    world.report(c1=False)
    world.wait(GRACE_S)
    world.add("t/a", "c1", inode=9)
    assert freed(world.report(c1=False)) == []
    world.wait(GRACE_S)
    assert freed(world.report(c1=False)) == ["192.0.2.1"]


def test_a_look_under_way_while_it_is_bound_anew_says_nothing_of_it(world: World) -> None:
    world.report(c1=False)
    world.wait(GRACE_S)
    index = world.log_index
    seen = tuple(
        seen_of(world.state, Inventory("n1", "b1", index, (Listed("k", "c1", "eth0", alive=False),)), world.log_ms)
    )
    assert seen
    world.add("t/a", "c1", inode=9)
    assert freed(world.run(Report(ORIGIN, "n1", "b1", index, seen))) == []


def test_another_nodes_report_says_nothing_of_it(world: World) -> None:
    mine = world.bound("t/a")
    for _ in range(2):
        world.run(Report(ORIGIN, "n2", "b9", world.log_index, (Seen(mine.id, mine.generation, alive=False),)))
        world.wait(GRACE_S)
    assert world.bound("t/a") == mine


def test_a_report_from_a_log_that_is_not_there_is_refused(world: World) -> None:
    assert refused(world.report(index=world.log_index + 1, c1=False)) is Code.INVALID_REQUEST


def test_a_hold_is_kept_for_its_pod() -> None:
    world = World()
    world.pool("p", "192.0.2.0/29", hold_s=600)
    world.add("t/a", "c1", inode=7)
    world.report(c1=False)
    world.wait(GRACE_S)
    world.report(c1=False)
    assert world.bound("t/a").state is AttachmentState.HELD
    assert granted(world.add("t/a", "c2")) == "192.0.2.1"


def test_somebody_else_may_add_life_and_takes_none(world: World) -> None:
    world.report(c1=False)
    world.wait(GRACE_S)
    for alive in (False, None):
        world.report(boot=None, c1=alive)
        assert world.attachment("t/a")
        listed = (Listed("k", "c1", "eth0", alive),)
        assert seen_of(world.state, Inventory("n1", None, world.log_index, listed), world.log_ms) == []
    world.report(boot=None, c1=True)
    assert freed(world.report(c1=False)) == []


def test_what_is_known_makes_no_entry(world: World) -> None:
    def new(alive: bool | None) -> list[Seen]:
        listed = (Listed("k", "c1", "eth0", alive),)
        return seen_of(world.state, Inventory("n1", "b1", world.log_index, listed), world.log_ms)

    assert len(new(True)) == 1
    world.report(c1=True)
    assert new(True) == []
    assert len(new(None)) == len(new(False)) == 1
    world.report(c1=False)
    assert new(False) == []
    world.wait(GRACE_S)
    assert len(new(False)) == 1


@pytest.mark.parametrize(
    ("lines", "alive"),
    [
        ([(None, True)], True),
        ([("k", False), ("m", True)], False),
        ([("m", True)], None),
        ([("k", False), ("k", True)], True),
        ([("k", False), ("k", None)], None),
    ],
)
def test_whom_a_line_means(world: World, lines: list[tuple[str | None, bool | None]], alive: bool | None) -> None:
    """Life counts first where lines disagree; a network that is not known is any."""
    listed = tuple(Listed(network, "c1", "eth0", state) for network, state in lines)
    (seen,) = seen_of(world.state, Inventory("n1", "b1", world.log_index, listed), world.log_ms)
    assert seen.alive is alive


def test_what_an_import_did_not_know_is_filled_in() -> None:
    world = World()
    world.pool("p", "192.0.2.0/29")
    world.add("t/a", "c1", node=None, net="k")
    world.report("n3", c1=True)
    owner = world.bound("t/a").owner
    assert owner is not None
    assert owner.node == "n3"


def test_strangers_are_the_living_whose_binding_is_gone(world: World) -> None:
    held = addresses("192.0.2.1")
    mine = Listed("k", "c1", "eth0", alive=True, pod_ref="t/a", addresses=held)
    gone = Listed("k", "c9", "eth0", alive=True, pod_ref="t/z", addresses=held)
    dead = gone._replace(container_id="c8", alive=False)
    silent = gone._replace(container_id="c7", addresses=())
    assert strangers(world.state, Inventory("n1", "b1", 1, (mine, gone, dead, silent))) == [gone]
    assert strangers(world.state, Inventory("n2", "b1", 1, (mine,))) == [mine]


def test_an_address_that_a_living_container_lost_in_one_of_its_pools_is_a_strangers(world: World) -> None:
    world.pool("q", "198.51.100.0/29")
    world.add("t/a", "c1", pools="p q", inode=7)
    mine = Listed("k", "c1", "eth0", alive=True, pod_ref="t/a", addresses=addresses("192.0.2.1", "198.51.100.1"))

    def found(index: int) -> Sequence[Listed]:
        return strangers(world.state, Inventory("n1", "b1", index, (mine,)))

    assert found(world.log_index) == []
    world.release("t/a", force=True)
    assert found(world.log_index) == [mine._replace(addresses=addresses("192.0.2.1"))]
    before = world.log_index
    world.add("t/a", "c1", pools="q", inode=7)
    assert found(before) == [], "it was bound anew since: what it has is not what was looked at"


def test_a_report_keeps_what_the_node_says_of_itself(world: World) -> None:
    world.report(spooled=3, c1=True)
    node = world.node()
    assert (node.spooled, node.reported_log_ms, node.lost_log_ms) == (3, world.log_ms, None)


def test_many_at_once_are_each_judged_by_themselves(world: World) -> None:
    world.add("t/b", "c2", inode=8)
    world.add("t/c", "c3", inode=9)
    world.report(c1=False, c2=True, c3=False)
    world.wait(GRACE_S)
    outcome: Outcome = world.report(c1=False, c2=True, c3=True)
    assert freed(outcome) == ["192.0.2.1"]
    assert not stale(outcome)
    assert isinstance(world.add("t/b", "c2"), Granted)
    assert sorted(world.holders()) == ["192.0.2.2", "192.0.2.3"]
