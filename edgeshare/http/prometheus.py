"""Metrics that are made when one asks for them, and the page of them that Prometheus reads."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector, CollectorRegistry

CONTENT_TYPE = CONTENT_TYPE_LATEST

F = TypeVar("F", GaugeMetricFamily, CounterMetricFamily)

Rows = Iterable[tuple[tuple[str, ...], float]]
"""The values of the labels, and the metric's there."""


def exposition(families: Iterable[Metric]) -> bytes:
    """The page of these metrics and of this process's own (text format 1.0.0)."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    registry.register(_Collector(families))
    return generate_latest(registry)


class _Collector(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def gauge(prefix: str, name: str, text: str, labels: Sequence[str], rows: Rows) -> GaugeMetricFamily:
    """What can rise and fall."""
    return _filled(GaugeMetricFamily(f"{prefix}_{name}", text, labels=labels), rows)


def counter(prefix: str, name: str, text: str, labels: Sequence[str], rows: Rows) -> CounterMetricFamily:
    """What only grows, while the process lives."""
    return _filled(CounterMetricFamily(f"{prefix}_{name}", text, labels=labels), rows)


def _filled(family: F, rows: Rows) -> F:
    for of, value in rows:
        family.add_metric(of, value)
    return family
