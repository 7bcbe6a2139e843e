"""Owns how the cluster is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipamctl.render import columns, fields

_NAMES = (
    *("name", "voter", "reachable", "index", "lag", "version", "level"),
    *("certificate_days", "digest", "raft", "api", "member_id"),
)
_DIGEST_CHARACTERS = 12


def cluster_table(answer: Mapping[str, Any]) -> str:
    """The cluster's fields, and a line for each member."""
    head = fields((name, value) for name, value in answer.items() if name != "members")
    rows = [[_shown(member, name) for name in _NAMES] for member in answer["members"]]
    return f"{head}\n\n{columns([name.upper() for name in _NAMES], rows)}"


def _shown(member: Mapping[str, Any], name: str) -> Any:
    value = member.get(name)
    if name == "digest" and value is not None:
        return f"{str(value)[:_DIGEST_CHARACTERS]} at {member.get('digest_index')}"
    return value
