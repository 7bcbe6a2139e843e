"""Owns the count of requests that were refused before anybody looked at what they ask for, by error code."""

from __future__ import annotations

from collections import Counter


class Refusals:
    """Counts since this process began."""

    def __init__(self) -> None:
        self.by_code: Counter[str] = Counter()

    def note(self, code: str) -> None:
        """Count one."""
        self.by_code[code] += 1
