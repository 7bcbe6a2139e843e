"""Owns what the laws draw from: few pods, few nodes, pools so small that everybody is in everybody's way."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ipamd.core.commands import PoolRequest
from ipamd.core.model import FOREVER, PoolDefinition, Strategy
from tests.core.world import addresses, definition, range_of

PODS = ("t/a", "t/b", "t/c")
SPACES = {"a": "default", "b": "default", "c": "blue"}
NODES = ("n1", "n1", "n2")
SETS: tuple[tuple[Any, ...], ...] = (
    (range_of("192.0.2.0/29"),),
    (range_of("192.0.2.0/29", exclude=("192.0.2.2-192.0.2.3",), gateway="192.0.2.1"),),
    (range_of("192.0.2.4/30"),),
    ((range_of("192.0.2.0/30"), range_of("192.0.2.8/31"), range_of("192.0.2.4/30", "192.0.2.6")),),
    (range_of("192.0.2.0/29"), range_of("2001:db8::/126")),
    (range_of("2001:db8::/126", gateway="2001:db8::2"), range_of("192.0.2.0/28", end="192.0.2.3")),
    (range_of("2001:db8::/127"),),
    (range_of("192.0.2.0/29"), range_of("192.0.2.8/30")),
)
ADDRESSES = addresses(*(f"192.0.2.{number}" for number in range(12)), "2001:db8::", "2001:db8::1", "2001:db8::3")

pools = st.sampled_from(sorted(SPACES))
pods = st.sampled_from(PODS)
nodes = st.sampled_from(NODES)
containers = st.sampled_from(("c1", "c2"))
ifnames = st.sampled_from(("eth0", "eth0", "net1"))
spaces = st.sampled_from(sorted(set(SPACES.values())))
picks = st.integers(0, 40)
"""Which of those that are there, counted round: names drawn at random would mostly miss."""
some_address = st.sampled_from(ADDRESSES)


@st.composite
def definitions(draw: st.DrawFn) -> PoolDefinition:
    name = draw(pools)
    return definition(
        name,
        *draw(st.sampled_from(SETS)),
        space=SPACES[name],
        strategy=draw(st.sampled_from((Strategy.LOWEST, *Strategy))),
        cooldown_s=draw(st.sampled_from((0, 8, None))),
        cooldown_min_s=draw(st.sampled_from((0, 0, 3))),
        hold_s=draw(st.sampled_from((0, 0, 6, FOREVER))),
        allow_overlap=draw(st.sampled_from((True, True, True, False))),
    )


@st.composite
def requests(draw: st.DrawFn) -> tuple[PoolRequest, ...]:
    names = draw(st.lists(pools, min_size=1, max_size=2, unique=True))
    return tuple(PoolRequest(name) for name in names)
