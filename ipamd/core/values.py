"""Owns what all values of the core are: frozen, compared by their fields, and with a byte form (core.codec).

A decision makes about thirty of them. Built and compared in C they cost a quarter of what frozen dataclasses do; the
collector need not look at them, as a value that cannot change is part of no cycle.
"""

from __future__ import annotations

from typing import dataclass_transform

from msgspec import Struct
from msgspec.structs import replace as replace  # noqa: PLC0414 - of a value, as dataclasses.replace is of a dataclass


@dataclass_transform(frozen_default=True)
class Value(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A value with the annotated fields, in that order. Those that came later stand last and have defaults."""
