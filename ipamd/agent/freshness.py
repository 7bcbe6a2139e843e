"""Owns good answers to STATUS that are fresh enough to be given again: runtimes ask every few seconds, everywhere."""

from __future__ import annotations

from typing import Final, NamedTuple

from ipamd.service.ports import Clock
from ipamd.service.wire import Asked, Said

FRESH_S: Final = 3.0

_MOST: Final = 32
"""Configurations that are remembered; a node has a few."""

_ABOUT = ("Ipamd-Node", "Ipamd-Cluster")


class _Given(NamedTuple):
    said: Said
    at_s: float


class FreshAnswers:
    """The last good answer to each STATUS call."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._given: dict[tuple[bytes, ...], _Given] = {}

    def find(self, asked: Asked) -> Said | None:
        """The answer to an equal call, if it is a few seconds old at most."""
        found = self._given.get(_key(asked))
        if found is None or self._clock.monotonic_s() - found.at_s > FRESH_S:
            return None
        return found.said

    def keep(self, asked: Asked, said: Said, at_s: float) -> None:
        """Remember an answer to a call that was asked at a moment."""
        key = _key(asked)
        self._given.pop(key, None)
        self._given[key] = _Given(said, at_s)
        while len(self._given) > _MOST:
            del self._given[next(iter(self._given))]


def _key(asked: Asked) -> tuple[bytes, ...]:
    return (asked.body, *(asked.headers.get(name, "").encode() for name in _ABOUT))
