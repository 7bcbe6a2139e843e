"""Owns how much of large bodies is kept in memory at once, in all and of one caller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aiohttp import web

from ipamd.api.body import MAX_BODY_BYTES
from ipamd.core.ports import Unavailable

SMALL_BYTES: Final = 64 * 1024
"""Bodies up to here are not counted: there are no more of them than connections."""


class Bodies:
    """Room for bodies that are being read or worked on; parsed, one takes several times its size."""

    def __init__(self, most_bytes: int, most_of_caller: int) -> None:
        self._most_bytes, self._most_of_caller = most_bytes, most_of_caller
        self._taken: Counter[str] = Counter()

    @contextmanager
    def room(self, caller: str, size_bytes: int) -> Iterator[None]:
        """Have room for a body. Raises Unavailable."""
        if size_bytes <= SMALL_BYTES:
            yield
            return
        if (
            self._taken[caller] + size_bytes > self._most_of_caller
            or self._taken.total() + size_bytes > self._most_bytes
        ):
            raise Unavailable("too many large requests are under way", "none")
        self._taken[caller] += size_bytes
        try:
            yield
        finally:
            self._taken[caller] -= size_bytes
            if not self._taken[caller]:
                del self._taken[caller]


def announced_bytes(request: web.Request, most_bytes: int = MAX_BODY_BYTES) -> int:
    """How large the body may be: what its head says, else the most that is read; one that is too large is not read."""
    if not request.body_exists:
        return 0
    length = request.content_length
    if length is None:
        return most_bytes
    return 0 if length > most_bytes else length
