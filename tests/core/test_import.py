"""Imports: staged in parts, carried out as a whole or not at all, and claimed by whoever names the container."""

from __future__ import annotations

from typing import Any

import pytest

from ipamd.core.addresses import parse_address, parse_network, usable_bounds
from ipamd.core.commands import (
    Add,
    Binding,
    CallStart,
    Claim,
    FinishImport,
    PoolRequest,
    Reclaim,
    ReclaimCause,
    StageImport,
)
from ipamd.core.imports import (
    STAGED_S,
    Finding,
    StagedPart,
    decode_findings,
    encode_findings,
    is_named_after,
    is_open_pod,
    open_ifname,
    pod_ref_of,
)
from ipamd.core.inline import InlinePool, Limits, inline_name
from ipamd.core.model import EventKind, Owner
from ipamd.core.outcomes import Code, Done, Imported, Outcome
from tests.core.world import ORIGIN, World, freed, granted, refused

SUBNET = "192.0.2.0/28"


def inline(subnet: str = SUBNET, space: str = "default") -> PoolRequest:
    network = parse_network(subnet)
    ranges = (Limits(network, *usable_bounds(network)),)
    return PoolRequest(inline_name(space, [network]), InlinePool(space, ranges))


def found(
    address: str,
    pod: str = "t/a",
    ifname: str | None = "eth0",
    container: str | None = "c1",
    *,
    pool: int = 0,
    node: str | None = None,
    net: str | None = None,
) -> Finding:
    return Finding(pool, parse_address(address), f"place of {address}", pod, ifname, container, node, net)


def of_container(address: str, container: str = "c1", ifname: str | None = "eth0", **rest: Any) -> Finding:
    """What host-local knows."""
    return found(address, pod_ref_of(rest.get("node"), container), ifname, container, **rest)


def bring(world: World, *findings: Finding, pools: tuple[PoolRequest, ...] = (inline(),)) -> Imported:
    """An import in one part."""
    name = f"i{len(findings)}-{world.state.last_event}"
    assert world.run(StageImport(ORIGIN, name, 0, findings)) == Done()
    outcome = world.run(FinishImport(ORIGIN, name, 1, pools))
    assert isinstance(outcome, Imported), outcome
    return outcome


def counts(outcome: Imported) -> tuple[int, int, int]:
    assert not outcome.conflicts, outcome
    return tuple(sum(getattr(one, name) for one in outcome.pools) for name in ("made", "kept", "gone"))


def why(outcome: Imported) -> list[str]:
    return [f"{one.address} {one.why}" for one in outcome.conflicts]


def add(world: World, pod: str, container: str, *pools: PoolRequest, ifname: str = "eth0", node: str = "n1") -> Outcome:
    """An ADD of an inline pool."""
    owner, call = Owner(container, node, "k"), CallStart("b1", world.log_ms)
    return world.run(Add(ORIGIN, pools or (inline(),), pod, ifname, owner, call))


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


# What is open


def test_a_known_pod_keeps_its_address_through_a_new_container() -> None:
    world = World()
    bring(world, found("192.0.2.6"))
    assert granted(add(world, "t/a", "c2", node="n2")) == "192.0.2.6"
    mine = world.bound("t/a", pool="192.0.2.0-28")
    assert mine.owner == Owner("c2", "n2", "k")
    assert freed(world.delete("c1", node="n9", net="other")) == []
    assert freed(world.delete("c2", node="n2")) == ["192.0.2.6"]


@pytest.mark.parametrize(("node", "net"), [("n1", "k"), ("n2", "other")])
def test_a_del_from_wherever_the_container_is_frees_it(node: str, net: str) -> None:
    world = World()
    bring(world, found("192.0.2.6"), of_container("192.0.2.7", "c2", None))
    assert freed(world.delete("c1", node=node, net=net)) == ["192.0.2.6"]
    assert freed(world.delete("c2", node=node, net=net, ifname="net9")) == ["192.0.2.7"]
    assert freed(world.delete("c3", node=node, net=net)) == []


def test_a_del_of_another_place_than_the_source_names_frees_nothing() -> None:
    world = World()
    bring(world, found("192.0.2.6", node="n1", net="k"))
    assert freed(world.delete("c1", node="n2", net="k")) == []
    assert freed(world.delete("c1", node="n1", net="other")) == []
    assert freed(world.delete("c1", node="n1", net="k")) == ["192.0.2.6"]


