"""The text of a resolv.conf."""

from __future__ import annotations

from ipamd.cni.resolv import parse_resolv_conf
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
