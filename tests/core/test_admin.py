"""The small commands of operators: quarantine, settings, and the founding of the cluster."""

from __future__ import annotations

import pytest

from ipamd.core.commands import ChangeSettings, Found, Note
from ipamd.core.model import Cluster, EventKind, Member, Quarantine, Role, Settings, Token
from ipamd.core.outcomes import Code, Done, Quarantined, Released, SettingsStored
from ipamd.core.values import replace
from tests.core.world import ORIGIN, World, granted, range_of, refused

TOKEN = Token("t1", "ops", Role.OPERATOR, b"\x01" * 32, 5)


@pytest.fixture
def world() -> World:
    made = World()
    made.pool("p", range_of("192.0.2.0/29", end="192.0.2.3", gateway="192.0.2.6"))
    return made


def test_a_quarantined_address_is_not_handed_out(world: World) -> None:
    outcome = world.quarantine("192.0.2.1")
    assert isinstance(outcome, Quarantined)
    assert outcome.quarantine.until_log_ms is None
    assert outcome.quarantine.by == "test"
    assert [granted(world.add(f"t/a{number}")) for number in range(2)] == ["192.0.2.2", "192.0.2.3"]
    assert refused(world.add("t/late")) is Code.POOL_EXHAUSTED
    assert world.lift("192.0.2.1") == Done()
    assert granted(world.add("t/late")) == "192.0.2.1"


def test_its_holder_keeps_it_until_it_lets_go(world: World) -> None:
    world.add("t/a", "c1")
    world.quarantine("192.0.2.1")
    assert granted(world.add("t/a", "c2")) == "192.0.2.1"
    world.delete("c2")
    assert world.occupied() == ["192.0.2.1"]
    assert granted(world.add("t/a", "c3")) == "192.0.2.2"
    world.lift("192.0.2.1")
    assert world.occupied() == ["192.0.2.2"]


def test_lifting_it_leaves_the_holder_alone(world: World) -> None:
    world.add("t/a", "c1")
    world.quarantine("192.0.2.1")
    world.lift("192.0.2.1")
    assert world.holders() == {"192.0.2.1": "t/a eth0"}


def test_it_ends_by_itself(world: World) -> None:
    world.quarantine("192.0.2.1", for_s=60)
    world.wait(59.999)
    assert world.state.all(Quarantine) != []
    world.wait(0.001)
    assert world.state.all(Quarantine) == []
    assert [event.kind for event in world.events()][-2:] == [EventKind.QUARANTINED, EventKind.UNQUARANTINED]


def test_a_second_one_replaces_the_first(world: World) -> None:
    world.quarantine("192.0.2.1", for_s=60)
    world.quarantine("192.0.2.1")
    world.wait(100)
    assert world.occupied() == ["192.0.2.1"]


def test_any_address_of_a_subnet_may_be_taken_out_and_no_other(world: World) -> None:
    assert isinstance(world.quarantine("192.0.2.6"), Quarantined)
    assert refused(world.quarantine("192.0.2.8")) is Code.NOT_FOUND
    assert refused(world.quarantine("192.0.2.1", space="blue")) is Code.NOT_FOUND
    assert refused(world.lift("192.0.2.1")) is Code.NOT_FOUND


def test_it_counts_in_every_pool_of_the_space(world: World) -> None:
    world.pool("q", "192.0.2.0/24", allow_overlap=True)
    world.quarantine("192.0.2.1")
    assert granted(world.add("t/a", pools="q")) == "192.0.2.2"


def test_it_stays_when_its_pool_goes(world: World) -> None:
    world.quarantine("192.0.2.1")
    world.drop_pool("p")
    world.pool("q", "192.0.2.0/24")
    assert granted(world.add("t/a", pools="q")) == "192.0.2.2"


def test_settings_are_changed_and_tell_what_is_in_force(world: World) -> None:
    assert world.state.settings() == Settings()
    new = replace(Settings(), cooldown_s=7, inline_pools=False)
    change = ChangeSettings(ORIGIN, cooldown_s=7, inline_pools=False)
    assert world.run(change) == SettingsStored(new)
    assert world.run(change) == SettingsStored(new)
    assert world.state.settings() == new
    assert [event.kind for event in world.events()].count(EventKind.SETTINGS_CHANGED) == 1


def test_two_changes_of_settings_leave_each_other_alone(world: World) -> None:
    world.run(ChangeSettings(ORIGIN, cooldown_s=0))
    assert world.run(ChangeSettings(ORIGIN, tombstone_s=9)) == SettingsStored(Settings(cooldown_s=0, tombstone_s=9))


def test_the_first_founding_counts() -> None:
    world = World()
    members = (Member("n2", "id2", "r2", "u2"), Member("n1", "id1", "r1", "u1"))
    settings = replace(Settings(), cooldown_s=9)
    assert world.run(Found(ORIGIN, "first", settings, members, TOKEN, 60)) == Done()
    assert world.run(Found(ORIGIN, "second", Settings(), (), None)) == Done()
    assert world.state.cluster_id() == "first"
    assert world.state.settings() == settings
    assert [member.name for member in world.state.members()] == ["n1", "n2"]
    now_ms = world.stamp.wall_ms
    assert world.state.token("t1") == replace(TOKEN, created_ms=now_ms, expires_ms=now_ms + 60_000)
    assert world.state.all(Cluster) == [Cluster("first", world.stamp.wall_ms)]


def test_a_lifted_quarantine_frees_nobody(world: World) -> None:
    world.quarantine("192.0.2.2")
    world.lift("192.0.2.2")
    assert world.occupied() == []
    assert world.delete("nobody") == Released(())


def test_a_note_is_an_event_about_what_it_names(world: World) -> None:
    world.add("t/a", "c1")
    assert world.run(Note(ORIGIN, "cabled anew")) == Done()
    assert world.run(Note(ORIGIN, "renumbered soon", pool="p")) == Done()
    assert world.run(Note(ORIGIN, "new disk", node="n1")) == Done()
    told = [(one.detail, one.pool, one.space, one.node, one.by) for one in world.events() if one.kind is EventKind.NOTE]
    assert told == [
        ("cabled anew", None, None, None, "test"),
        ("renumbered soon", "p", "default", None, "test"),
        ("new disk", None, None, "n1", "test"),
    ]


def test_a_note_about_what_is_not_there_is_refused(world: World) -> None:
    assert refused(world.run(Note(ORIGIN, "x", pool="q"))) is Code.POOL_NOT_FOUND
    assert refused(world.run(Note(ORIGIN, "x", node="n9"))) is Code.NOT_FOUND
