"""Owns the text of a resolv.conf (resolv.conf(5)): the name service settings that host-local puts into its results."""

from __future__ import annotations

from ipamd.core.model import Dns


def parse_resolv_conf(text: str) -> Dns:
    """The settings: of `domain` the last one counts, of all else each. Comments and other keywords are passed over."""
    found: dict[str, list[str]] = {"nameserver": [], "domain": [], "search": [], "options": []}
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] in found:
            found[words[0]] += words[1:] if words[0] in ("search", "options") else words[1:2]
    domain = found["domain"][-1] if found["domain"] else ""
    return Dns(tuple(found["nameserver"]), domain, tuple(found["search"]), tuple(found["options"]))
