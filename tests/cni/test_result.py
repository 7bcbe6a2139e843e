"""The bytes of a result, version by version."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ipamd.cni.errors import CniError
from ipamd.cni.overrides import Overrides, StaticAddress, StaticRoute
from ipamd.cni.result import check_room, render_result
from ipamd.cni.versions import SUPPORTED
from ipamd.core.addresses import parse_address, parse_interface, parse_network
from ipamd.core.model import Dns, Reservation, Route
from ipamd.core.outcomes import Grant, Granted, GrantedAddress


def given(text: str, gateway: str | None = None) -> GrantedAddress:
    address, network = parse_interface(text)
    return GrantedAddress(address, network.prefix, parse_address(gateway) if gateway else None)


def grant(*addresses: GrantedAddress, routes: tuple[tuple[str, str | None], ...] = (), dns: Dns | None = None) -> Grant:
    through = tuple(Route(parse_network(dst), parse_address(gw) if gw else None) for dst, gw in routes)
    return Grant("p", "default", "eth0", addresses, through, dns or Dns(), Reservation(1, 1, "t/a"), ())


def rendered(version: str, *grants: Grant, overrides: Overrides | None = None) -> Any:
    return json.loads(render_result(version, Granted(True, grants), overrides or Overrides()))


BOTH = grant(
    given("192.0.2.2/24", "192.0.2.1"),
    given("2001:db8::1/64"),
    routes=(("0.0.0.0/0", None), ("2001:db8:1::/48", None)),
    dns=Dns(("192.0.2.53",), search=("a.test",)),
)


@pytest.mark.parametrize("version", ["0.1.0", "0.2.0"])
def test_the_oldest_versions_have_an_object_for_each_family(version: str) -> None:
    assert render_result(version, Granted(True, (BOTH,))).decode() == (
        f'{{"cniVersion":"{version}",'
        '"ip4":{"ip":"192.0.2.2/24","gateway":"192.0.2.1","routes":[{"dst":"0.0.0.0/0","gw":"192.0.2.1"}]},'
        '"ip6":{"ip":"2001:db8::1/64","routes":[{"dst":"2001:db8:1::/48"}]},'
        '"dns":{"nameservers":["192.0.2.53"],"search":["a.test"]}}'
    )


@pytest.mark.parametrize("version", ["0.3.0", "0.3.1", "0.4.0"])
def test_the_middle_versions_name_the_family_of_each_address(version: str) -> None:
    assert render_result(version, Granted(True, (BOTH,))).decode() == (
        f'{{"cniVersion":"{version}",'
        '"ips":[{"version":"4","address":"192.0.2.2/24","gateway":"192.0.2.1"},'
        '{"version":"6","address":"2001:db8::1/64"}],'
        '"routes":[{"dst":"0.0.0.0/0","gw":"192.0.2.1"},{"dst":"2001:db8:1::/48"}],'
        '"dns":{"nameservers":["192.0.2.53"],"search":["a.test"]}}'
    )


@pytest.mark.parametrize("version", ["1.0.0", "1.1.0"])
def test_the_newest_versions_do_not(version: str) -> None:
    assert render_result(version, Granted(True, (BOTH,))).decode() == (
        f'{{"cniVersion":"{version}",'
        '"ips":[{"address":"192.0.2.2/24","gateway":"192.0.2.1"},{"address":"2001:db8::1/64"}],'
        '"routes":[{"dst":"0.0.0.0/0","gw":"192.0.2.1"},{"dst":"2001:db8:1::/48"}],'
        '"dns":{"nameservers":["192.0.2.53"],"search":["a.test"]}}'
    )


@pytest.mark.parametrize("version", SUPPORTED)
def test_a_bare_address_is_enough(version: str) -> None:
    shape = rendered(version, grant(given("192.0.2.1/24")))
    assert shape["cniVersion"] == version
    assert shape["dns"] == {}
    assert "routes" not in shape
    assert "interfaces" not in shape


@pytest.mark.parametrize("version", ["0.1.0", "0.2.0"])
def test_two_addresses_of_a_family_have_no_room_in_the_oldest(version: str) -> None:
    with pytest.raises(CniError) as caught:
        rendered(version, grant(given("192.0.2.1/24"), given("198.51.100.1/24")))
    assert caught.value.code == 7
    with pytest.raises(CniError):
        check_room(version, [6, 4, 6])
    check_room(version, [6, 4])


@pytest.mark.parametrize("version", SUPPORTED[2:])
def test_they_have_room_in_all_others(version: str) -> None:
    check_room(version, [4, 4, 6, 6])
    shape = rendered(version, grant(given("192.0.2.1/24"), given("198.51.100.1/24")))
    assert [ip["address"] for ip in shape["ips"]] == ["192.0.2.1/24", "198.51.100.1/24"]


def test_a_default_route_goes_through_the_gateway_of_its_family_and_pool() -> None:
    one = grant(given("192.0.2.2/24", "192.0.2.1"), routes=(("::/0", None), ("10.0.0.0/8", None)))
    two = grant(given("2001:db8::2/64", "fe80::1"), routes=(("::/0", None), ("0.0.0.0/0", None)))
    # Each pool's routes go through its own gateways; ::/0 is there once, as the first pool has it.
    assert rendered("1.0.0", one, two)["routes"] == [{"dst": "::/0"}, {"dst": "10.0.0.0/8"}, {"dst": "0.0.0.0/0"}]
    assert rendered("1.0.0", two, one)["routes"][0] == {"dst": "::/0", "gw": "fe80::1"}


def test_a_gateway_in_the_route_is_kept() -> None:
    own = grant(given("192.0.2.2/24", "192.0.2.1"), routes=(("0.0.0.0/0", "192.0.2.9"),))
    assert rendered("1.0.0", own)["routes"] == [{"dst": "0.0.0.0/0", "gw": "192.0.2.9"}]


def test_the_configuration_comes_before_the_pools() -> None:
    overrides = Overrides(
        (StaticAddress(parse_address("198.51.100.9"), 24),),
        (
            StaticRoute(parse_network("0.0.0.0/0")),
            StaticRoute(parse_network("172.16.0.0/12"), parse_address("192.0.2.9"), (("mtu", 1400),)),
        ),
        Dns(("192.0.2.54",)),
    )
    shape = rendered("1.0.0", BOTH, overrides=overrides)
    assert [ip["address"] for ip in shape["ips"]] == ["192.0.2.2/24", "2001:db8::1/64", "198.51.100.9/24"]
    assert shape["routes"] == [
        {"dst": "0.0.0.0/0", "gw": "192.0.2.1"},
        {"dst": "172.16.0.0/12", "gw": "192.0.2.9", "mtu": 1400},
    ]
    assert shape["dns"] == {"nameservers": ["192.0.2.54"]}


def test_no_routes_at_all_may_be_asked_for() -> None:
    assert "routes" not in rendered("1.0.0", BOTH, overrides=Overrides(routes=()))


def test_name_service_of_several_pools_is_joined() -> None:
    one = grant(given("192.0.2.2/24"), dns=Dns(("192.0.2.53", "192.0.2.54"), "", ("a.test",)))
    two = grant(given("2001:db8::2/64"), dns=Dns(("192.0.2.54", "2001:db8::53"), "b.test", ("b.test",), ("ndots:2",)))
    assert rendered("1.0.0", one, two)["dns"] == {
        "nameservers": ["192.0.2.53", "192.0.2.54", "2001:db8::53"],
        "domain": "b.test",
        "search": ["a.test", "b.test"],
        "options": ["ndots:2"],
    }


def test_a_static_address_needs_room_in_the_oldest_too() -> None:
    overrides = Overrides((StaticAddress(parse_address("198.51.100.9"), 24),))
    with pytest.raises(CniError):
        rendered("0.2.0", BOTH, overrides=overrides)
