"""Imports: staged in parts, and carried out as a whole or not at all."""

from __future__ import annotations

from ipamd.core.commands import FinishImport, PoolRequest, StageImport
from ipamd.core.imports import STAGED_S, StagedPart, decode_findings, encode_findings
from ipamd.core.model import EventKind
from ipamd.core.outcomes import Code, Imported
from tests.core.bringing import SUBNET, add, bring, counts, found, inline, of_container, why
from tests.core.world import ORIGIN, World, freed, granted, refused

# Parts


def test_parts_change_nothing_until_all_of_them_are_there() -> None:
    world = World()
    world.run(StageImport(ORIGIN, "i", 1, (found("192.0.2.2"),)))
    assert world.state.pool("192.0.2.0-28") is None
    finish = FinishImport(ORIGIN, "i", 2, (inline(),))
    assert refused(world.run(finish)) is Code.NOT_FOUND
    world.run(StageImport(ORIGIN, "i", 0, (found("192.0.2.3", "t/b", container="c2"),)))
    outcome = world.run(finish)
    assert isinstance(outcome, Imported)
    assert counts(outcome) == (2, 0, 0)
    assert world.holders("192.0.2.0-28") == {"192.0.2.2": "t/a eth0", "192.0.2.3": "t/b eth0"}
    assert world.state.all(StagedPart) == []


def test_a_part_that_is_sent_again_stays_as_it_was() -> None:
    world = World()
    world.run(StageImport(ORIGIN, "i", 0, (found("192.0.2.2"),)))
    world.run(StageImport(ORIGIN, "i", 0, (found("192.0.2.9"),)))
    (part,) = world.state.all(StagedPart)
    assert [str(one.address) for one in part.findings] == ["192.0.2.2"]


def test_parts_that_nobody_finishes_go_after_a_while() -> None:
    world = World()
    for number in range(20):
        world.run(StageImport(ORIGIN, "i", number, (found("192.0.2.2"),)))
    world.wait(STAGED_S)
    world.wait(0)
    world.wait(0)
    assert world.state.all(StagedPart) == []


def test_findings_read_back_from_their_bytes() -> None:
    findings = (found("192.0.2.2"), found("2001:db8::ffff:1", ifname=None, container=None, node="n1", net="k"))
    assert decode_findings(encode_findings(findings)) == findings


# All or nothing


def test_one_conflict_leaves_everything_as_it_was() -> None:
    world = World()
    bring(world, found("192.0.2.2"))
    before = world.events()
    outcome = bring(world, found("192.0.2.3", "t/b", container="c2"), found("192.0.2.2", "t/c", container="c3"))
    assert why(outcome) == ["192.0.2.2 is held by eth0 of t/a, container c1"]
    assert outcome.pools == ()
    assert world.events() == before
    assert world.state.all(StagedPart) == []


def test_every_conflict_is_listed_with_its_place() -> None:
    world = World()
    bring(world, found("192.0.2.2"), found("192.0.2.5", "t/d", container="c5", node="n5"))
    outcome = bring(
        world,
        found("192.0.2.2", "t/c", container="c3"),
        found("192.0.2.5", "t/d", "net1", "c5"),
        found("192.0.2.9", "t/a", "eth0", "c9"),
        found("198.51.100.1", "t/e", container="c6"),
        found("192.0.2.7", "t/f", container="c7"),
        found("192.0.2.7", "t/g", container="c8"),
    )
    assert [one.place for one in outcome.conflicts] == [
        "place of 192.0.2.2",
        "place of 192.0.2.5",
        "place of 192.0.2.9",
        "place of 198.51.100.1",
        "place of 192.0.2.7",
    ]
    assert why(outcome) == [
        "192.0.2.2 is held by eth0 of t/a, container c1",
        "192.0.2.5 is held by eth0 of t/d, container c5 on node n5",
        "192.0.2.9 is not what eth0 of t/a holds in pool 192.0.2.0-28: 192.0.2.2",
        "198.51.100.1 lies in no subnet of pool 192.0.2.0-28",
        "192.0.2.7 is given away twice: place of 192.0.2.7",
    ]


def test_a_second_import_changes_nothing_and_a_larger_one_adds_what_is_new() -> None:
    world = World()
    first = found("192.0.2.2"), of_container("192.0.2.3", "c2"), found("192.0.2.4", "t/d", None, "c4")
    assert counts(bring(world, *first)) == (3, 0, 0)
    before = world.events(), world.holders("192.0.2.0-28")
    assert counts(bring(world, *first)) == (0, 3, 0)
    assert (world.events(), world.holders("192.0.2.0-28")) == before
    assert counts(bring(world, *first, found("192.0.2.5", "t/e", container="c5"))) == (1, 3, 0)


def test_an_import_that_was_claimed_since_is_the_same_still() -> None:
    world = World()
    first = found("192.0.2.2"), of_container("192.0.2.3", "c2"), found("192.0.2.4", "t/d", None, "c4")
    bring(world, *first)
    assert granted(add(world, "t/a", "c9")) == "192.0.2.2"
    assert granted(add(world, "t/b", "c2")) == "192.0.2.3"
    assert granted(add(world, "t/d", "c8", ifname="net1")) == "192.0.2.4"
    assert counts(bring(world, *first)) == (0, 3, 0)


def test_what_was_given_back_since_does_not_come_again() -> None:
    world = World()
    bring(world, found("192.0.2.2"))
    assert freed(world.delete("c1")) == ["192.0.2.2"]
    assert counts(bring(world, found("192.0.2.2"))) == (0, 0, 1)
    other = found("192.0.2.2", "t/b", container="c2")
    assert counts(bring(world, other)) == (1, 0, 0)


def test_a_quarantined_address_is_taken_and_stays_in_quarantine() -> None:
    world = World()
    world.pool("p", SUBNET)
    world.quarantine("192.0.2.2")
    assert counts(bring(world, found("192.0.2.2"), pools=(PoolRequest("p"),))) == (1, 0, 0)
    world.delete("c1")
    assert world.occupied() == ["192.0.2.2"]


def test_a_declared_pool_of_the_subnet_is_used_even_where_inline_pools_are_off() -> None:
    world = World()
    world.pool("mine", SUBNET)
    world.settings(inline_pools=False)
    (pool,) = bring(world, found("192.0.2.2")).pools
    assert (pool.pool, pool.created) == ("mine", False)
    world.run(StageImport(ORIGIN, "i", 0, (found("198.51.100.2"),)))
    outcome = world.run(FinishImport(ORIGIN, "i", 1, (inline("198.51.100.0/24"),)))
    assert refused(outcome) is Code.INVALID_REQUEST


def test_a_pool_named_that_is_gone_refuses_all() -> None:
    world = World()
    world.run(StageImport(ORIGIN, "i", 0, (found("192.0.2.2"),)))
    assert refused(world.run(FinishImport(ORIGIN, "i", 1, (PoolRequest("p"),)))) is Code.POOL_NOT_FOUND


def test_events_tell_the_history_of_an_import() -> None:
    world = World()
    bring(world, found("192.0.2.2", node="n7"), found("192.0.2.3", "t/b", "eth0", None))
    kinds = [(one.kind, one.pod_ref, one.node, one.detail) for one in world.events()]
    assert kinds == [
        (EventKind.POOL_CREATED, None, None, "imported"),
        (EventKind.BOUND, "t/a", "n7", "imported"),
        (EventKind.HELD, "t/b", None, "imported"),
    ]
    assert world.state.node("n7") is not None
