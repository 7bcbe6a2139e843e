"""Owns reading metrics as Prometheus does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families


class Line(NamedTuple):
    """A series and its value."""

    name: str
    labels: dict[str, str]
    value: float


class Scrape:
    """What was exposed at one moment."""

    def __init__(self, body: bytes) -> None:
        self.families = list(text_string_to_metric_families(body.decode()))
        self.lines = list(self._read())

    def _read(self) -> Iterator[Line]:
        for family in self.families:
            for sample in family.samples:
                yield Line(sample.name, sample.labels, sample.value)

    @property
    def names(self) -> set[str]:
        """The names of ipamd's own metrics, as the table has them."""
        found = {f"{one.name}_total" if one.type == "counter" else one.name for one in self.families}
        return {name for name in found if name.startswith("ipamd_")}

    def all(self, name: str, **labels: str) -> list[Line]:
        """The series of a name whose labels have these values."""
        return [line for line in self.lines if line.name == name and labels.items() <= line.labels.items()]

    def value(self, name: str, **labels: str) -> float:
        """The value of the one series that fits."""
        (found,) = self.all(name, **labels)
        return found.value
