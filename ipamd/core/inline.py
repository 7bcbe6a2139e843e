"""Owns inline pools: those that a configuration describes by subnets instead of naming one. Their names, and limits.

A pool is what its subnets are. Bounds, excludes and gateway are no part of it: they travel with each request, so that
two configurations on one subnet share its pool, and an edited one keeps every reservation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ipamd.core.addresses import Network, usable_bounds
from ipamd.core.intervals import Spans
from ipamd.core.model import DEFAULT_SPACE, Pool, PoolDefinition, Range
from ipamd.core.names import NAME_BYTES
from ipamd.core.values import Value

_SEPARATE = "only-"
_DIGEST_DIGITS = 16


class Limits(Value):
    """What a request says of one range of a subnet: nothing else of the subnet is given to it.

    `first` and `last` are the bounds that count, inside the subnet and off network and broadcast address. `excludes`
    lie between them. The gateway may lie anywhere; it is told in the result, and never given. Several ranges may be of
    one subnet.
    """

    subnet: Network
    first: int
    last: int
    excludes: Spans = ()
    gateway: int | None = None


class InlinePool(Value):
    """A pool as a configuration describes it: the ranges are alternatives for one address, tried in their order."""

    space: str
    ranges: tuple[Limits, ...]

    @property
    def subnets(self) -> tuple[Network, ...]:
        """The subnets, each once, in the order in which they come first."""
        return tuple(dict.fromkeys(one.subnet for one in self.ranges))

    @property
    def family(self) -> int:
        """4 or 6."""
        return self.ranges[0].subnet.family


def inline_name(space: str, subnets: Sequence[Network]) -> str:
    """The name of the inline pool of some subnets: `10.0.0.0-24`, `2001-db8---64`, `blue-10.0.0.0-24+10.0.1.0-24`."""
    name = "+".join(_subnet_text(subnet) for subnet in subnets)
    return _fitting(name if space == DEFAULT_SPACE else f"{space}-{name}")


def separate_name(name: str) -> str:
    """The name of pool and space of what shares its addresses with nobody, from the name that it would have had."""
    return _fitting(_SEPARATE + name)


def inline_definition(name: str, space: str, subnets: Sequence[Network]) -> PoolDefinition:
    """The definition of an inline pool: whole subnets."""
    ranges = tuple(Range(subnet, *usable_bounds(subnet)) for subnet in subnets)
    return PoolDefinition(name, (ranges,), space, inline=True)


def is_of_subnets(pool: Pool, subnets: Sequence[Network]) -> bool:
    """Whether a pool gives one address, out of exactly these subnets, in whatever order."""
    return len(pool.sets) == 1 and {one.subnet for one in pool.sets[0]} == set(subnets)


def _subnet_text(subnet: Network) -> str:
    """A name begins with a letter or digit, so `::/96` counts as `0::/96`."""
    text = str(subnet)
    return ("0" + text if text.startswith(":") else text).replace(":", "-").replace("/", "-")


def _fitting(name: str) -> str:
    """A name, cut and made unique by its digest where it is too long."""
    if len(name) <= NAME_BYTES:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_DIGITS]
    return f"{name[: NAME_BYTES - _DIGEST_DIGITS - 1]}-{digest}"
