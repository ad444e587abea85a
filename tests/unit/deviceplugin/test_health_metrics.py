"""Health as metrics."""

from deviceplugin.metrics import health_families
from edgeshare.contract.devices import Device
from edgeshare.contract.health import HEALTHY, Health
from edgeshare.contract.units import NS_PER_S


def test_a_device_that_is_not_healthy_is_told_with_reason_source_and_time() -> None:
    ill = Health(False, "Xid", "XID 62", "after a reset", "driver-event", 1_700_000_000 * NS_PER_S)
    (family,) = health_families([(Device("GPU-a", 0, "m", 1), ill), (Device("GPU-b", 1, "m", 1), HEALTHY)])
    (sample,) = family.samples
    assert sample.labels == {"device": "GPU-a", "reason": "Xid", "source": "driver-event"}
    assert (sample.name, sample.value) == (
        "edgeshare_deviceplugin_device_unhealthy_since_timestamp_seconds",
        1_700_000_000,
    )
