"""Owns counting the answers that this process gave over HTTP, CNI calls aside: by method, route and status."""

from __future__ import annotations

from typing import Final

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER: Final = "other"
"""Stands for a method or a path that nobody serves: strangers choose those, and must not fill the memory."""


class Answers:
    """How many there were. Used in one loop."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str, int], int] = {}

    def note(self, method: str, route: str | None, status: int) -> None:
        """Count one. `route`: its template, as the table of routes has it; None: there is none."""
        key = (method if method in METHODS else OTHER, route or OTHER, status)
        self.counts[key] = self.counts.get(key, 0) + 1
