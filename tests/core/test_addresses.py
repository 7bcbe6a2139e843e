"""Text to integer and back: canonical out, forgiving but unambiguous in."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamd.core.addresses import (
    BITS,
    Address,
    AddressError,
    Network,
    address_text,
    from_blob,
    network_around,
    parse_address,
    parse_host,
    parse_interface,
    parse_network,
    to_blob,
    usable_bounds,
)

MAPPED = 0xFFFF << 32


@st.composite
def an_address(draw: st.DrawFn) -> Address:
    family = draw(st.sampled_from((4, 6)))
    value = draw(st.integers(0, 2 ** BITS[family] - 1) | st.integers(0, 1 << 16))
    return Address(family, value if family == 4 or not MAPPED <= value <= MAPPED | 0xFFFF_FFFF else value + (1 << 64))


@st.composite
def a_network(draw: st.DrawFn) -> Network:
    address = draw(an_address())
    return network_around(address, draw(st.integers(0, BITS[address.family])))


@given(an_address())
def test_text_and_bytes_of_an_address_read_back_as_it(address: Address) -> None:
    assert parse_address(address_text(address)) == address
    assert from_blob(to_blob(address)) == address


@given(a_network())
def test_the_text_of_a_network_reads_back_as_it(network: Network) -> None:
    assert parse_network(str(network)) == network


@given(st.lists(an_address()))
def test_bytes_of_one_family_sort_as_the_numbers_do(some: list[Address]) -> None:
    for family in (4, 6):
        own = [one for one in some if one.family == family]
        assert sorted(own) == [from_blob(blob) for blob in sorted(map(to_blob, own))]


@given(st.text(alphabet="0123456789abcdefx.:/%-+ _\u0664\uff11", max_size=45))
def test_any_text_is_read_or_refused_with_a_sentence(text: str) -> None:
    for parse in (parse_address, parse_host, parse_network, parse_interface):
        try:
            read: object = parse(text)
        except AddressError as error:
            read = str(error)
        assert read


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("010.000.007.0008", "10.0.7.8"),
        ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("2001:db8::192.0.2.010", "2001:db8::c000:20a"),
        ("::", "::"),
        ("::1.2.3.4", "::102:304"),
        ("fe80::1", "fe80::1"),
    ],
)
def test_output_is_canonical(text: str, canonical: str) -> None:
    assert str(parse_address(text)) == canonical


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not an IP address"),
        ("192.0.2", "is not an IP address"),
        ("192.0.2.1.5", "is not an IP address"),
        ("192.0.2.256", "256 is over 255"),
        ("192.0.2.-1", "is not an IP address"),
        ("192.0.2.1 ", "is not an IP address"),
        ("192.0.2.\u0661", "is not an IP address"),
        ("0x7f.0.0.1", "is not an IP address"),
        ("1::2::3", "is not an IP address"),
        (":1.2.3.4", "':1.2.3.4' is not an IP address"),
        ("::1.2.3.400", "400 is over 255"),
        ("fe80::1%eth0", "names a zone"),
        ("::ffff:192.0.2.1", "write 192.0.2.1"),
        ("::ffff:c000:201", "write 192.0.2.1"),
    ],
)
def test_what_is_no_address_is_refused_and_named(text: str, says: str) -> None:
    with pytest.raises(AddressError, match=re.escape(says)):
        parse_address(text)


@pytest.mark.parametrize(
    "text", ["192.0.2.0/33", "192.0.2.0/", "192.0.2.0/-1", "192.0.2.0/24/", "::/129", "::/1\u0661"]
)
def test_a_prefix_length_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(AddressError, match="no prefix length between 0 and"):
        parse_network(text)


def test_a_network_needs_its_length_and_an_address_has_none() -> None:
    with pytest.raises(AddressError, match="has no prefix length"):
        parse_network("192.0.2.0")
    with pytest.raises(AddressError, match="is not an IP address"):
        parse_address("192.0.2.0/24")
    assert parse_host("192.0.2.9/24") == parse_host("192.0.2.9") == Address(4, 0xC0000209)
    with pytest.raises(AddressError):
        parse_host("192.0.2.9/99")


def test_host_bits_are_masked_away() -> None:
    address, network = parse_interface("10.1.2.3/24")
    assert (str(address), str(network)) == ("10.1.2.3", "10.1.2.0/24")
    assert str(parse_network("2001:db8::5:1/64")) == "2001:db8::/64"


@pytest.mark.parametrize(
    ("network", "first", "last"),
    [
        ("192.0.2.0/24", "192.0.2.1", "192.0.2.254"),
        ("192.0.2.0/30", "192.0.2.1", "192.0.2.2"),
        ("192.0.2.0/31", "192.0.2.0", "192.0.2.1"),
        ("192.0.2.7/32", "192.0.2.7", "192.0.2.7"),
        ("0.0.0.0/0", "0.0.0.1", "255.255.255.254"),
        ("2001:db8::/64", "2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff"),
        ("2001:db8::/126", "2001:db8::1", "2001:db8::3"),
        ("2001:db8::/127", "2001:db8::", "2001:db8::1"),
        ("2001:db8::9/128", "2001:db8::9", "2001:db8::9"),
    ],
)
def test_network_and_broadcast_are_kept_back_where_there_is_room(network: str, first: str, last: str) -> None:
    family = parse_network(network).family
    bounds = usable_bounds(parse_network(network))
    assert [str(Address(family, value)) for value in bounds] == [first, last]


@given(a_network(), an_address())
def test_a_network_covers_what_lies_in_it(network: Network, address: Address) -> None:
    inside = address.family == network.family and network_around(address, network.prefix) == network
    assert network.covers(address) is inside
    assert network.covers(Address(network.family, network.value))
    assert network.covers(Address(network.family, network.last))
