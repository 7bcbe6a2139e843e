"""Owns addresses and networks as integers, and the only way from text to integer and back.

An address is a family (4 or 6) and an integer; text exists at the edges only. Output is canonical: RFC 5952 for IPv6,
no leading zeros for IPv4. Input may carry leading zeros in IPv4, which are read as decimal (never as octal), because
that is what whereabouts users have in their files. IPv4-mapped IPv6 (RFC 4291 2.5.5.2) is refused: it would give one
address two names.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

BITS = {4: 32, 6: 128}
"""Width of an address in bits, by family."""

_MAPPED_FIRST = 0xFFFF << 32
_MAPPED_LAST = _MAPPED_FIRST | 0xFFFF_FFFF


class AddressError(ValueError):
    """A text that is no address, network or interval; the message quotes it and says why."""


class Address(NamedTuple):
    """An address: `family` 4 or 6, `value` the integer. Sorts by family, then numerically."""

    family: int
    value: int

    def __str__(self) -> str:
        return address_text(self)


class Network(NamedTuple):
    """A prefix: `value` is the network address with all host bits zero, `prefix` its length in bits."""

    family: int
    value: int
    prefix: int

    @property
    def last(self) -> int:
        """The highest address of the prefix, as an integer (IPv4: the broadcast address)."""
        return self.value | host_mask(self.family, self.prefix)

    def covers(self, address: Address) -> bool:
        """Whether an address lies in the prefix."""
        return address.family == self.family and self.value <= address.value <= self.last

    def __str__(self) -> str:
        return f"{address_text(Address(self.family, self.value))}/{self.prefix}"


def host_mask(family: int, prefix: int) -> int:
    """The host bits of a prefix length, as a mask."""
    return (1 << (BITS[family] - prefix)) - 1


def address_text(address: Address) -> str:
    """The canonical text of an address (RFC 5952)."""
    if address.family == 4:
        value = address.value
        return f"{value >> 24}.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}"
    return str(IPv6Address(address.value))


def parse_address(text: str) -> Address:
    """Read an address without prefix length. Raises AddressError."""
    if ":" in text:
        return _parse_v6(text)
    return Address(4, _parse_v4(text))


def parse_host(text: str) -> Address:
    """Read an address whose prefix length, if there is one, is checked and then ignored. Raises AddressError."""
    host, slash, length = text.partition("/")
    address = parse_address(host)
    if slash:
        _parse_length(length, address.family, text)
    return address


def parse_network(text: str) -> Network:
    """Read a CIDR; host bits are masked away. Raises AddressError."""
    return parse_interface(text)[1]


def parse_interface(text: str) -> tuple[Address, Network]:
    """Read `address/length` as an address and the network around it. Raises AddressError."""
    host, slash, length = text.partition("/")
    if not slash:
        raise AddressError(f"{text!r} has no prefix length")
    address = parse_address(host)
    return address, network_around(address, _parse_length(length, address.family, text))


def network_around(address: Address, prefix: int) -> Network:
    """The prefix of that length that contains an address."""
    return Network(address.family, address.value & ~host_mask(address.family, prefix), prefix)


def to_blob(address: Address) -> bytes:
    """The address as 4 or 16 bytes, big-endian, so that bytes sort as numbers do."""
    return address.value.to_bytes(4 if address.family == 4 else 16, "big")


def from_blob(blob: bytes) -> Address:
    """The reverse of `to_blob`."""
    return Address(4 if len(blob) == 4 else 6, int.from_bytes(blob, "big"))


def usable_bounds(network: Network) -> tuple[int, int]:
    """First and last address of a prefix that may be handed out at all.

    IPv4 up to /30 loses the network and the broadcast address; IPv6 up to /126 loses the all-zero host, which is the
    subnet-router anycast address (RFC 4291 2.6.1). /31, /32 (RFC 3021), /127 (RFC 6164) and /128 keep everything.
    """
    if BITS[network.family] - network.prefix < 2:
        return network.value, network.last
    return network.value + 1, network.last - (network.family == 4)


def has_mapped(family: int, first: int, last: int) -> bool:
    """Whether some of these addresses are IPv4-mapped: no text names them, so that nobody could ask for one."""
    return family == 6 and first <= _MAPPED_LAST and last >= _MAPPED_FIRST


def _parse_length(text: str, family: int, whole: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 3 or int(text) > BITS[family]:
        raise AddressError(f"{whole!r} has no prefix length between 0 and {BITS[family]}")
    return int(text)


def _parse_v4(text: str) -> int:
    parts = text.split(".")
    if len(parts) != 4 or not all(part.isascii() and part.isdigit() and len(part) <= 5 for part in parts):
        raise AddressError(f"{text!r} is not an IP address")
    value = 0
    for part in parts:
        if int(part) > 255:
            raise AddressError(f"{text!r} is not an IPv4 address: {part} is over 255")
        value = value << 8 | int(part)
    return value


def _parse_v6(text: str) -> Address:
    if "%" in text:
        raise AddressError(f"{text!r} names a zone, which addresses here do not have")
    plain, (head, colon, tail) = text, text.rpartition(":")
    if "." in tail:  # embedded IPv4 form, read with the same rule for leading zeros
        value = _parse_v4(tail)
        plain = f"{head}{colon}{value >> 16:x}:{value & 0xFFFF:x}"
    try:
        value = int(IPv6Address(plain))
    except ValueError:
        raise AddressError(f"{text!r} is not an IP address") from None
    if _MAPPED_FIRST <= value <= _MAPPED_LAST:
        raise AddressError(f"{text!r} is an IPv4-mapped address; write {IPv4Address(value & 0xFFFF_FFFF)}")
    return Address(6, value)
