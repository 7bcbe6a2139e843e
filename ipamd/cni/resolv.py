"""Owns the text of a resolv.conf (resolv.conf(5)): the name service settings that host-local puts into its results.

A server cannot read the file of an agent's host: the agent hands on what stands in it, as the header `Ipamd-Dns`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import msgspec

from ipamd.cni import environment
from ipamd.cni.errors import BAD_CONFIG, BAD_ENVIRONMENT, CniError
from ipamd.core.model import Dns

MOST_HANDED: Final = 12_000
"""The longest header value: servers take no longer ones. It is a hundred name servers."""


def parse_resolv_conf(text: str) -> Dns:
    """The settings: of `domain` the last one counts, of all else each. Comments and other keywords are passed over."""
    found: dict[str, list[str]] = {"nameserver": [], "domain": [], "search": [], "options": []}
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] in found:
            found[words[0]] += words[1:] if words[0] in ("search", "options") else words[1:2]
    domain = found["domain"][-1] if found["domain"] else ""
    return Dns(tuple(found["nameserver"]), domain, tuple(found["search"]), tuple(found["options"]))


def dns_header(dns: Dns) -> str:
    """Settings as the value of the header that hands them on. Raises CniError for more than it has room for."""
    value = quote(msgspec.json.encode([dns.nameservers, dns.domain, dns.search, dns.options]))
    if len(value) > MOST_HANDED:
        raise CniError(BAD_CONFIG, f"ipam.resolvConf has {len(value)} bytes of settings; {MOST_HANDED} is the most")
    return value


def handed_dns(headers: Mapping[str, str]) -> Dns | None:
    """The settings that were handed on; None: none were. Raises CniError."""
    text = environment.dns_text(headers)
    if text is None:
        return None
    try:
        return Dns(*msgspec.json.decode(text, type=_Handed))
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise CniError(BAD_ENVIRONMENT, f"{environment.DNS} is no name service settings") from None


_Handed = tuple[tuple[str, ...], str, tuple[str, ...], tuple[str, ...]]
