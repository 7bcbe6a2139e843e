"""Tokens: they end by the log's own clock, tell their last use, go along with their node, and are fetched once."""

from __future__ import annotations

import pytest

from ipamd.core.commands import DropToken, ForgetNode, NoteUses, PutToken, RenameNode
from ipamd.core.model import EventKind, Role, Token
from ipamd.core.outcomes import Code, Done, Outcome, Refused, TokenStored
from ipamd.core.tokens import ENDED_KEPT_MS, USE_KEPT_MS, has_ended
from ipamd.core.values import replace
from tests.core.bringing import bring, found
from tests.core.world import ORIGIN, World, refused

TOKEN = Token("t1", "ops", Role.OPERATOR, b"\x01" * 32, 5)


def of_node(name: str, number: int = 1) -> Token:
    return Token(f"n{number}", name, Role.NODE, bytes([number]) * 32, 0, node=name)


@pytest.fixture
def world() -> World:
    made = World()
    made.pool("p", "192.0.2.0/24")
    return made


def enrol(world: World, token: Token) -> Outcome:
    return world.run(PutToken(ORIGIN, token, enrolling=True))


def kept(world: World, token_id: str = "t1") -> Token:
    found = world.state.token(token_id)
    assert found is not None
    return found


def test_a_token_is_kept_from_now_on_and_revoked(world: World) -> None:
    made = world.run(PutToken(ORIGIN, TOKEN))
    assert made == TokenStored(kept(world))
    assert kept(world) == replace(TOKEN, created_ms=world.stamp.wall_ms)
    assert world.run(DropToken(ORIGIN, "t1")) == Done()
    assert world.state.token("t1") is None
    assert refused(world.run(DropToken(ORIGIN, "t1"))) is Code.NOT_FOUND
    told = [(event.kind, event.detail) for event in world.events()[-2:]]
    assert told == [(EventKind.TOKEN_CREATED, "t1 operator ops"), (EventKind.TOKEN_REVOKED, "t1 operator ops")]


def test_its_end_is_counted_from_the_log_whoever_proposed_it(world: World) -> None:
    world.run(PutToken(ORIGIN, replace(TOKEN, created_ms=1, expires_ms=2), 60))
    made_ms = world.stamp.wall_ms
    assert kept(world).expires_ms == made_ms + 60_000
    assert not has_ended(kept(world), made_ms + 59_999)
    assert has_ended(kept(world), made_ms + 60_000)


def test_events_never_tell_a_secret(world: World) -> None:
    world.run(PutToken(ORIGIN, TOKEN))
    world.run(DropToken(ORIGIN, "t1"))
    assert TOKEN.digest.hex() not in repr(world.events())
    assert repr(TOKEN.digest) not in repr(world.events())


def test_two_tokens_never_have_one_secret(world: World) -> None:
    world.run(PutToken(ORIGIN, TOKEN))
    assert refused(world.run(PutToken(ORIGIN, replace(TOKEN, id="t2", name="other")))) is Code.INVALID_REQUEST
    assert refused(enrol(world, replace(of_node("n1"), digest=TOKEN.digest))) is Code.INVALID_REQUEST
    assert len(world.state.all(Token)) == 1


def test_the_first_use_is_kept_and_then_one_an_hour(world: World) -> None:
    world.run(PutToken(ORIGIN, TOKEN))
    world.run(NoteUses(ORIGIN, ("t1", "unknown", "t1")))
    first_ms = world.stamp.wall_ms
    assert kept(world).used_ms == first_ms
    world.wait(USE_KEPT_MS / 1000 - 10)
    world.run(NoteUses(ORIGIN, ("t1",)))
    assert kept(world).used_ms == first_ms
    world.wait(10)
    world.run(NoteUses(ORIGIN, ("t1",)))
    assert kept(world).used_ms == world.stamp.wall_ms > first_ms


def test_the_use_of_what_has_ended_is_not_kept(world: World) -> None:
    world.run(PutToken(ORIGIN, TOKEN, 60))
    world.wait(60)
    world.run(NoteUses(ORIGIN, ("t1",)))
    assert kept(world).used_ms is None


def test_an_expired_token_is_listed_for_thirty_days(world: World) -> None:
    world.run(PutToken(ORIGIN, TOKEN, 60))
    world.run(PutToken(ORIGIN, of_node("n1", 7)))
    world.wait(60 + ENDED_KEPT_MS / 1000 - 10)
    world.run(NoteUses(ORIGIN))
    assert kept(world) is not None
    world.wait(10)
    world.run(NoteUses(ORIGIN))
    assert world.state.token("t1") is None
    assert kept(world, "n7").expires_ms is None


def test_a_node_fetches_its_token_once(world: World) -> None:
    assert isinstance(enrol(world, of_node("n1", 1)), TokenStored)
    again = enrol(world, of_node("n1", 2))
    assert refused(again) is Code.ENROLLED
    assert isinstance(again, Refused)
    assert "ipamctl node forget n1" in again.detail
    assert isinstance(enrol(world, of_node("east:n1", 3)), TokenStored)


def test_a_node_that_lost_the_answer_is_told_what_it_has(world: World) -> None:
    enrol(world, of_node("n1", 1))
    events = len(world.events())
    again = enrol(world, replace(of_node("n1", 1), id="other"))
    assert again == TokenStored(kept(world, "n1"))
    assert len(world.events()) == events


def test_a_node_that_was_heard_without_enrolment_is_not_fetched(world: World) -> None:
    world.add("t/a", "c1", node="n1")
    again = enrol(world, of_node("n1"))
    assert refused(again) is Code.ENROLLED
    assert isinstance(again, Refused)
    assert "ipamctl node forget n1" in again.detail
    assert "ipamctl token create n1 --role node --node n1" in again.detail


def test_a_node_known_from_an_import_alone_is_fetched(world: World) -> None:
    bring(world, found("192.0.2.1", node="n1"))
    assert world.state.node("n1") is not None
    assert isinstance(enrol(world, of_node("n1")), TokenStored)


def test_a_renamed_node_takes_its_tokens_along(world: World) -> None:
    world.add("t/a", "c1", node="n1")
    world.run(PutToken(ORIGIN, of_node("n1", 1)))
    world.run(PutToken(ORIGIN, of_node("n2", 2)))
    world.run(RenameNode(ORIGIN, "n1", "n9"))
    assert {one.id: one.node for one in world.state.all(Token)} == {"n1": "n9", "n2": "n2"}
    assert kept(world, "n1").digest == of_node("n1", 1).digest


def test_a_forgotten_node_loses_its_tokens_and_may_be_enrolled_anew(world: World) -> None:
    enrol(world, of_node("n1", 1))
    world.add("t/a", "c1", node="n1")
    assert refused(world.run(ForgetNode(ORIGIN, "n1"))) is Code.BOUND
    assert len(world.state.all(Token)) == 1
    world.delete("c1", node="n1")
    assert world.run(ForgetNode(ORIGIN, "n1")) == Done()
    assert world.state.all(Token) == []
    assert world.events()[-1].kind is EventKind.TOKEN_REVOKED
    assert isinstance(enrol(world, of_node("n1", 2)), TokenStored)


def test_a_node_that_was_never_heard_since_it_enrolled_can_be_forgotten(world: World) -> None:
    enrol(world, of_node("n1", 1))
    assert world.run(ForgetNode(ORIGIN, "n1")) == Done()
    assert refused(world.run(ForgetNode(ORIGIN, "n1"))) is Code.NOT_FOUND
