"""The node's devices as last seen, and whoever waits for a change of them."""

import asyncio
from collections.abc import Iterable

from edgeshare.devices import Device


class Devices:
    """One list for everybody; only the scan sets it."""

    def __init__(self) -> None:
        self.now: tuple[Device, ...] = ()
        self._change = asyncio.Event()

    def set(self, devices: Iterable[Device]) -> bool:
        """Replaces the list and tells everybody, if it differs; returns whether it did."""
        fresh = tuple(devices)
        if fresh == self.now:
            return False
        self.now = fresh
        self._change.set()
        self._change = asyncio.Event()
        return True

    def next_change(self) -> asyncio.Event:
        """Set when the list is no longer the one of now."""
        return self._change

    def by_id(self) -> dict[str, Device]:
        """The devices of now by their id."""
        return {device.id: device for device in self.now}