def test_a_named_interface_is_freed_before_an_open_one() -> None:
    world = World()
    bring(world, found("192.0.2.6"), found("192.0.2.7", ifname=None))
    assert freed(world.delete("c1")) == ["192.0.2.6"]
    assert freed(world.delete("c1", ifname="net1")) == ["192.0.2.7"]


def test_open_interfaces_are_adopted_one_after_the_other() -> None:
    world = World()
    bring(world, found("192.0.2.6", ifname=None), found("192.0.2.7", ifname=None))
    assert granted(add(world, "t/a", "c1", ifname="net1")) == "192.0.2.6"
    assert granted(add(world, "t/a", "c1", ifname="net2")) == "192.0.2.7"
    assert granted(add(world, "t/a", "c1", ifname="net1")) == "192.0.2.6"
    assert granted(add(world, "t/a", "c1", ifname="net3")) == "192.0.2.1"


def test_a_container_whose_pod_was_not_known_gets_it_with_its_add() -> None:
    world = World()
    bring(world, of_container("192.0.2.6"))
    assert granted(add(world, "t/a", "c1")) == "192.0.2.6"
    assert world.holders("192.0.2.0-28") == {"192.0.2.6": "t/a eth0"}
    assert [one.kind for one in world.events()][-1] is EventKind.CLAIMED
    assert granted(add(world, "t/a", "c2")) == "192.0.2.6"


def test_without_pod_data_the_container_keeps_its_own_name() -> None:
    world = World()
    bring(world, of_container("192.0.2.6"), of_container("192.0.2.7", "c2", node="n1"))
    assert granted(add(world, "_/n1/c1", "c1")) == "192.0.2.6"
    assert granted(add(world, "_/n1/c2", "c2")) == "192.0.2.7"
    assert world.holders("192.0.2.0-28") == {"192.0.2.6": "_/n1/c1 eth0", "192.0.2.7": "_/n1/c2 eth0"}


def test_another_container_does_not_get_what_nobody_has_claimed() -> None:
    world = World()
    bring(world, of_container("192.0.2.6"))
    assert granted(add(world, "t/a", "c9")) == "192.0.2.1"
    assert granted(add(world, "t/b", "c1", ifname="net1")) == "192.0.2.2"


def test_an_add_brings_along_what_lies_in_the_pool_of_a_smaller_subnet() -> None:
    world = World()
    small = inline("192.0.2.0/28")
    large = inline("192.0.2.0/24")
    bring(world, of_container("192.0.2.6"), of_container("192.0.2.7", "c2", None), pools=(small,))
    assert granted(add(world, "t/a", "c1", large)) == "192.0.2.6"
    assert world.holders("192.0.2.0-24") == {"192.0.2.6": "t/a eth0"}
    assert world.holders("192.0.2.0-28") == {"192.0.2.7": "_//c2 :1"}
    (assigned,) = world.state.assigned(world.bound("t/a", pool="192.0.2.0-24").id)
    assert assigned.prefix == 24
    assert granted(add(world, "t/b", "c2", large, ifname="net1")) == "192.0.2.7"
    assert world.holders("192.0.2.0-28") == {}
    assert freed(world.delete("c1")) == ["192.0.2.6"]


def test_what_a_declared_pool_holds_stays_there() -> None:
    world = World()
    world.pool("mine", "192.0.2.0/28", allow_overlap=True)
    bring(world, of_container("192.0.2.6"), pools=(PoolRequest("mine"),))
    assert granted(add(world, "t/a", "c1", inline("192.0.2.0/24"))) == "192.0.2.1"


def test_a_pod_that_has_a_reservation_takes_in_what_its_container_has() -> None:
    world = World()
    add(world, "t/a", "c1", ifname="net1")
    bring(world, of_container("192.0.2.6"))
    assert granted(add(world, "t/a", "c1")) == "192.0.2.6"
    assert world.holders("192.0.2.0-28") == {"192.0.2.1": "t/a net1", "192.0.2.6": "t/a eth0"}


def test_an_address_for_each_outer_entry_shares_one_open_interface() -> None:
    world = World()
    world.pool("dual", SUBNET, "2001:db8::/64")
    bring(
        world,
        of_container("192.0.2.6", "c1", None),
        of_container("2001:db8::6", "c1", None),
        of_container("192.0.2.7", "c1", None),
        pools=(PoolRequest("dual"),),
    )
    outcome = world.add("t/a", "c1", pools="dual")
    assert [str(one.address) for one in outcome.grants[0].addresses] == ["192.0.2.6", "2001:db8::6"]  # type: ignore[union-attr]


