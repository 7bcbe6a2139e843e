"""Owns the text that Prometheus reads, made from samples by prometheus_client, which nothing else here knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from ipamd.core.figures import Histogram
from ipamd.metrics.table import BY_NAME, Kind, Metric

Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


class Sample(NamedTuple):
    """A value of a metric of the table; `labels` in the table's order. A count beyond 2^53 is rounded as floats are."""

    name: str
    value: float | Histogram
    labels: tuple[str, ...] = ()


class _Samples(Collector):
    """Samples as families, in the order in which a name first comes."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Family]:
        """All families. Raises KeyError for a sample that the table does not have."""
        by_name: dict[str, Family] = {}
        for sample in self._samples:
            family = by_name.get(sample.name)
            if family is None:
                family = by_name[sample.name] = _family(BY_NAME[sample.name])
            _add(family, sample)
        yield from by_name.values()


def _family(metric: Metric) -> Family:
    match metric.kind:
        case Kind.COUNTER:
            return CounterMetricFamily(metric.name, metric.about, labels=metric.labels)
        case Kind.GAUGE:
            return GaugeMetricFamily(metric.name, metric.about, labels=metric.labels)
        case Kind.HISTOGRAM:
            return HistogramMetricFamily(metric.name, metric.about, labels=metric.labels)


def _add(family: Family, sample: Sample) -> None:
    if isinstance(sample.value, Histogram):
        if not isinstance(family, HistogramMetricFamily):
            raise TypeError(f"{sample.name} is no histogram in the table")
        family.add_metric(sample.labels, *_buckets(sample.value))
    elif isinstance(family, HistogramMetricFamily):
        raise TypeError(f"{sample.name} is a histogram in the table")
    else:
        family.add_metric(sample.labels, sample.value)


def _buckets(histogram: Histogram) -> tuple[Sequence[tuple[str, float]], float]:
    """Each bucket with all below it, as Prometheus wants them, and the sum."""
    below, found = 0, []
    for bound, count in zip((*map(str, histogram.bounds), "+Inf"), tuple(histogram.counts), strict=True):
        below += count
        found.append((bound, float(below)))
    return found, histogram.total


def text_of(samples: Iterable[Sample]) -> bytes:
    """Samples as text."""
    return generate_latest(_Samples(samples))


class Process:
    """What the operating system tells of this process: process_cpu_seconds_total and the like."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """As it is now."""
        return generate_latest(self._registry)
