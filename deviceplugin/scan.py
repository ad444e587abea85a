"""Looks at the machine's GPUs again and again. No GPU, or no driver, is normal: the list is empty until there
is."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from deviceplugin.devices import Devices
from deviceplugin.waiting import first_of
from edgeshare.devices import Device
from edgeshare.errors import Unavailable
from edgeshare.inventory.nvml import NvmlInventory

logger = logging.getLogger(__name__)


class Scan:
    """Keeps ``devices`` as the driver's library tells them."""

    def __init__(self, devices: Devices, interval_s: float) -> None:
        self._devices = devices
        self._interval_s = interval_s
        self._inventory: NvmlInventory | None = None
        self._said = ""

    async def run(self, stop: asyncio.Event, changed: Callable[[tuple[Device, ...]], None]) -> None:
        """Looks every interval until ``stop``; calls ``changed`` with the devices as they were before each
        change."""
        while not stop.is_set():
            await self.look(changed)
            await first_of(stop, timeout_s=self._interval_s)
        if self._inventory is not None:
            await asyncio.to_thread(self._inventory.close)

    async def look(self, changed: Callable[[tuple[Device, ...]], None]) -> None:
        """Looks once."""
        before = self._devices.now
        # The driver can take its time, and for that long a kubelet's call must not wait.
        if self._devices.set(await asyncio.to_thread(self._read)):
            changed(before)

    def _read(self) -> list[Device]:
        try:
            if self._inventory is None:
                self._inventory = NvmlInventory().open()
            found = self._inventory.devices()
        except Unavailable as error:
            self._say(str(error))
            if self._inventory is not None:
                self._inventory.close()
                self._inventory = None
            # Containers may hold units of what was there: it is still listed, and not healthy.
            return [replace(device, healthy=False, cause=str(error)) for device in self._devices.now]
        self._say(f"{len(found)} GPUs" if found else "the driver lists no GPU")
        seen = {device.id for device in found}
        gone = [device for device in self._devices.now if device.id not in seen]
        return found + [replace(device, healthy=False, cause="the driver no longer lists it") for device in gone]

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            logger.info("%s", text)
