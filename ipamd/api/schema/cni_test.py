"""Owns the JSON of checking a network configuration."""

from __future__ import annotations

from typing import Any

from ipamd.api.schema.common import Given, Shown
from ipamd.cni.dialects.known import Reading
from ipamd.core.outcomes import Grant, Granted


class CniTestBody(Given):
    """A network configuration as a plugin gets it on stdin, and CNI_ARGS."""

    conf: dict[str, Any]
    args: str = ""


class TestedPool(Shown):
    """One pool of the request, and the addresses that an ADD would get from it now."""

    pool: str
    addresses: tuple[str, ...]


class CniTestShown(Shown):
    """What the server makes of a configuration; `ignored` are keys of its `ipam` section that nobody reads."""

    dialect: str
    pod_ref: str
    pools: tuple[TestedPool, ...]
    ignored: tuple[str, ...]


def show_test(reading: Reading, pod_ref: str, granted: Granted) -> CniTestShown:
    """What the server makes of a configuration."""
    return CniTestShown(
        dialect=reading.dialect,
        pod_ref=pod_ref,
        pools=tuple(_pool(grant) for grant in granted.grants),
        ignored=reading.ignored,
    )


def _pool(grant: Grant) -> TestedPool:
    return TestedPool(pool=grant.pool, addresses=tuple(f"{one.address}/{one.prefix}" for one in grant.addresses))
