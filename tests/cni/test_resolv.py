"""The text of a resolv.conf."""

from __future__ import annotations

import pytest

from ipamd.cni.errors import CniError
from ipamd.cni.resolv import dns_header, handed_dns, parse_resolv_conf
from ipamd.core.model import Dns

FILE = """\
# made by hand
; nameserver 192.0.2.99
nameserver 192.0.2.53
  nameserver\tfd00::53  # with a comment behind it
nameserver
domain first.test
domain  a.test
search a.test b.test
search c.test
options ndots:2 edns0
options\ttimeout:1
sortlist 130.155.160.0/255.255.240.0
Nameserver 192.0.2.98
"""


def test_all_settings_are_read_in_their_order() -> None:
    assert parse_resolv_conf(FILE) == Dns(
        ("192.0.2.53", "fd00::53"), "a.test", ("a.test", "b.test", "c.test"), ("ndots:2", "edns0", "timeout:1")
    )


def test_an_empty_file_says_nothing() -> None:
    assert parse_resolv_conf("\n\n") == Dns()


def test_what_is_handed_on_is_what_was_read() -> None:
    for dns in (parse_resolv_conf(FILE), Dns(), Dns(("192.0.2.53",), 'a"\x01é%', ("\u2028",))):
        value = dns_header(dns)
        assert value.isascii()
        assert value.isprintable()
        assert handed_dns({"Ipamd-Dns": value}) == dns
    assert handed_dns({}) is None


@pytest.mark.parametrize("value", ["", "{}", "[[],5,[],[]]", "[[],%22%22,[]]", "[[5],%22%22,[],[]]", "%FF"])
def test_what_is_no_settings_is_refused(value: str) -> None:
    with pytest.raises(CniError) as refusal:
        handed_dns({"Ipamd-Dns": value})
    assert refusal.value.code == 4


def test_more_than_a_header_holds_is_refused() -> None:
    with pytest.raises(CniError, match="12000 is the most") as refusal:
        dns_header(Dns(search=tuple(f"{number}.test" for number in range(2000))))
    assert refusal.value.code == 7
