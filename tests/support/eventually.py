"""Owns waiting in a loop for what must come about: for the thing itself, so that a busy machine is slow and never wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PATIENCE_S = 60.0
"""Only guards against a hang."""


async def until(holds: Callable[[], object]) -> None:
    """Wait until something holds. The bound is there so that what never comes about is told."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - who changes it knows nothing of us
            await asyncio.sleep(0.005)
