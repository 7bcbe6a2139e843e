"""The native dialect: pools by name, and what the configuration puts into the result."""

from __future__ import annotations

import pytest

from ipamd.cni.call import AddCall
from ipamd.cni.overrides import NO_OVERRIDES, Overrides, StaticAddress, StaticRoute
from ipamd.core.addresses import parse_address, parse_network
from ipamd.core.commands import PoolRequest
from ipamd.core.model import Dns
from tests.support.cni_calls import DROP, conf, ipam, read, refused


def overrides_of(**changes: object) -> Overrides:
    call = read("add", ipam(**changes))
    assert isinstance(call, AddCall)
    return call.overrides


@pytest.mark.parametrize(("pool", "pools"), [("p", ("p",)), (["p"], ("p",)), (["q", "p"], ("q", "p"))])
def test_pools_keep_their_order(pool: object, pools: tuple[str, ...]) -> None:
    call = read("add", ipam(pool=pool))
    assert isinstance(call, AddCall)
    assert call.pools == pools


@pytest.mark.parametrize(
    ("section", "word"),
    [
        ({"pool": DROP}, "names no pool"),
        ({"pool": None}, "names no pool"),
        ({"pool": ""}, "names no pool"),
        ({"pool": []}, "names no pool"),
        ({"pool": 17}, "17"),
        ({"pool": ["p", 17]}, "ipam.pool[1]"),
        ({"pool": "a/b"}, "a/b"),
        ({"pool": "p" * 129}, "128"),
        ({"pool": ["p", "p"]}, "twice"),
        ({"pool": [f"p{i}" for i in range(17)]}, "16"),
        ({"range": "10.0.0.0/24"}, "pool and range"),
        ({"subnet": "10.0.0.0/24"}, "pool and subnet"),
        ({"pool": DROP, "range_start": "10.0.0.1"}, "names no pool"),
        ({"pool": DROP, "ipRanges": []}, "ipRanges"),
        ({"pool": DROP, "ranges": [[]]}, "ranges"),
        ({"routes": {}}, "ipam.routes"),
        ({"routes": [{}]}, "ipam.routes[0].dst"),
        ({"routes": [{"dst": "10.0.0.0"}]}, "prefix length"),
        ({"routes": [{"dst": "10.0.0.0/8", "gw": "2001:db8::1"}]}, "IPv4"),
        ({"routes": [{"dst": "10.0.0.0/8", "gw": "x"}]}, "ipam.routes[0].gw"),
        ({"routes": [{"dst": "10.0.0.0/8", "mtu": "big"}]}, "ipam.routes[0].mtu"),
        ({"routes": [{"dst": "10.0.0.0/8", "mtu": True}]}, "ipam.routes[0].mtu"),
        ({"routes": [{"dst": "10.0.0.0/8"}, {"dst": "10.1.0.0/8"}]}, "twice"),
        ({"dns": []}, "ipam.dns"),
        ({"dns": {"nameservers": "192.0.2.53"}}, "ipam.dns.nameservers"),
        ({"dns": {"domain": 17}}, "ipam.dns.domain"),
        ({"addresses": "10.0.0.1/24"}, "ipam.addresses"),
        ({"addresses": [{"address": "10.0.0.1"}]}, "prefix length"),
        ({"addresses": [{"address": "10.0.0.1/24", "gateway": "2001:db8::1"}]}, "ipam.addresses[0].gateway"),
    ],
)
def test_a_bad_section_has_code_7_and_the_sentence_says_where(section: dict[str, object], word: str) -> None:
    error = refused("add", ipam(**section))
    assert error.code == 7
    assert word in error.msg


@pytest.mark.parametrize("section", ["x", 17, []])
def test_the_section_must_be_an_object(section: object) -> None:
    assert refused("add", conf(ipam=section)).code == 7


def test_a_plain_section_overrides_nothing() -> None:
    assert overrides_of(routes=None, dns=None, addresses=None) is NO_OVERRIDES


def test_overrides_are_read_and_made_canonical() -> None:
    found = overrides_of(
        routes=[{"dst": "10.1.2.3/8", "gw": "10.0.0.9", "mtu": 1400, "colour": "blue"}, {"dst": "::/0", "gw": ""}],
        dns={"nameservers": ["192.0.2.53"], "domain": "a.test", "search": ["a.test"], "options": ["ndots:2"]},
        addresses=[{"address": "198.051.100.9/24", "gateway": "198.51.100.1"}],
    )
    assert found == Overrides(
        (StaticAddress(parse_address("198.51.100.9"), 24, parse_address("198.51.100.1")),),
        (
            StaticRoute(parse_network("10.0.0.0/8"), parse_address("10.0.0.9"), (("mtu", 1400),)),
            StaticRoute(parse_network("::/0")),
        ),
        Dns(("192.0.2.53",), "a.test", ("a.test",), ("ndots:2",)),
    )


def test_an_empty_list_of_routes_is_a_word_too() -> None:
    assert overrides_of(routes=[]).routes == ()


@pytest.mark.parametrize("word", ["isGateway", "isDefaultGateway"])
@pytest.mark.parametrize(("value", "spared"), [(True, True), (False, False), (None, False), ("yes", False)])
def test_a_bridge_that_is_gateway_takes_the_first_host(word: str, value: object, spared: bool) -> None:
    call = read("add", conf(**{word: value}))
    assert isinstance(call, AddCall)
    assert call.requests == (PoolRequest("p", spare_first_hosts=spared),)
