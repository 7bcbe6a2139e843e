"""Owns what is said once: a warning about a configuration would come again with every pod."""

from __future__ import annotations

_MOST = 1_000


class Notices:
    """Remembers what was said."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}

    def is_new(self, text: str) -> bool:
        """Whether something was not said lately; it is now."""
        if text in self._said:
            return False
        if len(self._said) >= _MOST:
            del self._said[next(iter(self._said))]
        self._said[text] = None
        return True
