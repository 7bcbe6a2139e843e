"""Random configurations over small subnets: every ADD gets what an allocator of plain sets gives."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ipamd.cni.errors import CniError
from ipamd.core.addresses import parse_address
from ipamd.core.asked import Asked, asked_of
from ipamd.core.commands import Add, CallStart, ChangeSettings, Del, PoolRequest, SetQuarantine
from ipamd.core.model import AssignedAddress, Event, EventKind, Owner, Pool, Strategy
from ipamd.core.outcomes import Code, Granted, Refused, Released
from tests.core.brute import Brute, Config, Declared, Ip, Net, Wanted, Written, usable
from tests.core.world import ORIGIN, World, range_of
from tests.support.dialects import add_call

V4 = ("192.0.2.0/28", "192.0.2.0/29", "192.0.2.8/29", "192.0.2.4/30", "192.0.2.12/30", "192.0.2.2/31", "192.0.2.9/32")
V6 = ("fd00::/125", "fd00::/126", "fd00::4/126", "fd00::2/127", "fd00::7/128")
NETS: list[Net] = [ip_network(text) for text in (*V4, *V6)]
CODES = {Code.POOL_EXHAUSTED: 110, Code.ADDRESS_TAKEN: 111, Code.ADDRESS_NOT_ALLOWED: 111}

seldom = st.sampled_from((False,) * 7 + (True,))
pods = st.sampled_from([f"t/{letter}" for letter in "abcdef"])
ifnames = st.sampled_from(("eth0", "eth0", "eth0", "net1"))
nets = st.sampled_from(NETS)
APART = (
    (("192.0.2.0/29", "192.0.2.8/29"), ("192.0.2.4/30", "192.0.2.12/30"), ("192.0.2.2/31", "192.0.2.9/32"), V4[:1]),
    (("fd00::/126", "fd00::4/126"), ("fd00::2/127", "fd00::7/128"), V6[:1]),
)
"""By family: subnets that do not overlap, for most of those that stand in one configuration."""

spaces = st.sampled_from(("default", "default", "blue"))
all_ips = st.sampled_from([ip for text in ("192.0.2.0/28", "fd00::/125") for ip in ip_network(text)])
"""Every address that the subnets have."""


def ips_of(net: Net) -> st.SearchStrategy[Ip]:
    return st.sampled_from(list(net))


@st.composite
def written(draw: st.DrawFn, net: Net) -> Written:
    """A range, now and then a nonsensical one."""
    start, end = (draw(st.none() | ips_of(net) | (all_ips if draw(seldom) else st.none())) for _ in "ab")
    if start and end and start.version == end.version and not draw(seldom):
        start, end = sorted((start, end), key=int)
    pairs = draw(st.lists(st.tuples(ips_of(net), ips_of(net)), max_size=2))
    excludes = tuple((min(pair, key=int), max(pair, key=int)) for pair in pairs)
    return Written(net, start, end, excludes, draw(st.none() | st.none() | ips_of(net) | all_ips))


@st.composite
def configs(draw: st.DrawFn) -> Config:
    local = draw(st.booleans())
    flip = draw(st.integers(0, 1))
    sets = []
    for number in range(draw(st.sampled_from((1, 1, 2, 3)))):
        apart = [ip_network(text) for text in draw(st.sampled_from(APART[(number + flip) % 2]))]
        some = draw(st.permutations(apart)) if not draw(seldom) else [draw(nets), draw(nets)]
        sets.append(tuple(draw(written(net)) for net in some[: draw(st.integers(1, 2)) if local else 1]))
    if local:
        sets = [tuple(Written(one.net, one.start, one.end, (), one.gateway) for one in inner) for inner in sets]
    else:
        sets = [(Written(one.net, one.start, one.end, one.excludes),) for (one,) in sets]
    return Config(
        local,
        tuple(sets),
        None if local else draw(st.none() | all_ips),
        draw(spaces),
        separate=not local and draw(seldom),
        bridge=draw(seldom),
    )


class Ask(NamedTuple):
    """An ADD. `style` chooses among ways to write its configuration."""

    config: Config
    style: int
    pod: str
    ifname: str
    ips: tuple[Ip, ...]


@st.composite
def asks(draw: st.DrawFn) -> Ask:
    ips = tuple(draw(st.lists(all_ips, min_size=1, max_size=2))) if draw(seldom) else ()
    return Ask(draw(configs()), draw(st.integers(0, 29)), draw(pods), draw(ifnames), ips)


def rendered(config: Config, style: int) -> dict[str, Any]:
    """The configuration as JSON."""
    around = {"isGateway": True} if config.bridge and style % 2 else {"isDefaultGateway": config.bridge}
    space = {} if config.space == "default" and style % 3 else {"space": config.space}
    if config.local:
        ranges = [[_subnet(one, style) for one in inner] for inner in config.sets]
        flat = len(ranges[0]) == 1 and style % 5 == 0
        body = {**ranges[0][0], "ranges": ranges[1:]} if flat else {"ranges": ranges}
        return {**body, **space, "around": around}
    items = [_range(inner[0], style) for inner in config.sets]
    body = {**items[0], "ipRanges": items[1:]} if style % 5 else {"ipRanges": items}
    gateway = {} if config.gateway is None else {"gateway": str(config.gateway)}
    separate = {"enable_overlapping_ranges": False} if config.separate else {}
    return {**body, **space, **gateway, **separate, "around": around}


def _subnet(one: Written, style: int) -> dict[str, Any]:
    host = list(one.net)[style % one.net.num_addresses]
    keys = {"rangeStart": one.start, "rangeEnd": one.end, "gateway": one.gateway}
    said = {key: str(ip) for key, ip in keys.items() if ip is not None}
    return {"subnet": f"{host}/{one.net.prefixlen}", **said}


def _range(one: Written, style: int) -> dict[str, Any]:
    excludes = {"exclude": [_exclude(*pair, style) for pair in one.excludes]} if one.excludes else {}
    if one.start and one.end and style % 2 and one.end in one.net:
        return {"range": f"{one.start}-{one.end}/{one.net.prefixlen}", **excludes}
    host = list(one.net)[style % one.net.num_addresses]
    said = {key: str(ip) for key, ip in (("range_start", one.start), ("range_end", one.end)) if ip is not None}
    return {"range": f"{host}/{one.net.prefixlen}", **said, **excludes}


def _exclude(first: Ip, last: Ip, style: int) -> str:
    if first == last and style % 2:
        return f"{first}/{first.max_prefixlen}" if style % 3 else str(first)
    return f"{first}-{last}"


class BruteForce(RuleBasedStateMachine):
    """The program's decisions beside the second allocator's."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.brute = Brute(0)
        self.asked: list[Ask] = []
        """What was granted."""

    @initialize(
        cooldown_s=st.sampled_from((0, 5)),
        declared=st.lists(st.tuples(nets, st.integers(0, 3)), max_size=5, unique_by=lambda one: one[0]),
        space=spaces,
    )
    def begin(self, cooldown_s: int, declared: list[tuple[Net, int]], space: str) -> None:
        self.world.run(ChangeSettings(ORIGIN, cooldown_s=cooldown_s))
        self.brute.cooldown_ms = cooldown_s * 1000
        for number, (net, cut) in enumerate(declared):
            self._declare(f"declared-{number}", net, cut, space)

    def _declare(self, name: str, net: Net, cut: int, space: str) -> None:
        """A pool that gives the upper part of its subnet, but for its gateway."""
        gives = usable(net)
        first, gateway = gives[min(cut, len(gives) - 1)], gives[-1] if cut else None
        one = range_of(str(net), str(first), gateway=str(gateway) if gateway else "")
        self.world.pool(name, one, space=space, allow_overlap=True, cooldown_s=None)
        left = frozenset(ip for ip in gives if int(ip) >= int(first) and ip != gateway)
        self.brute.declared[space, frozenset({net})] = Declared({net: left}, {net: gateway} if gateway else {})

    # What happens

    @rule(asked=st.lists(asks(), min_size=1, max_size=4))
    def add(self, asked: list[Ask]) -> None:
        for one in asked:
            expected = self.brute.read(one.config)
            if expected is None:
                with pytest.raises(CniError) as refusal:
                    add_call(**rendered(one.config, one.style))
                assert refusal.value.code == 7
            else:
                self._add(add_call(**rendered(one.config, one.style)).requests, expected, one)

    def _add(self, requests: tuple[PoolRequest, ...], expected: list[Wanted], ask: Ask) -> None:
        for request, want in zip(requests, expected, strict=True):
            assert self._usable(request, ask.pod) == [[int(ip) for ip in part.gives] for part in want.parts]
        self.brute.pass_time(self.world.log_ms)
        given = self.brute.add(expected, ask.pod, ask.ifname, ask.ips)
        owner, call = Owner(ask.pod.replace("/", "-"), "n1", "k"), CallStart("b1", self.world.log_ms)
        ips = tuple(parse_address(str(ip)) for ip in ask.ips)
        outcome = self.world.run(Add(ORIGIN, requests, ask.pod, ask.ifname, owner, call, addresses=ips))
        if isinstance(outcome, Refused):
            assert CODES[outcome.code] == given, outcome.detail
            return
        assert isinstance(outcome, Granted)
        self.asked.append(ask)
        found = [one for grant in outcome.grants for one in grant.addresses]
        assert [ip_address(str(one.address)) for one in found] == given
        for one, want in zip(found, expected, strict=True):
            ip = ip_address(str(one.address))
            parts = [part for part in want.parts if ip in part.gives] or [part for part in want.parts if ip in part.net]
            assert (one.prefix, one.gateway and ip_address(str(one.gateway))) == (
                parts[0].net.prefixlen,
                parts[0].gateway,
            )

    def _usable(self, request: PoolRequest, pod: str) -> list[list[int]]:
        """What a request may be given of each of its ranges, one by one."""
        asked = asked_of(self.world.state, request, pod)
        assert isinstance(asked, Asked)
        (ranges,) = asked.sets
        return [[ip for span in one.usable for ip in range(span.first, span.last + 1)] for one in ranges]

    @rule(pick=st.integers(0, 20), again=st.booleans(), one=asks())
    def delete(self, pick: int, again: bool, one: Ask) -> None:
        """Delete one of those that are there; `again`: it comes back, mostly with what it had asked for."""
        if self.asked:
            last = self.asked.pop(pick % len(self.asked))
            self._delete(last.pod, last.ifname)
            if again:
                self.add([last._replace(config=one.config) if one.style == 0 else last])

    def _delete(self, pod: str, ifname: str) -> None:
        self.brute.pass_time(self.world.log_ms)
        freed = self.brute.delete(pod, ifname, self.world.log_ms)
        call = CallStart("b1", self.world.log_ms)
        outcome = self.world.run(Del(ORIGIN, "n1", "k", pod.replace("/", "-"), ifname, call))
        assert isinstance(outcome, Released)
        assert {ip_address(str(one)) for item in outcome.items for one in item.addresses} == freed
        self.world.log_ms += 1

    @rule(space=spaces, ip=all_ips)
    def quarantine(self, space: str, ip: Ip) -> None:
        outcome = self.world.run(SetQuarantine(ORIGIN, space, parse_address(str(ip))))
        if not isinstance(outcome, Refused):  # a space is there while a pool has it
            self.brute.quarantined.add((space, ip))

    @rule(passed_ms=st.sampled_from((1, 2000, 6000)))
    def wait(self, passed_ms: int) -> None:
        self.world.log_ms += passed_ms

    # What is always so

    @invariant()
    def everybody_holds_what_the_sets_say(self) -> None:
        held = sorted(str(one.address) for one in self.world.state.all(AssignedAddress))
        assert held == sorted(str(ip) for _, ip in self.brute.held)

    @invariant()
    def pools_are_made_with_their_first_address_and_told(self) -> None:
        made = [one.name for one in self.world.state.all(Pool) if one.definition.inline]
        told = [one.pool for one in self.world.state.all(Event) if one.kind is EventKind.POOL_CREATED]
        assert len(made) == len(self.brute.made - set(self.brute.declared))
        assert sorted(made) == sorted(name for name in told if name and not name.startswith("declared-"))
        assert all(one.definition.strategy is Strategy.LOWEST for one in self.world.state.all(Pool))


TestBruteForce = pytest.mark.timeout(600)(BruteForce.TestCase)
TestBruteForce.settings = settings(max_examples=50, stateful_step_count=25)
