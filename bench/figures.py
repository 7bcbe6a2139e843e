"""Owns the figures: what was measured, beside what was asked."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One measured number. `at_most` or `at_least` is what was asked; neither: it is told for its own sake."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether what was asked is met; None: nothing was."""
        if self.at_most is not None:
            return self.value <= self.at_most
        return self.value >= self.at_least if self.at_least is not None else None

    @property
    def asked(self) -> str:
        """What was asked, as text."""
        if self.at_most is not None:
            return f"at most {number(self.at_most)}"
        return f"at least {number(self.at_least)}" if self.at_least is not None else ""

    def as_json(self) -> dict[str, Any]:
        """The figure for machines."""
        return asdict(self) | {"met": self.met}


def show(figure: Figure) -> None:
    """Print one line."""
    verdict = {True: "met", False: "MISSED", None: ""}[figure.met]
    measured = f"{number(figure.value)} {figure.unit}"
    print(f"  {figure.name:<52} {measured:>16}   {figure.asked:<16} {verdict:<6} {figure.note}".rstrip(), flush=True)


def number(value: float) -> str:
    """A number as a person writes it."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percentile(values: list[float], share: float) -> float:
    """The value below which a share (0 to 1) of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def middle_ms(seconds: list[float]) -> float:
    """The median, in milliseconds."""
    return median(seconds) * 1000
