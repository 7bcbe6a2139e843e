"""Owns which servers there are, and in which order they are asked: who answered last comes first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit


class Servers:
    """The servers that were given, and those that they told of. One that fails goes to the end."""

    def __init__(self, given: Sequence[str], told: Iterable[str] = (), first: int = 0) -> None:
        """`first`: a number that tells this node from others, so that not all of them begin with one server."""
        self._given, self._told = tuple(given), tuple[str, ...]()
        self._foreign: frozenset[str] = frozenset()
        start = first % len(given)
        self._order = [*given[start:], *given[:start]]
        self.learn(told)

    @property
    def told(self) -> tuple[str, ...]:
        """Those that servers told of."""
        return self._told

    @property
    def strangers(self) -> tuple[str, ...]:
        """Those that were given and are no members: another name of the cluster, or no server of it at all."""
        return tuple(url for url in self._given if url not in self._told)

    def order(self) -> tuple[str, ...]:
        """All that may be asked, the best first."""
        return tuple(url for url in self._order if url not in self._foreign)

    def shun(self, foreign: Iterable[str]) -> Iterable[str]:
        """Ask these no more, and all others: they are of another cluster. Those that are new."""
        before, self._foreign = self._foreign, frozenset(foreign)
        return sorted(self._foreign - before)

    def failed(self, url: str) -> None:
        """A server had no answer."""
        if url in self._order:
            self._order.remove(url)
            self._order.append(url)

    def learn(self, urls: Iterable[str]) -> bool:
        """The members of the cluster, from one of them; whether they are others than before.

        Whoever was given stays, behind them if it is no member. Where all that were given speak TLS nobody talks the
        agent out of it.
        """
        told = tuple(dict.fromkeys(url.rstrip("/") for url in urls if self._is_fit(url)))
        if not told or told == self._told:
            return False
        self._told = told
        known = [url for url in self._order if url in told]
        new = [url for url in told if url not in known]
        self._order = [*known, *new, *(url for url in self._given if url not in told)]
        return True

    def _is_fit(self, url: str) -> bool:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            return False
        schemes = {urlsplit(given).scheme for given in self._given}
        is_as_safe = parts.scheme == "https" or (parts.scheme == "http" and "http" in schemes)
        has_more = parts.path.strip("/") or parts.query or parts.fragment or parts.username is not None
        return is_as_safe and bool(parts.hostname) and port is not None and not has_more
