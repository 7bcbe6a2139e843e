"""What may be proposed among members of several versions, and how the state tells what its log has come to need."""

from __future__ import annotations

import pytest

from ipamd.core import levels
from ipamd.core.commands import KINDS, Command, Expire, Found, Origin, SetQuarantine, encode_command
from ipamd.core.model import Cluster, Member, Settings
from tests.core.world import World, addresses

ORIGIN = Origin("test", "r-1")
LATER_KINDS, OWN_LEVEL = dict(levels.LATER), levels.LEVEL
LATER = SetQuarantine(ORIGIN, "default", addresses("192.0.2.1")[0])
"""What the tests take for a command that came with level 2."""


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(autouse=True)
def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of level 2."""
    monkeypatch.setattr(levels, "LEVEL", 2)
    monkeypatch.setattr(levels, "LATER", {SetQuarantine: 2})
    monkeypatch.setattr(levels, "_BY_NUMBER", levels._BY_NUMBER | {8: 2})


@pytest.mark.parametrize(("kind", "level"), LATER_KINDS.items())
def test_what_came_later_is_numbered_from_40(kind: type[Command], level: int) -> None:
    """1 to 39 are those of the first level: their meaning and their fields stay as they are."""
    assert next(number for number, one in KINDS.items() if one is kind) >= 40
    assert 1 < level <= OWN_LEVEL


def member(name: str, level: int, *, voter: bool = True) -> Member:
    return Member(name, f"id-{name}", f"{name}:1", f"http://{name}", voter, level)


def hindrance(command: Command, *members: Member) -> str | None:
    return levels.hindrance(encode_command(command), members)


def test_what_everybody_knows_may_be_proposed_among_anybody() -> None:
    assert hindrance(Expire(ORIGIN), member("n1", 1), member("n2", 7)) is None


def test_what_one_member_does_not_know_may_not_and_it_is_named() -> None:
    assert hindrance(LATER, member("n1", 2), member("n2", 3)) is None
    assert hindrance(LATER, member("n1", 2), member("n3", 1, voter=False)) == (
        "n3 runs an older version of ipamd: upgrade it first"
    )
    assert hindrance(LATER, member("n3", 1), member("n1", 1), member("n2", 2)) == (
        "n1 and n3 run an older version of ipamd: upgrade them first"
    )


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x01\xc8[]"])
def test_what_this_program_does_not_know_itself_may_not_where_it_is_a_member(data: bytes) -> None:
    assert levels.hindrance(data, [member("n1", 2)]) == "n1 runs an older version of ipamd: upgrade it first"


def test_the_state_tells_the_highest_level_of_its_log_once(world: World) -> None:
    world.run(Found(ORIGIN, "c", Settings(), (member("n1", 2),)))
    founded_ms = world.stamp.wall_ms
    assert world.state.all(Cluster) == [Cluster("c", founded_ms)]
    assert levels.raised(world.state, Expire(ORIGIN)) == ()
    world.run(LATER)
    assert world.state.all(Cluster) == [Cluster("c", founded_ms, level=2)]
    assert levels.raised(world.state, LATER) == ()
