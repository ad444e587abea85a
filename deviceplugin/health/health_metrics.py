"""The health of devices as Prometheus metrics."""

from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from edgeshare.contract.devices import Device
from edgeshare.contract.health import Health
from edgeshare.contract.units import NS_PER_S

PREFIX = "edgeshare_deviceplugin_device"


def health_families(healths: Iterable[tuple[Device, Health]]) -> Iterator[Metric]:
    """Since when a device has not been healthy, and why: nothing for a healthy one."""
    family = GaugeMetricFamily(
        f"{PREFIX}_unhealthy_since_timestamp_seconds",
        "Since when the device has not been healthy (Unix time), for which reason, and who said so.",
        labels=("device", "reason", "source"),
    )
    for device, health in healths:
        if not health.healthy:
            family.add_metric((device.id, health.reason, health.source), health.since_unix_ns / NS_PER_S)
    yield family
