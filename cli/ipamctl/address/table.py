"""Owns how an address looks as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipamctl.render import fields


def address_table(address: Mapping[str, Any]) -> str:
    """All that is known of an address."""
    return fields(address.items())
