"""Owns the command by which people write among the events; `commands` has it in its list."""

from __future__ import annotations

from ipamd.core.origin import Origin
from ipamd.core.values import Value


class Note(Value):
    """Put a note among the events, about a pool or a node if these are named. Came with level 2."""

    origin: Origin
    text: str
    pool: str | None = None
    node: str | None = None
