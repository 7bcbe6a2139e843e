"""Owns the JSON of pools, and its way to a definition and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from ipamd.api.schema.common import Given, ReadQuery, Shown, StrandedShown, amount, stranded, when
from ipamd.core.addresses import Address, Network, address_text, network_around
from ipamd.core.definition import DefinitionError, PoolText, RangeText, RouteText, define
from ipamd.core.intervals import Span
from ipamd.core.model import Dns, Pool, PoolDefinition, Range
from ipamd.core.outcomes import PoolDropped, PoolStored
from ipamd.core.ports import FamilyCounts
from ipamd.errors import ApiError
from ipamd.service.accounts import RangeAccount
from ipamd.service.doubts import total
from ipamd.service.pools import ShownPool, Usage
from ipamd.service.why import Explained

Text = Annotated[str, msgspec.Meta(max_length=1024)]


class RangeBody(Given):
    """A range: a subnet, perhaps only part of it. `exclude` takes CIDRs, addresses and `a-b`."""

    subnet: Text
    range_start: Text | None = None
    range_end: Text | None = None
    exclude: tuple[Text, ...] | None = None
    gateway: Text | None = None


class RouteBody(Given):
    """A route; without `gw`, a default route goes through the gateway of the range."""

    dst: Text
    gw: Text | None = None


class DnsBody(Given):
    """Name service settings, as in a CNI result."""

    nameservers: tuple[Text, ...] = ()
    domain: Text = ""
    search: tuple[Text, ...] = ()
    options: tuple[Text, ...] = ()


class PoolBody(Given):
    """A pool as it is sent: `ranges`, or for a single range the fields of it at the top level.

    `created` and `inline` are what an answer says beside the definition; they are taken and not read, so that an
    answer can be sent back.
    """

    name: Text
    space: Text = "default"
    ranges: tuple[tuple[RangeBody, ...], ...] | None = None
    subnet: Text | None = None
    range_start: Text | None = None
    range_end: Text | None = None
    exclude: tuple[Text, ...] | None = None
    gateway: Text | None = None
    routes: tuple[RouteBody, ...] | None = None
    dns: DnsBody | None = None
    strategy: Text | None = None
    cooldown_s: int | None = None
    cooldown_min_s: int | None = None
    hold_s: int | None = None
    reclaim: Text | None = None
    allow_overlap: bool | None = None
    labels: dict[str, str] | None = None
    created: str | None = None
    inline: bool | None = None

    def definition(self) -> PoolDefinition:
        """What it means. Raises ApiError."""
        try:
            return define(self._text())
        except DefinitionError as error:
            raise ApiError("invalid_request", str(error)) from None

    def _text(self) -> PoolText:
        dns = self.dns or DnsBody()
        return PoolText(
            name=self.name,
            ranges=tuple(tuple(_range_text(one) for one in inner) for inner in self._ranges()),
            space=self.space,
            routes=tuple(RouteText(route.dst, route.gw) for route in self.routes or ()),
            dns=Dns(dns.nameservers, dns.domain, dns.search, dns.options),
            strategy=self.strategy or "lowest",
            cooldown_s=self.cooldown_s,
            cooldown_min_s=self.cooldown_min_s or 0,
            hold_s=self.hold_s or 0,
            reclaim=self.reclaim,
            allow_overlap=bool(self.allow_overlap),
            labels=tuple((self.labels or {}).items()),
        )

    def _ranges(self) -> tuple[tuple[RangeBody, ...], ...]:
        single = {
            name: value
            for name in ("subnet", "range_start", "range_end", "exclude", "gateway")
            if (value := getattr(self, name)) is not None
        }
        if self.ranges is not None:
            if single:
                raise DefinitionError(f"{next(iter(single))} stands beside ranges: say one or the other")
            return self.ranges
        if "subnet" not in single:
            raise DefinitionError("ranges is missing (or subnet, for a single range)")
        return ((RangeBody(**single),),)


class PoolQuery(Given):
    """Of a change or a deletion."""

    force: bool = False
    dry_run: bool = False


class WhyQuery(ReadQuery):
    """Of the question what an ADD would get."""

    pod_ref: Text | None = None
    ifname: Text = "eth0"
    addresses: Text = ""


class RangeShown(Shown, omit_defaults=True):
    """A range as it was written, in canonical form."""

    subnet: str
    range_start: str | UnsetType = UNSET
    range_end: str | UnsetType = UNSET
    exclude: tuple[str, ...] | UnsetType = UNSET
    gateway: str | UnsetType = UNSET


class RouteShown(Shown, omit_defaults=True):
    """A route of a pool."""

    dst: str
    gw: str | UnsetType = UNSET


class DnsShown(Shown, omit_defaults=True):
    """Name service settings: what is set."""

    nameservers: tuple[str, ...] = ()
    domain: str = ""
    search: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class PoolShown(Shown):
    """A pool. `cooldown_s` and `reclaim` are those in force. `stranded` is there in the answer to a change."""

    name: str
    space: str
    ranges: tuple[tuple[RangeShown, ...], ...]
    routes: tuple[RouteShown, ...]
    dns: DnsShown
    strategy: str
    cooldown_s: int
    cooldown_min_s: int
    hold_s: int
    reclaim: str
    allow_overlap: bool
    labels: dict[str, str]
    inline: bool
    created: str
    stranded: tuple[StrandedShown, ...] | UnsetType = UNSET


class PoolDroppedShown(Shown):
    """A deleted pool, or what deleting it would do: `stranded` are those who lose their addresses by it."""

    stranded: tuple[StrandedShown, ...]


class FamilyUsage(Shown):
    """How the usable addresses of one family are spent: the others sum to `total`. Of `bound`, `suspect` and `lost`."""

    total: int | str
    bound: int | str
    held: int | str
    cooling: int | str
    quarantined: int | str
    withheld: int | str
    elsewhere: int | str
    free: int | str
    suspect: int | str
    lost: int | str


class UsageShown(Shown, omit_defaults=True):
    """The usage of a pool, for each family that it has."""

    ipv4: FamilyUsage | UnsetType = UNSET
    ipv6: FamilyUsage | UnsetType = UNSET


class RangeWhy(Shown):
    """What one range could give, as counts of addresses, and in a clause.

    Of what it gives: `free` to `elsewhere`. Between its bounds, and not given: `excluded`, `gateway`. `outside`: given
    by the pool and outside the limits of what was asked.
    """

    position: int
    order: int
    subnet: str
    first: str
    last: str
    free: int | str
    bound: int | str
    held: int | str
    cooling: int | str
    quarantined: int | str
    withheld: int | str
    elsewhere: int | str
    excluded: int | str
    gateway: int | str
    outside: int | str
    verdict: str


class WhyShown(Shown):
    """What an ADD would get: `addresses` if `granted`, else `code` and `detail` say why not."""

    pool: str
    pod_ref: str
    ifname: str
    granted: bool
    addresses: tuple[str, ...]
    code: str | None
    detail: str
    ranges: tuple[RangeWhy, ...]


class _InForce(NamedTuple):
    cooldown_s: int
    reclaim: str


def show(shown: ShownPool) -> PoolShown:
    """A pool that was read."""
    return _show(shown.pool, _InForce(shown.cooldown_s, shown.reclaim), UNSET)


def show_stored(stored: PoolStored, *, with_stranded: bool) -> PoolShown:
    """A pool that was made or changed."""
    listed = stranded(stored.stranded) if with_stranded else UNSET
    return _show(stored.pool, _InForce(stored.cooldown_s, stored.reclaim), listed)


def show_dropped(dropped: PoolDropped) -> PoolDroppedShown:
    """A pool that was deleted."""
    return PoolDroppedShown(stranded=stranded(dropped.stranded))


def show_usage(usage: Usage) -> UsageShown:
    """The usage of a pool."""
    families = usage.counts.items()
    return UsageShown(**{f"ipv{family}": _usage(one, *total(usage.doubts, family)) for family, one in families})


def show_why(explained: Explained) -> WhyShown:
    """What an ADD would get."""
    return WhyShown(
        pool=explained.pool.name,
        pod_ref=explained.pod_ref,
        ifname=explained.ifname,
        granted=explained.code is None,
        addresses=explained.addresses,
        code=explained.code,
        detail=explained.detail,
        ranges=tuple(show_range(account, explained.wanted) for account in explained.ranges),
    )


def _range_text(body: RangeBody) -> RangeText:
    return RangeText(body.subnet, body.range_start, body.range_end, body.exclude or (), body.gateway)


def _show(pool: Pool, force: _InForce, listed: tuple[StrandedShown, ...] | UnsetType) -> PoolShown:
    own = pool.definition
    return PoolShown(
        name=own.name,
        space=own.space,
        ranges=tuple(tuple(_range_shown(one) for one in inner) for inner in own.sets),
        routes=tuple(RouteShown(dst=str(one.dst), gw=UNSET if one.gw is None else str(one.gw)) for one in own.routes),
        dns=DnsShown(
            nameservers=own.dns.nameservers, domain=own.dns.domain, search=own.dns.search, options=own.dns.options
        ),
        strategy=own.strategy.value,
        cooldown_s=force.cooldown_s,
        cooldown_min_s=own.cooldown_min_s,
        hold_s=own.hold_s,
        reclaim=force.reclaim,
        allow_overlap=own.allow_overlap,
        labels=dict(own.labels),
        inline=own.inline,
        created=when(pool.created_ms),
        stranded=listed,
    )


def _range_shown(one: Range) -> RangeShown:
    return RangeShown(
        subnet=str(one.subnet),
        range_start=_text_or_unset(one.family, one.range_start),
        range_end=_text_or_unset(one.family, one.range_end),
        exclude=tuple(exclude_text(span, one.family) for span in one.excludes) or UNSET,
        gateway=_text_or_unset(one.family, one.gateway),
    )


def _text_or_unset(family: int, value: int | None) -> str | UnsetType:
    return UNSET if value is None else address_text(Address(family, value))


def exclude_text(span: Span, family: int) -> str:
    """An exclude in its shortest form: an address, a CIDR, or `a-b`."""
    first = Address(family, span.first)
    if span.first == span.last:
        return str(first)
    network = _exact_network(span, family)
    return str(network) if network else f"{first}-{Address(family, span.last)}"


def _exact_network(span: Span, family: int) -> Network | None:
    size = span.last - span.first + 1
    if size & (size - 1):
        return None
    bits = 32 if family == 4 else 128
    network = network_around(Address(family, span.first), bits - (size.bit_length() - 1))
    return network if network.value == span.first else None


def _usage(counts: FamilyCounts, suspect: int, lost: int) -> FamilyUsage:
    return FamilyUsage(**{name: amount(value) for name, value in counts._asdict().items()}, suspect=suspect, lost=lost)


def show_range(account: RangeAccount, wanted: Iterable[Address] = ()) -> RangeWhy:
    """What one range could give; of addresses that are insisted on, why it does not allow them."""
    one, spent = account.range, account.spent
    forbidden = [sentence for address in wanted if (sentence := account.forbids(address))]
    return RangeWhy(
        position=account.position,
        order=account.order,
        subnet=str(one.subnet),
        first=address_text(Address(one.family, one.first)),
        last=address_text(Address(one.family, one.last)),
        free=amount(spent.free),
        bound=amount(spent.bound),
        held=amount(spent.held),
        cooling=amount(spent.cooling),
        quarantined=amount(spent.quarantined),
        withheld=amount(spent.withheld),
        elsewhere=amount(spent.elsewhere),
        excluded=amount(account.excluded),
        gateway=amount(account.gateways),
        outside=amount(account.outside),
        verdict="; ".join(forbidden) or account.verdict,
    )