def test_two_addresses_of_one_interface_go_together() -> None:
    world = World()
    bring(world, found("192.0.2.6"), found("192.0.2.7"))
    assert granted(add(world, "t/a", "c1")) == "192.0.2.6"
    assert freed(world.delete("c1")) == ["192.0.2.6", "192.0.2.7"]


def test_what_has_no_container_is_held_for_its_pod() -> None:
    world = World()
    bring(world, found("192.0.2.6", container=None))
    world.wait(10**6)
    assert granted(add(world, "t/a", "c1")) == "192.0.2.6"


def test_a_pod_that_nobody_knows_is_not_held_for() -> None:
    world = World()
    world.pool("p", SUBNET, hold_s=60)
    bring(world, of_container("192.0.2.6"), found("192.0.2.7", container="c2"), pools=(PoolRequest("p"),))
    assert freed(world.delete("c1")) == ["192.0.2.6"]
    assert freed(world.delete("c2")) == []
    assert world.occupied() == ["192.0.2.7"]


def test_a_claim_fills_in_what_is_open_and_nothing_else() -> None:
    world = World()
    bring(world, of_container("192.0.2.6", "c1", None), found("192.0.2.7", "t/b", "eth0", "c2", node="n1", net="k"))
    opened = world.state.attachments_of_container("c1", "eth0")[0]
    closed = world.state.attachments_of_container("c2", "eth0")[0]
    both = (Binding(opened.id, opened.generation), Binding(closed.id, closed.generation))
    world.run(Claim(ORIGIN, both, "net1", "n2", "k2"))
    now = world.state.attachment_by_id(opened.id)
    assert now is not None
    assert (now.ifname, now.owner, now.generation) == ("net1", Owner("c1", "n2", "k2"), opened.generation)
    assert world.state.attachment_by_id(closed.id) == closed
    assert world.holders("192.0.2.0-28")["192.0.2.6"] == "_/n2/c1 net1"
    assert [one.kind for one in world.events()].count(EventKind.CLAIMED) == 1
    world.run(Claim(ORIGIN, both, "net1", "n2", "k2"))
    assert [one.kind for one in world.events()].count(EventKind.CLAIMED) == 1


def test_a_claim_of_a_binding_that_is_not_current_changes_nothing() -> None:
    world = World()
    bring(world, of_container("192.0.2.6"))
    opened = world.state.attachments_of_container("c1", "eth0")[0]
    add(world, "t/a", "c1")
    before = world.state.attachment_by_id(opened.id)
    world.run(Claim(ORIGIN, (Binding(opened.id, opened.generation), Binding(999, 1)), "eth0", "n9", "k9"))
    assert world.state.attachment_by_id(opened.id) == before


def test_the_release_of_what_nobody_claimed_spares_what_was() -> None:
    world = World()
    bring(world, of_container("192.0.2.6"), of_container("192.0.2.7", "c2"))
    seen = [one for name in ("c1", "c2") for one in world.state.attachments_of_container(name, "eth0")]
    world.run(Claim(ORIGIN, (Binding(seen[0].id, 1),), "eth0", "n1", "k"))
    bindings = tuple(Binding(one.id, one.generation) for one in seen)
    outcome = world.run(Reclaim(ORIGIN, ReclaimCause.UNCLAIMED, None, bindings))
    assert freed(outcome) == ["192.0.2.7"]


# Names


def test_what_is_open_has_names_that_nothing_else_has() -> None:
    assert open_ifname(()) == ":1"
    assert open_ifname({":1", "eth0", ":2"}) == ":3"
    assert pod_ref_of(None, "c1") == "_//c1"
    assert pod_ref_of("n1", "c1") == "_/n1/c1"
    assert pod_ref_of("east:n1", "c1") == "east:_/n1/c1"
    assert pod_ref_of(None, "c1", "east") == "east:_//c1"
    assert is_named_after("east:_//c1", "c1")
    assert is_named_after("_/n1/c1", "c1")
    assert not is_named_after("_/n1/c1", "c2")
    assert not is_named_after("t/c1", "c1")
    assert is_open_pod("east:_//c1")
    assert not is_open_pod("_/n1/c1")
