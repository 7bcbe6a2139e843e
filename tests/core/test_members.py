"""Changes of members: who is taken in, gets a vote, moves and leaves."""

from __future__ import annotations

import pytest

from ipamd.core.changes import Put
from ipamd.core.commands import (
    KINDS,
    AddMember,
    BindMember,
    Found,
    PromoteMember,
    RemoveMember,
    encode_command,
    is_configuration,
)
from ipamd.core.decide import Decision
from ipamd.core.model import Cluster, EventKind, Member, Settings
from ipamd.core.outcomes import Code, Done, Refused
from ipamd.core.values import replace
from tests.core.world import ORIGIN, World, refused

ONE = Member("n1", "id1", "h1:7481", "http://h1")
TWO = Member("n2", "id2", "h2:7481", "http://h2")


@pytest.fixture
def world() -> World:
    made = World()
    made.run(Found(ORIGIN, "c", Settings(), (ONE,)))
    return made


def members(world: World) -> list[Member]:
    return list(world.state.members())


def told(world: World) -> list[EventKind]:
    return [event.kind for event in world.events()]


def test_a_new_member_has_no_vote(world: World) -> None:
    assert world.run(AddMember(ORIGIN, TWO)) == Done()
    assert [(one.name, one.voter) for one in members(world)] == [("n1", True), ("n2", False)]
    assert told(world) == [EventKind.MEMBER_ADDED]
    assert world.events()[-1].detail == "n2 id2 raft h2:7481 api http://h2 level 1"


def test_it_gets_one_once(world: World) -> None:
    world.run(AddMember(ORIGIN, TWO))
    for _ in range(2):
        assert world.run(PromoteMember(ORIGIN, "n2", "id2")) == Done()
    assert all(one.voter for one in members(world))
    assert told(world) == [EventKind.MEMBER_ADDED, EventKind.MEMBER_PROMOTED]


def test_asking_again_under_the_same_id_changes_the_addresses_alone(world: World) -> None:
    world.run(AddMember(ORIGIN, TWO))
    world.run(PromoteMember(ORIGIN, "n2", "id2"))
    world.run(AddMember(ORIGIN, TWO))
    world.run(AddMember(ORIGIN, Member("n2", "id2", "h9:1", "http://h9")))
    assert members(world)[1] == Member("n2", "id2", "h9:1", "http://h9", voter=True)
    assert told(world)[2:] == [EventKind.MEMBER_BOUND]


@pytest.mark.parametrize("other", [Member("n1", "id9", "x:1", "http://x"), Member("n9", "id1", "x:1", "http://x")])
def test_name_and_id_belong_together(world: World, other: Member) -> None:
    assert refused(world.run(AddMember(ORIGIN, other))) is Code.MEMBER_EXISTS
    assert members(world) == [ONE]


def test_only_the_one_that_is_meant_gets_a_vote(world: World) -> None:
    world.run(AddMember(ORIGIN, TWO))
    assert refused(world.run(PromoteMember(ORIGIN, "n2", "id-before"))) is Code.NOT_FOUND
    assert refused(world.run(PromoteMember(ORIGIN, "n3", "id3"))) is Code.NOT_FOUND
    assert not members(world)[1].voter


def test_the_last_vote_stays(world: World) -> None:
    world.run(AddMember(ORIGIN, TWO))
    assert refused(world.run(RemoveMember(ORIGIN, "n1"))) is Code.LAST_MEMBER
    world.run(PromoteMember(ORIGIN, "n2", "id2"))
    assert world.run(RemoveMember(ORIGIN, "n1")) == Done()
    assert [one.name for one in members(world)] == ["n2"]
    assert refused(world.run(RemoveMember(ORIGIN, "n1"))) is Code.NOT_FOUND
    assert told(world)[-1] is EventKind.MEMBER_REMOVED


def test_one_without_a_vote_leaves_freely(world: World) -> None:
    world.run(AddMember(ORIGIN, TWO))
    assert world.run(RemoveMember(ORIGIN, "n2")) == Done()
    assert members(world) == [ONE]


def test_an_id_is_bound_once(world: World) -> None:
    unbound = World()
    unbound.run(Found(ORIGIN, "c", Settings(), (Member("n1", "", "h1:1", "http://h1"),)))
    assert unbound.run(BindMember(ORIGIN, "n1", "id1", "h1:2", "http://h1")) == Done()
    assert members(unbound) == [Member("n1", "id1", "h1:2", "http://h1")]
    assert refused(unbound.run(BindMember(ORIGIN, "n1", "id2", "h1:2", "http://h1"))) is Code.MEMBER_EXISTS
    assert refused(unbound.run(BindMember(ORIGIN, "n2", "id2", "h1:2", "http://h1"))) is Code.NOT_FOUND


def test_the_log_knows_a_change_of_members_by_its_first_bytes() -> None:
    changes = (
        AddMember(ORIGIN, TWO),
        PromoteMember(ORIGIN, "n2", "id2"),
        RemoveMember(ORIGIN, "n2"),
        BindMember(ORIGIN, "n2", "id2", "h:1", "http://h"),
    )
    assert all(is_configuration(encode_command(command)) for command in changes)
    assert not is_configuration(encode_command(Found(ORIGIN, "c", Settings(), (ONE,))))
    assert not is_configuration(b"")
    assert {kind for kind, command in KINDS.items() if command in {type(one) for one in changes}} == {17, 18, 19, 20}


def test_who_runs_an_older_version_than_the_log_needs_is_not_taken_in(world: World) -> None:
    world.state.carry_out(
        Decision(Done(), (Put(Cluster("c", 1, level=2)),), world.state.last_id, world.state.last_event)
    )
    old = Member("n9", "id9", "h9:1", "http://h9", voter=False)
    assert world.run(AddMember(ORIGIN, old)) == Refused(
        Code.OLD_MEMBER,
        "n9 runs an older version of ipamd than its cluster has come to need: install the newer one on it",
    )
    assert world.run(AddMember(ORIGIN, replace(old, level=2))) == Done()
    assert world.run(AddMember(ORIGIN, Member("n8", "", "h8:1", "http://h8"))) == Done(), (
        "it says its level when it starts"
    )


def test_a_level_that_a_member_tells_is_kept(world: World) -> None:
    world.run(BindMember(ORIGIN, "n1", "id1", "h1:1", "http://h1", level=3))
    assert next(one for one in world.state.members() if one.name == "n1").level == 3
