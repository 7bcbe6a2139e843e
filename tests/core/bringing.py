"""Owns imports in a few words, for the tests of the core: findings, and the two commands that bring them."""

from __future__ import annotations

from typing import Any

from ipamd.core.addresses import parse_address, parse_network, usable_bounds
from ipamd.core.commands import Add, CallStart, FinishImport, PoolRequest, StageImport
from ipamd.core.imports import Finding, pod_ref_of
from ipamd.core.inline import InlinePool, Limits, inline_name
from ipamd.core.model import Owner
from ipamd.core.outcomes import Done, Imported, Outcome
from tests.core.world import ORIGIN, World

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
