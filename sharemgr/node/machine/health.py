"""Devices' health as somebody else knows it, who looks at it more closely than the manager does: on a node of a cluster
the device plugin. While it is fresh it goes before what the manager sees."""

from collections.abc import Mapping
from dataclasses import replace

from edgeshare.contract.devices import Device
from edgeshare.contract.text import in_one_line
from edgeshare.contract.units import NS_PER_S

FRESH_NS = 60 * NS_PER_S
"""So long it holds. Who tells it does so three times as often; one that no longer does is gone, and may be wrong."""

CAUSE_CHARACTERS = 500
"""So much of a cause is kept: status, metrics and the log show it."""


class ToldHealth:
    """What was told last."""

    def __init__(self) -> None:
        self._causes: dict[str, str] = {}
        self._until_ns = 0

    def tell(self, causes: Mapping[str, str], now_ns: int) -> None:
        """Why each device is not healthy, by id, empty for one that is; takes the place of all that was told before.
        Of a cause one line is kept."""
        self._causes = {device_id: in_one_line(cause, CAUSE_CHARACTERS) for device_id, cause in causes.items()}
        self._until_ns = now_ns + FRESH_NS

    def of(self, device: Device, now_ns: int) -> Device:
        """The device with its health as it was told, or else as it is."""
        if device.id not in self._causes or now_ns >= self._until_ns:
            return device
        cause = self._causes[device.id]
        return replace(device, healthy=not cause, cause=cause)
