"""Readings as Prometheus metrics. What has no reading now has no sample."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from prometheus_client.core import Metric

from edgeshare.http import prometheus
from labeller.usage.readings import Reading

PREFIX = "edgeshare_accelerator"
DEVICE = ("device", "model")

_gauge = partial(prometheus.gauge, PREFIX)
_counter = partial(prometheus.counter, PREFIX)


@dataclass(frozen=True)
class Tool:
    """A tool that is there."""

    name: str
    up: bool
    """It tells readings."""
    starts: int | None = None
    """None for one that is no program."""
    skipped_lines: int | None = None
    """Lines that it printed and that are none of its own."""


def families(readings: Sequence[Reading], tools: Sequence[Tool]) -> Iterator[Metric]:
    """All metrics."""
    yield _gauge(
        "info",
        "An accelerator that a tool tells of.",
        (*DEVICE, "index", "parent"),
        [((*_labels(each), str(each.of.index), each.of.parent), 1) for each in readings],
    )

    def gauge(name: str, text: str, value: Callable[[Reading], float | None]) -> Metric:
        told = ((_labels(reading), value(reading)) for reading in readings)
        return _gauge(name, text, DEVICE, [(labels, known) for labels, known in told if known is not None])

    yield gauge("utilization_ratio", "Part of the time in which the GPU was busy.", lambda each: each.load_ratio)
    yield gauge("memory_used_bytes", "Memory in use; a Jetson's is its machine's.", lambda each: each.memory_used_bytes)
    yield gauge("memory_bytes", "Memory, without the driver's reserve.", lambda each: each.memory_total_bytes)
    yield gauge("temperature_celsius", "How hot the GPU is.", lambda each: each.temperature_c)
    yield gauge("power_watts", "What it takes; a Jetson's: the rail that feeds the GPU.", lambda each: each.power_w)

    def parts(name: str, text: str, part: str, values: Callable[[Reading], Mapping[str, float]]) -> Metric:
        rows = [((*_labels(each), key), value) for each in readings for key, value in values(each).items()]
        return _gauge(name, text, (*DEVICE, part), rows)

    yield parts("engine_utilization_ratio", "The same of its engines.", "engine", lambda each: each.engine_load_ratio)
    yield parts("zone_temperature_celsius", "How hot a part of the board is.", "zone", lambda each: each.zone_c)
    yield parts("rail_power_watts", "What a rail feeds; one may feed others.", "rail", lambda each: each.rail_w)

    yield _gauge("tool_up", "1: it tells readings, 0: not.", ("tool",), [((tool.name,), tool.up) for tool in tools])
    started = [((tool.name,), tool.starts) for tool in tools if tool.starts is not None]
    yield _counter("tool_starts", "Times it was started.", ("tool",), started)
    skipped = [((tool.name,), tool.skipped_lines) for tool in tools if tool.skipped_lines is not None]
    yield _counter("tool_skipped_lines", "Lines of it that made no sense.", ("tool",), skipped)


def _labels(reading: Reading) -> tuple[str, str]:
    return reading.of.device, reading.of.model
