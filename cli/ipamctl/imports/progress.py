"""Owns the bar that shows how far an import is: reading, sending, and then waiting for the answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

Advance = Callable[[int], None]
"""Told how far it is, in percent."""


class Bar:
    """One bar, for one step after the other. Only a terminal sees it."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def step(self, name: str) -> Advance:
        """Begin a step; until it is told how far it is, the bar only moves."""
        self._progress.reset(self._task, description=name, total=None)

        def advance(percent: int) -> None:
            total = None if percent >= 100 else 100
            self._progress.update(self._task, completed=percent, total=total)

        return advance


@contextmanager
def bar() -> Iterator[Bar]:
    """A bar on stderr that is gone once the work is done."""
    console = Console(stderr=True)
    shown = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*shown, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        yield Bar(progress)
