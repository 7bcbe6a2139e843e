"""Owns the set of use cases, made once at start and handed to the API whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from ipamd.core.ports import Log, State
from ipamd.service.ports import Clock, Facts, Namespaces, Random


@dataclass(frozen=True)
class Services:
    """All use cases of this process."""

    log: Log
    state: State
    clock: Clock
    facts: Facts

    @classmethod
    def assemble(
        cls, log: Log, state: State, clock: Clock, random: Random, namespaces: Namespaces, facts: Facts
    ) -> Self:
        """Make the use cases over a log and a state. Nothing runs before `start`."""
        return cls(log, state, clock, facts)

    async def start(self) -> None:
        """Begin housekeeping. Called in the HTTP loop's thread."""

    async def stop(self) -> None:
        """End housekeeping and wait for reads that are under way."""
