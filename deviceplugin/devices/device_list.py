"""The node's devices as last seen, and whoever waits for a change of them."""

import asyncio
from collections.abc import Iterable

from edgeshare.contract.devices import Accelerator, Device
from edgeshare.waiting import Change


class Devices:
    """The node's devices: one list for everybody; only the scan sets it."""

    def __init__(self) -> None:
        self._now: tuple[Device, ...] = ()
        self._change = Change()

    @property
    def now(self) -> tuple[Device, ...]:
        """As last seen."""
        return self._now

    def set(self, devices: Iterable[Device]) -> bool:
        """Replaces the list and tells everybody, if it differs; returns whether it did."""
        fresh = tuple(devices)
        if fresh == self._now:
            return False
        self._now = fresh
        self._change.tell()
        return True

    def next_change(self) -> asyncio.Event:
        """Set when the list is no longer the one of now."""
        return self._change.next

    def by_id(self) -> dict[str, Device]:
        """The devices of now by their id."""
        return {device.id: device for device in self.now}


class DevicesOfKind(Devices):
    """The devices of one kind, in the list of all kinds."""

    def __init__(self, devices: Devices, accelerator: Accelerator) -> None:
        super().__init__()
        self._devices = devices
        self._accelerator = accelerator

    @property
    def now(self) -> tuple[Device, ...]:
        return tuple(device for device in self._devices.now if device.accelerator is self._accelerator)

    def next_change(self) -> asyncio.Event:
        """An event that the next change sets, also one of a device of another kind: who waits looks again."""
        return self._devices.next_change()
