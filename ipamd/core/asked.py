"""Owns what a request asks of a pool: which pool it means, and what the request's limits leave of its ranges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ipamd.core.addresses import Address
from ipamd.core.commands import PoolRequest
from ipamd.core.inline import InlinePool, Limits, inline_definition, is_of_subnets
from ipamd.core.intervals import Span
from ipamd.core.model import Pool, Range, RangeSet
from ipamd.core.outcomes import Code, Refused
from ipamd.core.ports import View
from ipamd.core.values import Value, replace

NOT_MADE = 0
"""The id of a pool that an ADD would make. No record has it."""

NOBODY = ""
"""The pod_ref of a question that is not for a pod."""


class Asked(Value):
    """A pool, and the ranges that a request may use of each of its sets; those with `first` over `last` give nothing.

    `orders` says for each of these ranges which one of the pool's set it is a part of; None: they are the pool's own.
    """

    pool: Pool
    sets: tuple[RangeSet, ...]
    orders: tuple[int, ...] | None = None
    first_hosts: tuple[Address, ...] = ()
    """What is not given because a bridge takes it."""

    @property
    def is_made(self) -> bool:
        """Whether the state has the pool."""
        return self.pool.id != NOT_MADE

    def order(self, number: int) -> int:
        """Which range of the pool's set a range is a part of."""
        return number if self.orders is None else self.orders[number]


def asked_of(view: View, request: PoolRequest, pod_ref: str) -> Asked | Refused:
    """What a pod's request asks. A pool that is not made yet has the id NOT_MADE."""
    inline = request.inline
    if inline is None:
        pool = view.pool(request.pool)
        if pool is None:
            return Refused(Code.POOL_NOT_FOUND, f"there is no pool {request.pool}", request.pool)
        return _spared(Asked(pool, pool.sets), request)
    if not view.settings().inline_pools:
        detail = f"inline pools are switched off (setting inline_pools): a pool must be named for {_texts(inline)}"
        return Refused(Code.INVALID_REQUEST, detail)
    pools = pools_of(view, request)
    if pools:
        return _spared(_limited(_preferred(view, pools, pod_ref), inline), request)
    if view.pool(request.pool) is not None:
        detail = f"pool {request.pool} is not one of {_texts(inline)} in space {inline.space}, but has the name of it"
        return Refused(Code.POOL_EXISTS, detail, request.pool)
    unmade = Pool(NOT_MADE, inline_definition(request.pool, inline.space, inline.subnets), 0)
    return _spared(_limited(unmade, inline), request)


def pools_of(view: View, request: PoolRequest) -> list[Pool]:
    """The pools that a request may mean, the best first: several have the same subnets only where overlaps are allowed.

    What an operator declared comes before what was made on first use.
    """
    if request.inline is None:
        pool = view.pool(request.pool)
        return [] if pool is None else [pool]
    space, subnets = request.inline.space, request.inline.subnets
    found = [pool for pool in view.pools_on(space, subnets[0]) if is_of_subnets(pool, subnets)]
    return sorted(found, key=lambda pool: pool.definition.inline)


def _preferred(view: View, pools: Sequence[Pool], pod_ref: str) -> Pool:
    """The one in which the pod has its reservation already, else the best."""
    if len(pools) == 1:
        return pools[0]
    return next((pool for pool in pools if view.reservation(pool.id, pod_ref) is not None), pools[0])


def _limited(pool: Pool, inline: InlinePool) -> Asked:
    """The ranges of a pool of one set, in the order of the request, cut down to its limits."""
    parts = [
        (order, _cut(one, limits))
        for limits in inline.ranges
        for order, one in enumerate(pool.sets[0])
        if one.subnet == limits.subnet
    ]
    return Asked(pool, (tuple(part for _, part in parts),), tuple(order for order, _ in parts))


def _cut(one: Range, limits: Limits) -> Range:
    """A range within limits. The gateway of the request is told instead of the pool's; neither is given."""
    excludes = one.excludes + limits.excludes
    if one.gateway is not None:
        excludes += (Span(one.gateway, one.gateway),)
    return Range(
        one.subnet,
        max(one.first, limits.first),
        min(one.last, limits.last),
        excludes=excludes,
        gateway=one.gateway if limits.gateway is None else limits.gateway,
    )


def _spared(asked: Asked, request: PoolRequest) -> Asked:
    """Without the first host of each range that has no gateway, where a bridge takes that address itself."""
    if not request.spare_first_hosts:
        return asked
    hosts = tuple(dict.fromkeys(first_hosts(one for ranges in asked.sets for one in ranges)))
    holes = {family: tuple(Span(it.value, it.value) for it in hosts if it.family == family) for family in (4, 6)}
    sets = tuple(
        tuple(replace(one, excludes=one.excludes + holes[one.family]) for one in ranges) for ranges in asked.sets
    )
    return replace(asked, sets=sets, first_hosts=hosts)


def first_hosts(ranges: Iterable[Range]) -> Iterator[Address]:
    """What the bridge plugin takes where a range has no gateway: the one after the network address; a /32 has none."""
    for one in ranges:
        if one.gateway is None and one.subnet.value < one.subnet.last:
            yield Address(one.family, one.subnet.value + 1)


def _texts(inline: InlinePool) -> str:
    return " and ".join(map(str, inline.subnets))
