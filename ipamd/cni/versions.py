"""Owns which versions of the CNI specification are spoken, and what each of them has."""

from __future__ import annotations

import re

from ipamd.cni.errors import BAD_CONFIG, BAD_VERSION, CniError

SUPPORTED = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
OLDEST = SUPPORTED[0]
"""What a configuration without `cniVersion` means."""

NEWEST = SUPPORTED[-1]
ONE_OF_FAMILY = frozenset(("0.1.0", "0.2.0"))
"""These have one place for each address family in a result."""

WITH_FAMILY = frozenset(("0.3.0", "0.3.1", "0.4.0"))
"""These name the family of each address in a result."""

_FIRST = {"check": "0.4.0", "gc": "1.1.0", "status": "1.1.0"}
_echoed = re.compile(r"[0-9A-Za-z.+-]{1,32}").fullmatch


def check_version(value: object, verb: str) -> str:
    """The version of a configuration whose `cniVersion` is `value` (None: absent), for a verb that it must have."""
    if value is None:
        value = OLDEST
    if not isinstance(value, str):
        raise CniError(BAD_CONFIG, f"cniVersion must be a string, not {value!r}")
    if value not in SUPPORTED:
        raise CniError(BAD_VERSION, f"cniVersion {value!r} is not supported; supported are {', '.join(SUPPORTED)}")
    first = _FIRST.get(verb, OLDEST)
    if SUPPORTED.index(value) < SUPPORTED.index(first):
        raise CniError(BAD_VERSION, f"cniVersion {value} has no {verb.upper()}, which came with {first}")
    return value


def echoed_version(value: object) -> str:
    """What an error object says as its version: the configuration's own, where that is one at all."""
    if value is None:
        return OLDEST
    return value if isinstance(value, str) and _echoed(value) else NEWEST
