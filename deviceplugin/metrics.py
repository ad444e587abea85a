"""The plugin's figures as Prometheus metrics, made when one asks for them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric

from deviceplugin.counters import BUCKETS_S, Counters, Durations
from edgeshare import __version__
from edgeshare.contract.devices import Accelerator, Device
from edgeshare.contract.health import Health
from edgeshare.contract.units import NS_PER_S
from edgeshare.http import prometheus

PREFIX = "edgeshare_deviceplugin"

_gauge = partial(prometheus.gauge, PREFIX)
_counter = partial(prometheus.counter, PREFIX)


@dataclass(frozen=True)
class Figures:
    """What there is to tell."""

    found: Sequence[Device]
    listed: Sequence[Device]
    driver_fault: bool
    registered: dict[str, bool]
    """Resource → whether the kubelet has its list."""
    allocations: int
    config: str
    config_refused: bool
    counters: Counters
    healths: Sequence[tuple[Device, Health]]


def exposition(figures: Figures) -> bytes:
    """The page that Prometheus reads (text format 1.0.0)."""
    return prometheus.exposition(families(figures))


def families(figures: Figures) -> Iterator[Metric]:
    """All metrics."""
    counters = figures.counters
    yield _gauge("build_info", "The running plugin.", ("version",), [((__version__,), 1)])
    yield _gauge("devices_found", "Devices of this node by kind. 0 is normal.", ("kind",), _by_kind(figures.found))
    yield _gauge("devices", "Those of them that are advertised.", ("kind",), _by_kind(figures.listed))
    yield _gauge(
        "device_healthy",
        "1: healthy, 0: not.",
        ("device", "index", "model", "kind"),
        [
            ((device.id, str(device.index), device.model, device.accelerator), device.healthy)
            for device in figures.listed
        ],
    )
    yield from health_families(figures.healths)
    yield _gauge(
        "driver_broken",
        "1: a driver is there and does not answer, 0: it does, or there is none.",
        (),
        [((), figures.driver_fault)],
    )
    yield _gauge(
        "registered",
        "1: the kubelet has the list of this resource, 0: not.",
        ("resource",),
        [((resource,), value) for resource, value in figures.registered.items()],
    )
    yield _counter("registrations", "Times that the kubelet took the list anew.", (), [((), counters.registrations)])
    yield _gauge("config_info", "The config that holds.", ("config",), [((figures.config,), 1)])
    yield _gauge(
        "config_refused",
        "1: what was configured last is wrong, and the one before holds.",
        (),
        [((), figures.config_refused)],
    )
    yield _gauge("live_allocations", "Containers that have units.", (), [((), figures.allocations)])
    yield _counter("allocations", "Calls of Allocate that handed units out.", (), [((), counters.allocations)])
    yield _counter(
        "refusals", "Calls of the kubelet that were refused, by reason.", ("call", "reason"), counters.refusals.items()
    )
    yield _histogram("allocate_duration_seconds", "How long Allocate took, refused or not.", counters.allocate)


def _by_kind(devices: Iterable[Device]) -> prometheus.Rows:
    kinds = [device.accelerator for device in devices]
    return [((kind,), kinds.count(kind)) for kind in Accelerator]


def _histogram(name: str, text: str, durations: Durations) -> HistogramMetricFamily:
    bounds = [*map(str, BUCKETS_S), "+Inf"]
    buckets = [(bound, float(count)) for bound, count in zip(bounds, durations.cumulative(), strict=True)]
    return HistogramMetricFamily(f"{PREFIX}_{name}", text, buckets=buckets, sum_value=durations.total_ns / NS_PER_S)


def health_families(healths: Iterable[tuple[Device, Health]]) -> Iterator[Metric]:
    """Since when a device has not been healthy, and why: nothing for a healthy one."""
    family = GaugeMetricFamily(
        f"{PREFIX}_device_unhealthy_since_timestamp_seconds",
        "Since when the device has not been healthy (Unix time), for which reason, and who said so.",
        labels=("device", "reason", "source"),
    )
    for device, health in healths:
        if not health.healthy:
            family.add_metric((device.id, health.reason, health.source), health.since_unix_ns / NS_PER_S)
    yield family
