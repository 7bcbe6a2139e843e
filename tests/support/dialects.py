"""Configurations that name no pool, and what they ask for, as text."""

from __future__ import annotations

from typing import Any

from ipamd.cni.call import AddCall
from ipamd.core.addresses import Address
from ipamd.core.commands import PoolRequest
from tests.support.cni_calls import conf, read


def section(*, version: str = "1.1.0", around: dict[str, Any] | None = None, **ipam: Any) -> dict[str, Any]:
    """A configuration with this `ipam` section; `around` are keys of the plugin around it."""
    return conf(cniVersion=version, ipam={"type": "ipamd", **ipam}, **(around or {}))


def add_call(**ipam: Any) -> AddCall:
    """The ADD with an `ipam` section."""
    call = read("add", section(**ipam))
    assert isinstance(call, AddCall)
    return call


def asked(**ipam: Any) -> list[str]:
    """What an `ipam` section asks for: a text for each request."""
    return [told(request) for request in add_call(**ipam).requests]


def told(request: PoolRequest) -> str:
    """A request as text: the pool, then its ranges with gateway and excludes."""
    inline = request.inline
    assert inline is not None
    ranges = []
    for one in inline.ranges:
        family = one.subnet.family
        first, last = Address(family, one.first), Address(family, one.last)
        gateway = "" if one.gateway is None else f" gw {Address(family, one.gateway)}"
        holes = "".join(f" not {Address(family, hole.first)}-{Address(family, hole.last)}" for hole in one.excludes)
        ranges.append(f"{one.subnet} {first}-{last}{gateway}{holes}")
    spared = " spared" if request.spare_first_hosts else ""
    return f"{request.pool} in {inline.space}{spared}: {', '.join(ranges)}"
