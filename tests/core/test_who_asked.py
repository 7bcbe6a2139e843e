"""Each kind of event says who asked for it, in which request, and of which node it tells; and why, where nobody did."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from ipamd.core.addresses import parse_address
from ipamd.core.commands import (
    AddMember,
    BindMember,
    DropToken,
    ForgetNode,
    Found,
    Note,
    NoteRefused,
    PromoteMember,
    PutToken,
    RemoveMember,
    RenameNode,
)
from ipamd.core.decide import SYSTEM
from ipamd.core.model import Event, EventKind, Member, Role, Settings, Token
from tests.core.bringing import add as add_to_inline
from tests.core.bringing import bring, inline, of_container
from tests.core.restored import Living, founded, restored
from tests.core.world import ORIGIN, World

TWO = Member("m2", "id-2", "127.0.0.1:7482", "http://127.0.0.1:7483")


def pools() -> World:
    world = World()
    world.pool("p", "192.0.2.0/28")
    world.replace("p", "192.0.2.0/27")
    world.drop_pool("p")
    return world


def pods() -> World:
    world = World()
    world.pool("p", "192.0.2.0/28")
    world.add("t/a", "c1")
    world.add("t/a", "c2")
    world.add("t/a", "c2", node="n2")
    world.delete("c2", node="n2")
    world.reserve("t/b")
    world.quarantine("192.0.2.9")
    world.lift("192.0.2.9")
    world.run(Note(ORIGIN, "cabled anew", "p"))
    return world


def imported() -> World:
    world = World()
    bring(world, of_container("192.0.2.5"))
    add_to_inline(world, "t/a", "c1", inline())
    return world


def nodes() -> World:
    world = World()
    world.pool("p", "192.0.2.0/28")
    world.settings(node_lost_s=0)
    for number in range(1, 5):
        world.add(f"t/{number}", f"c{number}", node=f"n{number}", inode=7)
        alive: Any = {f"c{number}": True}
        world.report(f"n{number}", **alive)
    world.add("t/1", "c9", node="n2")  # contested
    world.run(NoteRefused(ORIGIN, "n1", "a DEL of container c7 is refused: it cannot be read"))
    world.lose("n1", "n2", "n3", "n4")
    world.confirm()
    world.find("n1")
    world.add("t/8", "c8", boot="b2")
    world.add("t/7", "c7", boot="b1")
    world.run(RenameNode(ORIGIN, "n2", "n22"))
    world.delete("c3", node="n3")
    world.run(ForgetNode(ORIGIN, "n3"))
    return world


def members() -> World:
    world = World()
    world.run(Found(ORIGIN, "c", Settings(), ()))
    world.run(AddMember(ORIGIN, Member("m1", "id-1", "127.0.0.1:7481", "http://127.0.0.1:7480")))
    world.run(PromoteMember(ORIGIN, "m1", "id-1"))
    world.run(AddMember(ORIGIN, TWO))
    world.run(BindMember(ORIGIN, "m2", "id-2", "127.0.0.1:7484", TWO.api))
    world.run(RemoveMember(ORIGIN, "m2"))
    world.run(PutToken(ORIGIN, Token("t1", "ops", Role.READER, bytes(32), 1)))
    world.run(DropToken(ORIGIN, "t1"))
    return world


def after_a_restore() -> World:
    world = World()
    founded(world)
    world.pool("p", "192.0.2.0/29")
    world.add("t/a", "c1", inode=7)
    world.report(c1=True)
    again = restored(world)
    again.lists(Living("c9", "t/z", "192.0.2.1", "n2"), node="n2")
    again.lists(node="n2")
    again.confirm_pool(force=True)
    return again


SCENES: tuple[Callable[[], World], ...] = (pools, pods, imported, nodes, members, after_a_restore)
OF_NODES = {kind for kind in EventKind if kind.value.startswith("node_")} | {EventKind.DEL_REFUSED}
OF_POOLS = {EventKind.POOL_CREATED, EventKind.POOL_UPDATED, EventKind.POOL_DELETED, EventKind.POOL_CONFIRMED}
OF_ADDRESSES = {
    EventKind.BOUND,
    EventKind.HELD,
    EventKind.REBOUND,
    EventKind.MOVED,
    EventKind.RELEASED,
    EventKind.CLAIMED,
    EventKind.CONTESTED,
}
SAYS_MORE = {kind for kind in EventKind if kind.value.startswith(("member_", "token_"))} | {
    EventKind.MOVED,
    EventKind.REBOUND,
    EventKind.CONTESTED,
    EventKind.DEL_REFUSED,
    EventKind.SETTINGS_CHANGED,
    EventKind.MASS_SILENCE,
    EventKind.NODE_RENAMED,
    EventKind.NODE_NAME_CLASH,
    EventKind.CONFLICT,
    EventKind.CONFLICT_ENDED,
    EventKind.RESTORED,
    EventKind.NOTE,
}
BY_THE_PROGRAM = {EventKind.RESTORED}
"""Told by what no request asked for."""


@cache
def events() -> tuple[Event, ...]:
    return tuple(event for scene in SCENES for event in scene().events())


def test_there_is_an_event_of_every_kind() -> None:
    assert {event.kind for event in events()} == set(EventKind)


@pytest.mark.parametrize("kind", list(EventKind))
def test_an_event_says_who_asked_and_of_what_it_tells(kind: EventKind) -> None:
    for event in (one for one in events() if one.kind is kind):
        asked = (event.by, event.request_id)
        assert all(asked), event
        assert kind in BY_THE_PROGRAM or asked == (ORIGIN.by, ORIGIN.request_id), event
        assert kind not in OF_NODES or event.node, event
        assert kind not in OF_POOLS or (event.pool and event.space), event
        assert kind not in SAYS_MORE or event.detail, event
        if kind in OF_ADDRESSES:
            assert event.space, event
            assert event.pool, event
            assert event.pod_ref, event
            assert event.address, event
            assert event.node or kind is EventKind.HELD or event.detail == "imported", event


def test_what_the_system_ends_says_so_and_why() -> None:
    world = World()
    world.pool("p", "192.0.2.0/28", hold_s=5)
    world.add("t/a", "c1")
    world.delete("c1")
    world.quarantine("192.0.2.9", for_s=5)
    before = world.state.last_event
    world.wait(6)
    told = {event.kind: event for event in world.events(before)}
    assert set(told) == {EventKind.RELEASED, EventKind.UNQUARANTINED}
    for event in told.values():
        assert (event.by, event.request_id) == (SYSTEM.by, SYSTEM.request_id) == ("system", "expiry")
        assert event.detail
    assert told[EventKind.RELEASED].pod_ref == "t/a"


def test_what_evidence_frees_says_which_node_reported_and_why() -> None:
    world = World()
    world.pool("p", "192.0.2.0/28")
    world.settings(evidence_grace_s=10)
    world.add("t/a", "c1", inode=7)
    world.report(c1=False)
    world.wait(11)
    world.report(c1=False)
    event = world.events()[-1]
    assert (event.kind, event.node, str(event.address)) == (EventKind.RELEASED, "n1", "192.0.2.1")
    assert (event.by, event.request_id) == (ORIGIN.by, ORIGIN.request_id)
    assert "two reports of node n1" in event.detail
    assert event.address == parse_address("192.0.2.1")
