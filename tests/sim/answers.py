"""Owns how a simulated caller waits without an event loop: what stands where a member's intake has loop and future."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from ipamd.consensus.intake import Waiter
from ipamd.core.entries import Item
from ipamd.core.ports import Answer, Unavailable

End = Answer | int | Unavailable
"""How a wait ended."""


class Outbound:
    """Where a loop would be: what is to be done in it is kept until the round is over."""

    def __init__(self) -> None:
        self._acts: list[Callable[[], None]] = []

    def call_soon_threadsafe(self, act: Callable[..., None], *arguments: Any) -> None:
        """Keep it for later."""
        self._acts.append(lambda: act(*arguments))

    def take(self) -> list[Callable[[], None]]:
        """What was kept."""
        acts, self._acts = self._acts, []
        return acts


class Promise:
    """Where a future would be: tells once how it ended."""

    def __init__(self, tell: Callable[[End], None]) -> None:
        self._tell: Callable[[End], None] | None = tell

    def done(self) -> bool:
        """Whether it has told."""
        return self._tell is None

    def set_result(self, result: Answer | int) -> None:
        """It ended well."""
        self._end(result)

    def set_exception(self, error: Unavailable) -> None:
        """It did not."""
        self._end(error)

    def forget(self) -> None:
        """Nobody wants to know any more."""
        self._tell = None

    def _end(self, end: End) -> None:
        tell, self._tell = self._tell, None
        if tell is not None:
            tell(end)


def waiter(item: Item | None, outbound: Outbound, promise: Promise) -> Waiter:
    """A waiter for an intake."""
    loop = cast("asyncio.AbstractEventLoop", outbound)
    return Waiter(item, loop, cast("asyncio.Future[Answer | int]", promise))
