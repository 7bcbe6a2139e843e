"""Which pools may give an address: searched for, it is what one finds who looks at every range."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ipamd.core.addresses import Address, parse_address
from ipamd.core.giving import Giving
from ipamd.core.intervals import Span
from ipamd.core.model import Pool, PoolDefinition, Range
from tests.core.world import definition, range_of

SUBNETS = ("10.0.0.0/26", "fd00::/122")
BEGINS = {int(parse_address(subnet.partition("/")[0]).value): subnet for subnet in SUBNETS}

offsets = st.integers(0, 63)


@st.composite
def ranges(draw: st.DrawFn) -> Range:
    """A range anywhere in 64 addresses of either family, with holes."""
    begin = draw(st.sampled_from(sorted(BEGINS)))
    first, last = sorted(begin + draw(offsets) for _ in range(2))
    holes = draw(st.lists(st.tuples(offsets, offsets), max_size=4))
    excludes = tuple(Span(begin + min(hole), begin + max(hole)) for hole in holes)
    gateway = draw(st.none() | st.integers(begin, begin + 63))
    return Range(range_of(BEGINS[begin]).subnet, first, last, None, None, excludes, gateway)


sets = st.lists(st.lists(ranges(), min_size=1, max_size=4).map(tuple), min_size=1, max_size=3).map(tuple)


@given(st.lists(sets, max_size=8), st.permutations(range(8)))
def test_it_is_what_every_range_says(all_sets: list[tuple[tuple[Range, ...], ...]], ids: list[int]) -> None:
    pools = [Pool(ids[at], PoolDefinition(f"p{at}", one), 0) for at, one in enumerate(all_sets)]
    giving = Giving(pools)
    for begin, subnet in BEGINS.items():
        family = range_of(subnet).family
        for value in (begin + offset for offset in range(64)):
            address = Address(family, value)
            naive = [pool for pool in pools if any(one.gives(address) for inner in pool.sets for one in inner)]
            assert giving.of(address) == naive


def test_a_pool_stands_once_whatever_of_it_gives_the_address() -> None:
    pool = Pool(1, definition("p", "192.0.2.0/24", "192.0.2.0/25"), 0)
    assert Giving([pool]).of(parse_address("192.0.2.1")) == [pool]
    assert Giving([pool]).of(parse_address("2001:db8::1")) == []
    assert Giving([]).of(parse_address("192.0.2.1")) == []
