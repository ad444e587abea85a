"""Looks at the machine's GPUs again and again. No GPU, or no driver, is normal: the list is empty until there
is. A driver that does not answer is not."""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import replace

from deviceplugin.devices import Devices
from deviceplugin.notices import Notices, Reason
from deviceplugin.selection import select
from deviceplugin.settings import Settings
from deviceplugin.waiting import first_of
from edgeshare.devices import Device
from edgeshare.errors import NoDriver, Unavailable
from edgeshare.inventory.nvml import NvmlInventory

logger = logging.getLogger(__name__)


class Scan:
    """Keeps ``devices`` as the driver's library tells them and the configuration leaves them."""

    def __init__(
        self, devices: Devices, settings: Settings, held: Callable[[], Collection[str]], notices: Notices
    ) -> None:
        """``held`` tells the devices that containers have units of."""
        self._devices = devices
        self._settings = settings
        self._held = held
        self._notices = notices
        self._inventory: NvmlInventory | None = None
        self._said = ""
        self.found: tuple[Device, ...] = ()
        """All that are there, or were since the start; also those that are not shared."""
        self.fault = ""
        """Why the driver does not answer, where there is one; empty: it does."""

    async def run(self, stop: asyncio.Event, changed: Callable[[tuple[Device, ...]], None]) -> None:
        """Looks every interval, and when the configuration changes, until ``stop``; calls ``changed`` with the devices
        as they were before each change."""
        while not stop.is_set():
            reloaded = self._settings.next_change()
            await self.look(changed)
            await first_of(stop, reloaded, timeout_s=self._settings.now.rescan_s)
        if self._inventory is not None:
            await asyncio.to_thread(self._inventory.close)

    async def look(self, changed: Callable[[tuple[Device, ...]], None]) -> None:
        """Looks once."""
        # The driver can take its time, and for that long a kubelet's call must not wait.
        self.found = tuple(await asyncio.to_thread(self._read))
        self._notices.tell(Reason.DRIVER_BROKEN, [self.fault] if self.fault else [])
        selection = select(self.found, self._settings.now, self._held())
        self._notices.tell(Reason.DEVICE_MISSING, selection.faults)
        before = self._devices.now
        if self._devices.set(selection.devices):
            changed(before)

    def _read(self) -> list[Device]:
        try:
            if self._inventory is None:
                self._inventory = NvmlInventory().open()
            found = self._inventory.devices()
        except Unavailable as error:
            if self._inventory is not None:
                self._inventory.close()
                self._inventory = None
            if isinstance(error, NoDriver) and not self.found:
                self.fault = ""
                self._say(str(error))
            else:
                self.fault = self._said = str(error)
            # Containers may hold units of what was there: it is still listed, and not healthy.
            return [replace(device, healthy=False, cause=str(error)) for device in self.found]
        self.fault = ""
        self._say(f"{len(found)} GPUs" if found else "the driver lists no GPU")
        seen = {device.id for device in found}
        gone = [device for device in self.found if device.id not in seen]
        return found + [replace(device, healthy=False, cause="the driver no longer lists it") for device in gone]

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            logger.info("%s", text)
