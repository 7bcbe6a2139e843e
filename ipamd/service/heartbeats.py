"""Owns when each node was heard last, in the memory of the member that leads: nothing of it is written."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ipamd.service.ports import Clock

EVERY_S: Final = 10.0


class Heartbeats:
    """The signs of life of nodes, on the monotonic clock. Used in one loop."""

    def __init__(self, clock: Clock, every_s: float = EVERY_S) -> None:
        """`every_s`: how often a node says that it is there."""
        self._clock, self.every_s = clock, every_s
        self._heard_s: dict[str, float] = {}

    def note(self, node: str) -> None:
        """A node was heard."""
        self._heard_s[node] = self._clock.monotonic_s()

    def heard_s(self, node: str) -> float | None:
        """When a node was heard last; None: never here."""
        return self._heard_s.get(node)

    def keep(self, nodes: Collection[str]) -> None:
        """Forget all nodes but these."""
        self._heard_s = {node: heard_s for node, heard_s in self._heard_s.items() if node in nodes}
