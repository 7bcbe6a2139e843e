"""Owns the JSON of checking a network configuration."""

from __future__ import annotations

from typing import Any, NamedTuple

from ipamd.api.schema.common import Given, Shown
from ipamd.api.schema.pools import exclude_text, show_range
from ipamd.cni.call import AddCall
from ipamd.core.addresses import Address, address_text
from ipamd.core.outcomes import Grant, Granted, Refused
from ipamd.errors import ERRORS
from ipamd.service.accounts import RangeAccount
from ipamd.service.rehearsal import AskedPool, Rehearsed


class CniTestBody(Given):
    """A network configuration as a plugin gets it on stdin, CNI_ARGS, and the interface."""

    conf: dict[str, Any]
    args: str = ""
    ifname: str = "eth0"


class AskedRange(Shown):
    """What the request leaves of a range of the pool, and what it could give; `verdict` is a clause for people."""

    subnet: str
    first: str
    last: str
    exclude: tuple[str, ...]
    gateway: str | None
    free: int | str
    verdict: str


class TestedPool(Shown):
    """One pool of the request, and the addresses that an ADD would get from it now.

    `origin`: `declared`, `inline` (made by an earlier ADD or an import), or `new` (this ADD would make it).
    """

    pool: str
    space: str
    origin: str
    addresses: tuple[str, ...]
    ranges: tuple[AskedRange, ...]


class CniTestShown(Shown):
    """What the server makes of a configuration.

    `result` is what an ADD would print, null where it would be refused; then `code`, `cni_code` and `detail` say why.
    `ignored`: keys of the `ipam` section that nobody reads; `notes`: what a person should know, a sentence each.
    """

    dialect: str
    cni_network: str
    cni_version: str
    pod_ref: str
    ifname: str
    requested: tuple[str, ...]
    granted: bool
    code: str | None
    cni_code: int | None
    detail: str
    pools: tuple[TestedPool, ...]
    result: Any
    ignored: tuple[str, ...]
    notes: tuple[str, ...]


class Findings(NamedTuple):
    """What was found beside the pools; see CniTestShown."""

    result: Any
    ignored: tuple[str, ...]
    notes: tuple[str, ...]


def show_test(dialect: str, call: AddCall, rehearsed: Rehearsed, findings: Findings) -> CniTestShown:
    """What the server makes of a configuration."""
    refused = rehearsed.outcome if isinstance(rehearsed.outcome, Refused) else None
    grants = rehearsed.outcome.grants if isinstance(rehearsed.outcome, Granted) else ()
    code = None if refused is None else refused.code.value
    return CniTestShown(
        dialect=dialect,
        cni_network=call.cni_network,
        cni_version=call.version,
        pod_ref=call.pod_ref,
        ifname=call.ifname,
        requested=tuple(str(address) for address in call.addresses),
        granted=code is None,
        code=code,
        cni_code=None if code is None else ERRORS[code].cni,
        detail=rehearsed.detail,
        pools=tuple(_pool(asked, grants, call.addresses) for asked in rehearsed.pools),
        result=findings.result,
        ignored=findings.ignored,
        notes=findings.notes,
    )


def _pool(one: AskedPool, grants: tuple[Grant, ...], wanted: tuple[Address, ...]) -> TestedPool:
    pool = one.asked.pool
    grant = next((grant for grant in grants if grant.pool == pool.name), None)
    return TestedPool(
        pool=pool.name,
        space=pool.space,
        origin="new" if not one.asked.is_made else "inline" if pool.definition.inline else "declared",
        addresses=tuple(f"{given.address}/{given.prefix}" for given in grant.addresses) if grant else (),
        ranges=tuple(_range(account, wanted) for account in one.ranges),
    )


def _range(account: RangeAccount, wanted: tuple[Address, ...]) -> AskedRange:
    one, shown = account.range, show_range(account, wanted)
    return AskedRange(
        subnet=shown.subnet,
        first=shown.first,
        last=shown.last,
        exclude=tuple(exclude_text(span, one.family) for span in one.excludes),
        gateway=None if one.gateway is None else address_text(Address(one.family, one.gateway)),
        free=shown.free,
        verdict=shown.verdict,
    )
